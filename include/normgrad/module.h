/* Modules: what all layers and networks share.
 *
 *     ng_module *mlp = ng_sequential_new(ng_linear_new(64, 128), ng_layer_norm_new(128),
 *                                        ng_relu_new(), ng_linear_new(128, 10));
 *     ng_module_init(mlp, 1);
 *     ng_tensor *scores = ng_forward(mlp, tape, x);
 *     ng_eval(mlp);
 *     if (ng_module_save(mlp, "mlp.safetensors")) fprintf(stderr, "%s\n", ng_error_text());
 *     ng_module_free(mlp);
 *
 *     ng_forward(net, tape, x)               the output for x
 *     ng_forward_using(net, tape, w, n, x)   the same with other parameters
 *     ng_recompute(net, tape, x)             ng_forward that keeps less memory
 *     ng_train(net), ng_eval(net)            the modes of dropout and BatchNorm
 *     ng_freeze(net), ng_unfreeze(net)       excludes parameters from training
 *     ng_module_init(net, seed)              draws the parameters
 *     ng_module_to(net, dtype)               converts to float or double
 *     ng_module_tie(net, name, other)        makes one parameter of two
 *     ng_module_parameter(net, i, &p)        the i-th parameter; ng_module_buffer
 *     ng_module_find(net, name)              a parameter or buffer by its path
 *     ng_module_child(net, i)                the i-th child
 *     ng_summary(net)                        prints a table
 *     ng_module_save(net, path)              to a file; ng_module_load(net, path)
 *     ng_module_copy(target, source)         copies parameters and buffers
 *     ng_module_average(target, source, decay)   a moving average
 *     ng_module_free(net)                    frees it with its children
 *
 * A new module is float32 and in training. You own it until you give it to another module, which
 * owns it from then on. */
#ifndef NORMGRAD_MODULE_H
#define NORMGRAD_MODULE_H

#include <normgrad/ops.h>

NG_BEGIN_C

typedef struct ng_module ng_module;

/* The deepest nesting of modules. Deeper nesting is NG_EVALUE. */
#define NG_MAX_DEPTH 256

/* ---- Use a network ------------------------------------------------------------------------
 *
 * Several threads may use one network at the same time if none changes it: the network is in
 * evaluation (ng_eval), and each thread has a tape of its own with recording off. A forward pass in
 * training, ng_backward, ng_gradient, an optimizer's step, ng_train, ng_eval, ng_module_to and
 * loading change a network. */

/* What ng_forward is given: x, and inputs by name. A layer takes those that it knows; containers
 * (Sequential, Residual, Transformer...) pass all of them on to their children. NG_EVALUE if an
 * input is missing that a layer needs, or one is given that no layer takes. NG_NONE leaves an input
 * out. */
typedef struct {
    ng_tensor *condition;   /* FiLM, AdaptiveLayerNorm, norms with .condition */
    ng_tensor *mask;        /* self-attention: 0 for a hidden key (ng_attention); BatchNorm: 0 for
                               padding (ng_batch_norm) */
    ng_tensor *lengths;     /* RNN, GRU, LSTM: the lengths of the rows, int64 (N) */
    ng_tensor *memory;      /* cross-attention: the other sequence */
    ng_tensor *memory_mask; /* cross-attention: the mask of its keys */
    ng_tensor *style;       /* InstanceNorm with .style: (N, C, ...) */
    ng_tensor *gate;        /* GatedRMSNorm: of x's shape */
    int named;              /* how many are named; set by ng_forward */
    ng_tensor *x;
} ng_inputs;
#define NG_INPUTS(...) NG_NAMED_TWO(ng_inputs, named, NG_INPUTS_NAMED(__VA_ARGS__), x, __VA_ARGS__)
#define NG_INPUTS_NAMED(...) NG_INPUTS_NINTH(__VA_ARGS__, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define NG_INPUTS_NINTH(x, a, b, c, d, e, f, g, count, ...) (count)

/* The same as bits, for the .takes and .needs of a class of your own. */
typedef enum {
    NG_INPUT_CONDITION = 1,
    NG_INPUT_MASK = 2,
    NG_INPUT_LENGTHS = 4,
    NG_INPUT_MEMORY = 8,
    NG_INPUT_MEMORY_MASK = 16,
    NG_INPUT_STYLE = 32,
    NG_INPUT_GATE = 64
} ng_input;

/* The module's output for x, recorded on the tape:
 *     ng_forward(net, tape, x)      ng_forward(net, tape, x, .condition = c, .mask = mask)
 * If a layer fails, the layers before it have run: running statistics, SpectralNorm's u and v, and
 * the tape's generator may have changed. */
#define ng_forward(module, tape, ...) ng_forward_with(module, tape, NG_INPUTS(__VA_ARGS__))
NG_API ng_tensor *ng_forward_with(ng_module *module, ng_tape *tape, ng_inputs inputs);

/* The output with your tensors in place of the module's parameters: one for each parameter, in the
 * order of ng_module_parameter, with its shape and dtype. Inputs are as in ng_forward. The result
 * has gradients of any order to your tensors. So steps of gradient descent can be differentiated
 * (MAML: Finn, Abbeel & Levine 2017):
 *
 *     ng_gradients(tape, &loss, 1, w, n, g, .record = true);
 *     for (int i = 0; i < n; i++) w[i] = ng_sub(tape, w[i], ng_mul_scalar(tape, g[i], lr));
 *     y = ng_forward_using(net, tape, w, n, x);
 *
 * A parameter may be its own replacement. Buffers are used and updated as in ng_forward. A layer of
 * your own must read its parameters with ng_parameter_value. Errors name the parameter. */
#define ng_forward_using(module, tape, parameters, count, ...)                                     \
    ng_forward_using_with(module, tape, parameters, count, NG_INPUTS(__VA_ARGS__))
NG_API ng_tensor *ng_forward_using_with(ng_module *module, ng_tape *tape,
                                        ng_tensor *const *parameters, int count, ng_inputs inputs);

/* ng_forward that keeps only its inputs and its output on the tape. What the layers compute in
 * between is freed at once, and computed again for the gradient (Chen et al. 2016):
 *
 *     for (int i = 0; i < 24; i++) x = ng_recompute(block[i], tape, x);
 *
 * So 24 blocks need the memory of one block and of 24 outputs, and a third more time. Outputs and
 * gradients have the same bits as with ng_forward, also of tensors and modules that are not the
 * module's own but are used by a function in it: dropout drops the same elements again, running
 * statistics are updated once, and the modes are those of the pass. Gradients of gradients differ
 * by rounding. Calls may be nested, 60 deep. ng_watch shows no layers inside it.
 *
 * If something that the pass has read was changed before the gradient is taken (a parameter, an
 * input, running statistics in evaluation, the layers, the dtype), or if the second run gives
 * another output, the gradient is NG_ESTATE. Functions and layers of your own must do the same in
 * both runs and must not keep results of a pass; a call of ng_backward inside them is NG_ESTATE.
 * Modules that they call must not be freed before the gradient is taken. */
#define ng_recompute(module, tape, ...) ng_recompute_with(module, tape, NG_INPUTS(__VA_ARGS__))
NG_API ng_tensor *ng_recompute_with(ng_module *module, ng_tape *tape, ng_inputs inputs);

/* Sets the mode of a module and of all its children. A module that is added later
 * (ng_sequential_add, ng_list_add, ng_module_add_child) keeps its own mode. */
NG_API void ng_train(ng_module *module); /* dropout drops, BatchNorm uses the batch (the default) */
NG_API void ng_eval(ng_module *module);  /* dropout passes, BatchNorm uses running statistics */

/* Freezing excludes parameters from training: they require no gradient, and a frozen BatchNorm uses
 * its running statistics in training too. A layer that is added later is not frozen, so a new head
 * on a frozen body learns. A parameter that is added to a frozen module is frozen. */
NG_API void ng_freeze(ng_module *module);
NG_API void ng_unfreeze(ng_module *module);

/* Converts every parameter and buffer, and drops gradients. A value beyond the range of float is
 * NG_EVALUE. On failure nothing has changed. */
NG_API ng_status ng_module_to(ng_module *module, ng_dtype dtype);

/* Draws every parameter anew and resets the buffers. The weights depend only on the seed and the
 * paths of the layers: equal networks with equal seeds have equal weights, and equal layers of one
 * network differ. For networks that differ, give each a seed:
 *     for (int i = 0; i < 5; i++) ng_module_init(ensemble[i] = make_network(), i);
 *
 * Without a call, a network is drawn with seed 0 at its first use: when it is called, put in
 * evaluation, converted, copied, saved or loaded, when one of its tensors is looked at, or when an
 * optimizer is made for it. A layer that is used before it is given to another module keeps its
 * values. */
NG_API ng_status ng_module_init(ng_module *module, uint64_t seed);

/* Makes one parameter of two of the same shape: the layer with the parameter `name` uses
 * `other` instead, which gets the gradients of both.
 *     ng_module_tie(net, "head.weight", "embedding.weight")    Press & Wolf 2017
 * Then `name` is not listed as a parameter: optimizers, files and ng_module_init do not see it, and
 * ng_module_find(net, name) returns `other`. Tie before the network is used: g, u and v of
 * WeightNorm and SpectralNorm follow a later tie only at the next ng_module_init. */
NG_API ng_status ng_module_tie(ng_module *module, const char *name, const char *other);

/* ---- Look at a network -------------------------------------------------------------------- */

/* Parameters and buffers of the whole tree, in the order of registration, named by path. Buffers
 * are saved but not trained, such as running statistics.
 *     for (int i = 0; ng_module_parameter(net, i, &p); i++) printf("%s\n", p.name);
 * A name lives as long as the module. */
typedef struct {
    const char *name;  /* "3.norm.weight" */
    ng_tensor *tensor; /* the module's own, not a copy */
    ng_module *owner;  /* the module that registered it */
} ng_named_tensor;
NG_API bool ng_module_parameter(ng_module *module, int index, ng_named_tensor *parameter);
NG_API bool ng_module_buffer(ng_module *module, int index, ng_named_tensor *buffer);

/* A parameter or buffer by its path; NULL with NG_EVALUE if there is none of that name. */
NG_API ng_tensor *ng_module_find(ng_module *module, const char *name);

/* Children of this module itself; false past the last. */
NG_API ng_module *ng_module_child(const ng_module *module, int index);
NG_API const char *ng_module_child_name(const ng_module *module, int index);

NG_API int64_t ng_parameter_count(const ng_module *module); /* elements of all parameters */

/* Prints a table: path, layer with its settings, parameters' shapes, counts; and the total. */
NG_API void ng_summary(const ng_module *module);
NG_API void ng_fprint_summary(FILE *stream, const ng_module *module);

#ifndef NG_NO_IO
/* ---- Files --------------------------------------------------------------------------------
 *
 * A network's file is in the safetensors format. Python reads it: safetensors.torch.load_file(path)
 * gives a state_dict. Tensors have their dtype (F32, F64, I64) and the names of ng_module_parameter
 * and ng_module_buffer, which for single layers are PyTorch's. The metadata hold a digest of names,
 * shapes and elements. */

/* Writes parameters and buffers; a file of that name is replaced in one step (ng_file_write). */
NG_API NG_MUST_CHECK ng_status ng_module_save(const ng_module *module, const char *path);

/* What ng_module_load has done, for .report. */
typedef struct {
    int64_t loaded;  /* tensors of the module that were read */
    int64_t kept;    /* tensors of the module that are missing from the file: not changed */
    int64_t unused;  /* tensors of the file that the module does not have */
    char names[512]; /* "kept: 4.weight, 4.bias; unused: fc.weight", cut where it is longer */
} ng_load_report;

/* Reads parameters and buffers by name into a module of the same structure. F16 and BF16 are
 * widened, F32 and F64 converted; integers must fit exactly. It is an error that names the tensor
 * if one is missing, left over, of another shape, or beyond the range of the module's dtype, and an
 * error if the content has another digest. After an error nothing has changed.
 *
 *     ng_module_load(net, "net.safetensors", .or_keep = true)      loads, if there is a file
 *     ng_module_load(net, "resnet.safetensors", .partial = true,
 *                    .rename = NG_RENAME("module", "", "fc", "head"), .report = &report) */
typedef struct {
    bool partial; /* tensors missing from the file keep their values, and extra tensors in the file
                     are ignored. A file with no tensor of the module is still an error */
    bool or_keep; /* if there is no file, keep every value, and return NG_OK */
    bool verify;  /* the file must have a digest; files of other programs have none */
    const char *const *rename; /* NG_RENAME(old, new, ...): pairs, applied in order to the file's
                                  names. Old is one or more whole parts between dots; new takes its
                                  place, "" removes it. A pair that matches nothing is an error */
    ng_load_report *report;    /* filled on success */
    const char *path;
} ng_module_load_options;
#define ng_module_load(module, ...)                                                                \
    ng_module_load_with(module, NG_NAMED(ng_module_load_options, path, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_module_load_with(ng_module *module,
                                                   ng_module_load_options options);

/* Pairs of names, old and new, for .rename. */
#define NG_RENAME(...) NG_NAMES(__VA_ARGS__)
#endif

/* Copies parameters and buffers of `source` into `target`, a network that was made in the same way,
 * converted to its dtype: to keep the best network so far, for a target network, for a common
 * start. No call makes a network like another: write a function that makes it, and call it twice.
 * A tensor that only one of them has, or that has another shape, and a value beyond the range of
 * the dtype are errors that name the tensor; then nothing is changed. */
NG_API NG_MUST_CHECK ng_status ng_module_copy(ng_module *target, const ng_module *source);

/* The moving average of parameters, target = decay target + (1 - decay) source; buffers are copied.
 * Call it after each step, with a decay such as 0.999 in [0, 1]. The running statistics of a
 * BatchNorm do not fit the averaged weights: call ng_batch_norm_recompute before `target` is used.
 * Polyak & Juditsky 1992. */
NG_API NG_MUST_CHECK ng_status ng_module_average(ng_module *target, const ng_module *source,
                                                 double decay);

/* Frees a module with its children, parameters and buffers. Does nothing for NULL and for a child,
 * which its parent frees. */
NG_API void ng_module_free(ng_module *module);

NG_END_C

#endif
