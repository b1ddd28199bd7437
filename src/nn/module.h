/* What a module contains: its registered entries and their paths. */
#ifndef NG_NN_MODULE_H
#define NG_NN_MODULE_H

#include "core/digest.h"
#include "core/number.h"
#include "core/tensor.h"
#include "nn/settings.h"
#include "tape/tape.h"
#include <normgrad/nn.h>

/* A path from the root of the tree, "3.norm.weight". When the root is given to another module, a
 * longer path takes its place. The older one is kept, because a name lives as long as its module.
 */
typedef struct ng_path {
    struct ng_path *older;
    char text[];
} ng_path;

/* An entry that is tied does not count as a parameter: passes read leaf->tied of its tensor. */
typedef enum { NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER, NG_ENTRY_CHILD, NG_ENTRY_TIED } ng_entry_kind;

typedef struct {
    ng_entry_kind kind;
    ng_path *path;      /* the registered name is its tail */
    ng_path *next_path; /* during adoption: the new path */
    ng_module *child;
    ng_tensor *tensor;
    ng_tensor *converted; /* during ng_module_to: the converted tensor */
    double initial;       /* the initial value of all elements */
} ng_entry;

/* Hears of a module, for ng_watch (plot/watch.c). `called` may be NULL. */
typedef struct ng_watched {
    struct ng_watched *next; /* that hears of the same module */
    void (*called)(struct ng_watched *self, ng_tape *tape, ng_tensor *y); /* it gave y */
    void (*freed)(struct ng_watched *self); /* the module is being freed; leaves its list */
} ng_watched;

struct ng_registry {
    ng_module *parent;
    const ng_path *path;        /* from the root; NULL for the root itself */
    const ng_setting *settings; /* of its class; NULL: it has none, or describes itself */
    ng_entry *entries;          /* in the order of registration */
    int count, capacity;
    int place;          /* of the module among its parent's entries */
    int height;         /* levels of children below */
    int64_t parameters; /* registered in the whole tree */
    uint64_t structure; /* its version: raised by what is registered, tied or adopted in the tree */
    bool failed;        /* something could not be registered */
    bool drawn;         /* its class's init has run */
    bool complete;      /* so has that of all modules below */
    ng_watched *watched; /* or NULL */
};

/* A walk over the entries of a tree, in the order of registration, a child before what it holds:
 *
 *     for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);) use(w.owner, w.entry);
 */
typedef struct {
    const ng_module *root;
    ng_module *module; /* whose entry `next` comes next */
    int next;
    ng_module *owner; /* of the entry */
    ng_entry *entry;
} ng_tree_walk;
ng_tree_walk ng_tree_begin(const ng_module *root);
bool ng_tree_next(ng_tree_walk *w);

/* The outermost module. */
ng_module *ng_module_root(const ng_module *module);

/* The path of an entry as `root`, the module or one above it, names it. */
const char *ng_entry_path(const ng_module *root, const ng_entry *entry);

/* The path of a module below `root`; "" for root itself. */
const char *ng_module_path(const ng_module *root, const ng_module *module);

/* The index-th parameter or buffer of the tree; false past the last. */
bool ng_module_tensor(const ng_module *root, ng_entry_kind kind, int index, ng_named_tensor *found);

/* Whether all finite elements of x fit the range of dtype; else an error that names x. */
bool ng_range_fits(const char *function, const char *name, const ng_tensor *x, ng_dtype dtype);

/* The index-th module of the tree, itself first, then each child before what is below it; NULL past
 * the last. */
const ng_module *ng_module_layer(const ng_module *root, int index);

/* The modes of all modules of a tree. */
typedef struct {
    bool *training; /* in the order of ng_module_layer; NULL for none */
    int count;
} ng_modes;

/* Puts the tree in evaluation and keeps its modes before; false with an error of `function`.
 * ng_modes_restore gives them back. */
bool ng_modes_evaluate(const char *function, ng_module *root, ng_modes *before);
void ng_modes_restore(ng_module *root, ng_modes *before);

/* Whether it is a Sequential or a List. */
bool ng_is_container(const ng_module *module);

/* Whether the layer is one whose output has a range, and its ends. */
bool ng_output_range(const ng_module *layer, double *low, double *high);

/* The text of the class's describe, "128, eps=1e-05", with a decimal point in any locale; the
 * caller frees it with ng_free. NULL with an error of `function`. */
char *ng_module_settings(const char *function, const ng_module *module);

/* Registers a parameter or buffer of zeros, in any dtype. NULL with an error, after which
 * ng_module_built fails. */
ng_entry *ng_module_add_tensor(const char *function, ng_module *self, const char *name,
                               ng_entry_kind kind, ng_dtype dtype, ng_shape shape);

/* Before values are used: draws what is not drawn yet in the outermost module. False with an error.
 */
bool ng_module_ready(const ng_module *module);

/* The parameter that is read in the place of a tied one, or x itself. */
static inline ng_tensor *ng_untied(ng_tensor *x)
{
    while (ng_tied_to(x)) x = ng_tied_to(x);
    return x;
}

/* Notes in self and all modules above that their trees have changed: they have `more` parameters.
 */
void ng_module_restructured(ng_module *self, int64_t more);

/* Takes the entry that was registered last, a tensor, off the module and frees it. */
void ng_module_drop_last(ng_module *self);

/* Registers a tensor of the caller's as a parameter; false with an error. */
bool ng_module_take_parameter(const char *function, ng_module *self, const char *name,
                              ng_tensor *tensor);

/* Registers a counter: a buffer of one int64, from 0, that ng_module_to does not convert. */
ng_tensor *ng_module_add_count(ng_module *self, const char *name);

/* The value of a scale in this pass: with unit_offset 1 + the parameter's, else the parameter's, or
 * NG_NONE. */
ng_tensor *ng_scale_value(ng_tape *tape, ng_tensor *parameter, bool unit_offset);

/* All inputs left out. */
#define NG_NO_INPUTS                                                                               \
    ((ng_inputs){.condition = NG_NONE,                                                             \
                 .mask = NG_NONE,                                                                  \
                 .lengths = NG_NONE,                                                               \
                 .memory = NG_NONE,                                                                \
                 .memory_mask = NG_NONE,                                                           \
                 .style = NG_NONE,                                                                 \
                 .gate = NG_NONE})

/* One of the inputs: x is the last. */
enum { NG_INPUTS_COUNT = 8 };
ng_tensor **ng_input_at(const ng_inputs *inputs, int index);

/* The input of that name, without x; NULL if there is none. */
ng_tensor **ng_input_named(ng_inputs *inputs, const char *name);

/* The module's output with `value` in place of a parameter, for this call on this tape. It does not
 * change the module, so several threads may use it. */
ng_tensor *ng_forward_replaced(ng_module *module, ng_tape *tape, const ng_inputs *inputs,
                               ng_tensor *parameter, ng_tensor *value);

/* Notes for ng_recompute the state of a module that is about to run. False without memory. */
bool ng_pass_notes(ng_tape *tape, ng_module *module);

/* NULL, for a pass that has failed; `failures_before` is ng_failures_ever() from before it. Puts
 * the module's path before the error, unless that is older than the pass. The innermost module
 * returns first, so that the path is its own. */
ng_tensor *ng_failed_in(const ng_module *module, int64_t failures_before);

/* Frees a child that `self` does not take, unless it belongs to another module or contains self. */
void ng_module_refuse(ng_module *self, ng_module *child);

/* Whether x's last dimension is `dim`; else an error of the layer. */
bool ng_features_fit(const ng_module *self, const ng_tensor *x, int64_t dim);

/* Whether x is (N, channels, ...); else an error of the layer. */
bool ng_channels_fit(const ng_module *self, const ng_tensor *x, int64_t channels);

#endif
