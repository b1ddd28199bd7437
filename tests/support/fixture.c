#include "fixture.h"
#include "support.h"

ng_tape *tape;

void set_up(void) { tape = ng_tape_new(); }
void tear_down(void) { ng_tape_free(tape); }

ng_tensor *normal_with(ng_dtype dtype, ng_shape shape, double mean, double deviation, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    return ng_require_grad(own(ng_normal_new(dtype, shape, mean, deviation, &rng)));
}

ng_tensor *normal(ng_dtype dtype, ng_shape shape, uint64_t seed)
{
    return normal_with(dtype, shape, 0, 1, seed);
}

void assert_same_module(ng_module *a, ng_module *b)
{
    static bool (*const listers[])(ng_module *, int, ng_named_tensor *) = {ng_module_parameter,
                                                                           ng_module_buffer};
    ng_named_tensor x, y;
    for (int k = 0; k < 2; k++) {
        int i = 0;
        for (; listers[k](a, i, &x); i++) {
            ck_assert(listers[k](b, i, &y));
            ck_assert_str_eq(x.name, y.name);
            assert_same_bits(x.tensor, y.tensor);
        }
        ck_assert(!listers[k](b, i, &y));
    }
}

char *summary_of(const ng_module *module)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    ng_fprint_summary(stream, module);
    fclose(stream);
    return text;
}
