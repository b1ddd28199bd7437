/* Initial values of weights, and of a whole network. */
#include "nn/module.h"
#include <math.h>
#include <string.h>

/* The numbers of inputs and outputs of a weight: a matrix is (out, in), and further dimensions are
 * those of a kernel; a vector has its length for both. */
typedef struct {
    double in, out;
} fans;

static fans fans_of(ng_shape shape)
{
    if (shape.rank == 0) return (fans){1, 1};
    if (shape.rank == 1) return (fans){(double)shape.dim[0], (double)shape.dim[0]};
    const double reach = (double)ng_shape_span(shape, 2, shape.rank);
    return (fans){(double)shape.dim[1] * reach, (double)shape.dim[0] * reach};
}

static ng_status init_uniform(ng_tensor *x, double bound, ng_rng *rng)
{
    return ng_fill_uniform(x, -bound, bound, rng);
}

ng_status ng_fill_init(ng_tensor *x, ng_init_kind kind, double value, ng_rng *rng)
{
    const ng_status status = ng_writable("ng_fill_init", x);
    if (status != NG_OK) return status;
    if (!ng_given("ng_fill_init", "rng", rng)) return ng_newest_status();
    if (x->size == 0) return NG_OK;
    const fans fan = fans_of(x->shape);
    switch (kind) {
    case NG_INIT_DEFAULT: return init_uniform(x, 1 / sqrt(fan.in), rng);
    case NG_INIT_KAIMING_UNIFORM: return init_uniform(x, sqrt(6 / fan.in), rng);
    case NG_INIT_KAIMING_NORMAL: return ng_fill_normal(x, 0, sqrt(2 / fan.in), rng);
    case NG_INIT_XAVIER_UNIFORM: return init_uniform(x, sqrt(6 / (fan.in + fan.out)), rng);
    case NG_INIT_XAVIER_NORMAL: return ng_fill_normal(x, 0, sqrt(2 / (fan.in + fan.out)), rng);
    case NG_INIT_NORMAL: return ng_fill_normal(x, 0, value, rng);
    case NG_INIT_CONSTANT: return ng_fill(x, value);
    }
    return ng_fail(NG_EVALUE, "ng_fill_init: kind %d, expected an ng_init_kind", (int)kind);
}

/* ---- A whole network ---------------------------------------------------------------------- */

static ng_rng stream_of(uint64_t seed, const char *path)
{
    const uint64_t hash = ng_digest(NG_DIGEST_START, path, strlen(path));
    return ng_rng_seeded(hash ^ (seed * 0x9e3779b97f4a7c15u));
}

static bool has_tied(const ng_module *root)
{
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);)
        if (w.entry->kind == NG_ENTRY_TIED) return true;
    return false;
}

/* Draws the modules that are not drawn yet, each after its children, whose values it may use. */
static void draw_tree(const ng_module *root, ng_module *self, uint64_t seed)
{
    for (int i = 0; i < self->registry->count; i++) {
        ng_module *child = self->registry->entries[i].child;
        if (child) draw_tree(root, child, seed);
    }
    if (self->registry->drawn || !self->type->init) return;
    ng_rng rng = stream_of(seed, ng_module_path(root, self));
    self->type->init(self, &rng);
}

static void set_drawn(ng_module *root, bool drawn)
{
    root->registry->drawn = root->registry->complete = drawn;
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);)
        if (w.entry->child)
            w.entry->child->registry->drawn = w.entry->child->registry->complete = drawn;
}

/* Draws what is not drawn yet. Twice where weights are tied: a module may use one that is drawn
 * after it. */
static bool draw(ng_module *root, uint64_t seed)
{
    const int64_t failures = ng_failures_ever();
    root->registry->complete = true; /* so that a class's init may look at its module */
    draw_tree(root, root, seed);
    if (has_tied(root)) draw_tree(root, root, seed);
    if (ng_failures_ever() == failures) {
        set_drawn(root, true);
        return true;
    }
    root->registry->complete = false;
    ng_fail_unrecorded(failures, NG_ESTATE, "ng_module_init: the init of a class has failed");
    return false;
}

bool ng_module_ready(const ng_module *module)
{
    if (module->registry->complete) return true;
    ng_module *root = ng_module_root(module);
    return root->registry->complete || draw(root, 0);
}

ng_status ng_module_init(ng_module *module, uint64_t seed)
{
    if (!ng_given("ng_module_init", "module", module)) return ng_newest_status();
    if (module->registry->parent && !ng_module_ready(module)) return ng_newest_status();
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->tensor) ng_fill(w.entry->tensor, w.entry->initial);
    set_drawn(module, false);
    return draw(module, seed) ? NG_OK : ng_newest_status();
}
