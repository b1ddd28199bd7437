/* The files of tests/golden: a line `name dimensions...`, then a line of elements. */
#include "golden.h"
#include "fixture.h"
#include "support.h"
#include <stdarg.h>

typedef struct {
    char name[64];
    ng_tensor *tensor;
} golden_entry;

static golden_entry entries[2048];
static int n_entries;

static ng_tensor *parse(const char *dimensions, char *numbers)
{
    ng_shape shape = NG_SCALAR;
    int64_t count = 1, i = 0;
    char *end;
    for (int64_t dim; dim = strtoll(dimensions, &end, 10), end != dimensions; dimensions = end) {
        shape.dim[shape.rank++] = dim;
        count *= dim;
    }
    double *values = calloc((size_t)count, sizeof(double));
    ck_assert_ptr_nonnull(values);
    for (char *next = numbers; i < count; i++, next = end) {
        values[i] = strtod(next, &end);
        if (end == next) break;
    }
    ck_assert_int_eq(i, count);
    ng_tensor *x = ng_tensor_from(NG_F64, shape, values, count);
    free(values);
    assert_ok(x);
    return x;
}

void golden_load(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file, "cannot open %s: run the tests in the project's folder", path);
    char *line = NULL, *numbers = NULL;
    size_t line_bytes = 0, numbers_bytes = 0;
    ck_assert_int_gt(getline(&line, &line_bytes, file), 0); /* the line that says by whom */
    while (getline(&line, &line_bytes, file) > 0 && getline(&numbers, &numbers_bytes, file) > 0) {
        ck_assert_int_lt(n_entries, (int)(sizeof entries / sizeof entries[0]));
        golden_entry *entry = &entries[n_entries++];
        int used = 0;
        ck_assert_int_eq(sscanf(line, "%63s%n", entry->name, &used), 1);
        entry->tensor = parse(line + used, numbers);
    }
    free(line);
    free(numbers);
    fclose(file);
}

void golden_unload(void)
{
    for (int i = 0; i < n_entries; i++) ng_tensor_free(entries[i].tensor);
    n_entries = 0;
}

void golden_tear_down(void)
{
    golden_unload();
    tear_down();
}

ng_tensor *golden_find(const char *name)
{
    for (int i = 0; i < n_entries; i++)
        if (strcmp(entries[i].name, name) == 0) return entries[i].tensor;
    return NULL;
}

ng_tensor *golden(const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    ng_tensor *x = golden_find(name);
    ck_assert_msg(x, "%s is not among the golden figures", name);
    return x;
}

void expect_golden_of(const char *file, int line, const ng_tensor *x, double relative,
                      const char *format, ...)
{
    char name[128], what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    snprintf(what, sizeof what, "ours and the golden %s", name);
    expect_tensors_close(file, line, what, x, golden("%s", name), relative);
}

void golden_expect_rows(const void *rows, size_t count, size_t bytes, const char *besides)
{
    for (int i = 0; i < n_entries; i++) {
        const char *name = entries[i].name;
        bool known = false;
        for (const char *at = besides; at && !known; at = strchr(at, ','), at += at != NULL)
            known = strncmp(name, at, strcspn(at, ",")) == 0;
        for (size_t k = 0; k < count && !known; k++) {
            const char *row = *(const char *const *)(const void *)((const char *)rows + k * bytes);
            known = strlen(row) == strcspn(name, "/") && strncmp(row, name, strlen(row)) == 0;
        }
        ck_assert_msg(known, "%s is compared with nothing", name);
    }
}

void golden_inputs(const char *row, const char *const *names, ng_tensor **in)
{
    for (int i = 0; i < GOLDEN_INPUTS && names[i]; i++) {
        char gradient[128];
        const ng_dtype dtype = strcmp(names[i], "labels") == 0 ? NG_I64 : NG_F64;
        in[i] = own(ng_copy_new(golden("%s/%s", row, names[i]), dtype));
        snprintf(gradient, sizeof gradient, "%s/d%s", row, names[i]);
        if (golden_find(gradient)) ng_require_grad(in[i]);
    }
}

void golden_set(ng_module *module, const char *row, const golden_pair *pairs, int count)
{
    for (int i = 0; i < count; i++)
        assert_ok(ng_copy_values(ng_module_find(module, pairs[i].tensor),
                                 golden("%s/%s", row, pairs[i].figure)));
}

void expect_golden_gradients(const char *file, int line, const char *row, ng_tensor *y,
                             double relative, const char *const *names, ng_tensor *const *in)
{
    expect_golden_of(file, line, y, relative, "%s/y", row);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", row)));
    for (int i = 0; i < GOLDEN_INPUTS && names[i]; i++)
        if (ng_requires_grad(in[i]))
            expect_golden_of(file, line, ng_grad(in[i]), relative, "%s/d%s", row, names[i]);
}
