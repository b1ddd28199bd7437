/* Modules: layers that hold parameters. A new module is float32 and on no tape. You own it until
 * you give it to another module, which owns it from then on. Layers of your own: at the end. */
#ifndef NORMGRAD_NN_H
#define NORMGRAD_NN_H

#include <normgrad/ops.h>

NG_BEGIN_C

typedef struct ng_module ng_module;

/* The deepest nesting of modules. Deeper nesting is NG_EVALUE. */
#define NG_MAX_DEPTH 256

/* The most layers of a Transformer. More is NG_EVALUE. */
#define NG_MAX_LAYERS 10000

/* ---- Use a network ------------------------------------------------------------------------
 *
 * Threads: several threads may use one network at the same time if none changes it. It must be in
 * evaluation (ng_eval), and each thread needs a tape of its own with recording off. Training,
 * ng_backward, ng_gradient, an optimizer's step, ng_train, ng_eval, ng_module_to and loading change
 * a network. */

/* What a module is given: x, and inputs by name. A layer takes those that it knows; containers
 * (Sequential, Residual, Transformer...) pass all of them on to their children. A layer that needs
 * one which is missing, and one that no layer takes, are NG_EVALUE. NG_NONE leaves an input out;
 * NULL is a failure, as everywhere. */
typedef struct {
    ng_tensor *condition;   /* FiLM, AdaptiveLayerNorm, norms with .condition: a vector, or maps */
    ng_tensor *mask;        /* 0 for padding: the keys of self-attention, BatchNorm's samples or
                               positions; or 0 for a key that a query does not see */
    ng_tensor *lengths;     /* RNN, GRU, LSTM: of the rows, int64 (N) */
    ng_tensor *memory;      /* cross-attention: the other sequence */
    ng_tensor *memory_mask; /* cross-attention: the mask of its keys */
    ng_tensor *style;       /* InstanceNorm with .style: (N, C, ...) */
    ng_tensor *gate;        /* GatedRMSNorm: of x's shape */
    int named;              /* how many are named, which ng_forward counts */
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
 *     ng_forward(net, tape, x)      ng_forward(net, tape, x, .mask = mask, .condition = c)
 * If a layer fails, the layers before it have already run: they have updated running statistics,
 * SpectralNorm's u and v, and dropout's random stream. */
#define ng_forward(module, tape, ...) ng_forward_with(module, tape, NG_INPUTS(__VA_ARGS__))
NG_API ng_tensor *ng_forward_with(ng_module *module, ng_tape *tape, ng_inputs inputs);

/* The output with your tensors in place of the module's parameters: one for each parameter, in the
 * order of ng_module_parameter, with its shape and dtype. Inputs are those of ng_forward. The
 * result has gradients of any order to your tensors. So steps of gradient descent can be
 * differentiated (MAML: Finn, Abbeel & Levine 2017):
 *
 *     ng_gradients(tape, &loss, 1, w, n, g, .record = true);
 *     for (int i = 0; i < n; i++) w[i] = ng_sub(tape, w[i], ng_mul_scalar(tape, g[i], lr));
 *     y = ng_forward_using(net, tape, w, n, x);
 *
 * A parameter may be its own replacement. The module's buffers are used and updated as in
 * ng_forward. A wrong count is NG_EVALUE. NG_ESHAPE, NG_EDTYPE and NG_ESTATE (another tape) name
 * the parameter. A layer of your own reads its parameters with ng_parameter_value. */
#define ng_forward_using(module, tape, parameters, count, ...)                                     \
    ng_forward_using_with(module, tape, parameters, count, NG_INPUTS(__VA_ARGS__))
NG_API ng_tensor *ng_forward_using_with(ng_module *module, ng_tape *tape,
                                        ng_tensor *const *parameters, int count, ng_inputs inputs);

/* ng_forward that keeps its inputs and its output only. What the layers compute in between is given
 * back at once, and computed again when the gradient is taken (Chen et al. 2016):
 *
 *     for (int i = 0; i < 24; i++) x = ng_recompute(tape, block[i], x);
 *
 * So 24 blocks need the memory of one block and of 24 outputs, and a third more time. Outputs and
 * gradients have the same bits as with ng_forward: dropout drops the same elements again, running
 * statistics and other buffers move once. Gradients of gradients are the same but for rounding.
 * Calls may be nested. The module must be in the same mode when the gradient is taken, and must not
 * keep results of a pass. ng_watch shows no layers inside it. While recording is off, or if nothing
 * requires a gradient, it is ng_forward. */
#define ng_recompute(tape, module, ...) ng_recompute_with(tape, module, NG_INPUTS(__VA_ARGS__))
NG_API ng_tensor *ng_recompute_with(ng_tape *tape, ng_module *module, ng_inputs inputs);

/* Sets the mode of a module and of all its children. A module that is added later
 * (ng_sequential_add, ng_list_add, ng_module_add_child) keeps its own mode, as in PyTorch. New
 * modules are in training. */
NG_API void ng_train(ng_module *module); /* dropout drops, BatchNorm uses the batch (the default) */
NG_API void ng_eval(ng_module *module);  /* dropout passes, BatchNorm uses running statistics */

/* Freezing excludes parameters from training: they require no gradient, and a BatchNorm in a frozen
 * module uses its running statistics also in training. A layer that is added later keeps its own
 * mode, so a new head on a frozen body learns. A parameter that is added to a frozen module is
 * frozen. */
NG_API void ng_freeze(ng_module *module);
NG_API void ng_unfreeze(ng_module *module);

/* Converts every parameter and buffer; gradients are dropped. A value beyond the range of float32
 * is NG_EVALUE, as in ng_module_load. On failure nothing has changed. */
NG_API ng_status ng_module_to(ng_module *module, ng_dtype dtype);

/* Draws every parameter anew and resets the buffers. The random streams depend only on `seed` and
 * the path of the layer: the same network with the same seed has the same weights.
 *
 * A network without a seed is drawn once, with seed 0, at its first use: when it is called, put in
 * evaluation, converted, copied, saved or loaded, when one of its tensors is looked at, or when an
 * optimizer is made for it. So equal layers of one network differ, and equal networks have equal
 * weights until each has a seed:
 *     for (int i = 0; i < 5; i++) ng_module_init(ensemble[i] = make_network(), i);
 * A layer that is used before it is given to another module keeps its values. */
NG_API ng_status ng_module_init(ng_module *module, uint64_t seed);

/* Makes one parameter of two: the layer that has `name` reads that of the other name instead, which
 * gets the gradients of both.
 *     ng_module_tie(net, "head.weight", "embedding.weight")    Press & Wolf 2017
 * Both are parameters somewhere in the module, of one shape; else NG_EVALUE or NG_ESHAPE. From then
 * on the first is no parameter: optimizers, files and ng_module_init do not see it, and
 * ng_module_find gives the other by its name. Its memory stays. */
NG_API ng_status ng_module_tie(ng_module *module, const char *name, const char *to);

/* Frees a module with its children, parameters and buffers. Does nothing to a child of another
 * module, which its parent frees. */
NG_API void ng_module_free(ng_module *module);

/* ---- Look at a network -------------------------------------------------------------------- */

/* Parameters and buffers of the whole tree, in the order of registration, named by path:
 *     for (int i = 0; ng_module_parameter(net, i, &p); i++) printf("%s\n", p.name);
 * A name lives as long as the module. */
typedef struct {
    const char *name;  /* "3.norm.weight" */
    ng_tensor *tensor; /* its own, not a copy */
    ng_module *owner;  /* the module that registered it */
} ng_named_tensor;
NG_API bool ng_module_parameter(ng_module *module, int index, ng_named_tensor *parameter);
NG_API bool ng_module_buffer(ng_module *module, int index, ng_named_tensor *buffer);

/* A parameter or buffer by its path; NULL with NG_EVALUE if there is none of that name. */
NG_API ng_tensor *ng_module_find(ng_module *module, const char *name);

/* Children of this module itself; false past the last. */
NG_API ng_module *ng_module_child(const ng_module *module, int index);
NG_API const char *ng_module_child_name(const ng_module *module, int index);

NG_API int64_t ng_parameter_count(const ng_module *module); /* elements of all parameters; their
                                                               norm: optim.h */

/* Prints a table: path, layer with its settings, parameters' shapes, counts; and the total. */
NG_API void ng_summary(const ng_module *module);
NG_API void ng_fprint_summary(FILE *stream, const ng_module *module);

#ifndef NG_NO_IO
/* ---- Files --------------------------------------------------------------------------------
 *
 * A network's file is in the safetensors format. Python reads it: safetensors.torch.load_file(path)
 * gives a state_dict. Tensors have the names of ng_module_parameter and ng_module_buffer, which for
 * single layers are PyTorch's, and their dtype (F32, F64, I64). Bytes are little-endian on any
 * machine. The file's metadata hold a digest of names, shapes and elements. */

/* Writes parameters and buffers. The file is replaced only when it is complete and on the disk
 * (ng_file_write in history.h). */
NG_API NG_MUST_CHECK ng_status ng_module_save(const ng_module *module, const char *path);

/* What ng_module_load has done, for .report. */
typedef struct {
    int64_t loaded;  /* tensors of the module that were read */
    int64_t kept;    /* tensors of the module that are missing from the file: unchanged */
    int64_t unused;  /* tensors of the file that the module does not have */
    char names[512]; /* "kept: 4.weight, 4.bias; unused: fc.weight", cut where it is longer */
} ng_load_report;

/* Reads parameters and buffers by name into a module of the same structure. F16 and BF16 are
 * widened, F32 and F64 converted; integers must fit exactly. These are errors that name the tensor
 * or file, and nothing is changed: a tensor that is missing, left over or of another shape, a value
 * beyond the range of the module's dtype, a digest that differs from the content's.
 *
 *     ng_module_load(net, "resnet.safetensors", .partial = true,
 *                    .rename = NG_RENAME("module", "", "fc", "head"), .report = &report)
 *
 * partial  Tensors missing from the file keep their values. Extra tensors in the file are ignored.
 *          A file with no tensor of the module is still an error.
 * verify   The file must have a digest (files of other programs have none).
 * rename   Pairs of names, old and new, applied in order to the file's names. Old is one or more
 *          whole parts between dots; new takes its place, and "" removes it. A pair that matches
 *          no name is an error.
 * report   Filled on success. */
typedef struct {
    bool partial, verify;
    const char *const *rename; /* NG_RENAME */
    ng_load_report *report;
    const char *path;
} ng_module_load_options;
#define ng_module_load(module, ...)                                                                \
    ng_module_load_with(module, NG_LISTED(ng_module_load_options, path, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_module_load_with(ng_module *module,
                                                   ng_module_load_options options);

/* A list of names that ends with NULL. */
#ifndef __cplusplus
#define NG_RENAME(...) ((const char *const[]){__VA_ARGS__, NULL})
#else
#define NG_RENAME(...) (std::initializer_list<const char *>{__VA_ARGS__, NULL}.begin())
#endif
#endif

/* Copies the parameters and buffers of `from` into `to`, a network of the same structure, converted
 * to its dtype: to keep the best network so far, for a target network, for a common start. Make
 * the other network as the first was made. A tensor that only one of them has, or of another shape, and a value beyond the range of that dtype
 * are errors that name the tensor, and nothing is changed. */
NG_API NG_MUST_CHECK ng_status ng_module_copy(ng_module *to, const ng_module *from);

/* The moving average of a network's parameters, to = decay to + (1 - decay) from; buffers are
 * copied. Call it after each step with a decay such as 0.999. The copied running statistics of a
 * BatchNorm are those of other weights: call ng_batch_norm_recompute before `to` is used. Errors as
 * in ng_module_copy, and NG_EVALUE for a decay outside [0, 1]. Polyak & Juditsky 1992. */
NG_API NG_MUST_CHECK ng_status ng_module_average(ng_module *to, const ng_module *from,
                                                 double decay);

/* ---- Layers -------------------------------------------------------------------------------
 *
 * No constructor takes a seed: ng_module_init(net, seed) draws the weights of a network. */

/* How a weight is drawn. fan_in and fan_out are the sizes of what it reads and what it feeds. */
typedef enum {
    NG_INIT_DEFAULT = 0,     /* the layer's own; in ng_init U(-b, b), b = 1 / sqrt(fan_in) */
    NG_INIT_KAIMING_UNIFORM, /* U(-b, b), b = sqrt(6 / fan_in); He et al. 2015 */
    NG_INIT_KAIMING_NORMAL,  /* N(0, 2 / fan_in) */
    NG_INIT_XAVIER_UNIFORM,  /* U(-b, b), b = sqrt(6 / (fan_in + fan_out)); Glorot & Bengio 2010 */
    NG_INIT_XAVIER_NORMAL,   /* N(0, 2 / (fan_in + fan_out)) */
    NG_INIT_NORMAL,          /* N(0, value^2) */
    NG_INIT_CONSTANT         /* value */
} ng_init_kind;

/* Draws a tensor; a matrix is (fan_out, fan_in), a vector has both fans equal to its length.
 * `value` is used by NG_INIT_NORMAL and NG_INIT_CONSTANT only. */
NG_API ng_status ng_init(ng_tensor *x, ng_init_kind kind, double value, ng_rng *rng);

/* Linear: y = x weight^T + bias; weight (out, in), bias (out). Both default to PyTorch's
 * U(-1/sqrt(in), 1/sqrt(in)).   ng_linear_new(64, 128)   ng_linear_new(64, 128, .no_bias = true) */
typedef struct {
    bool no_bias;
    ng_init_kind init; /* of the weight; the bias is then 0 */
    double init_value; /* deviation of NG_INIT_NORMAL (no default), value of NG_INIT_CONSTANT (0) */
    int64_t out;
} ng_linear_new_options;
#define ng_linear_new(in, ...)                                                                     \
    ng_linear_new_with(in, NG_NAMED(ng_linear_new_options, out, __VA_ARGS__))
NG_API ng_module *ng_linear_new_with(int64_t in, ng_linear_new_options options);

/* LayerNorm over the last dimension; parameters weight (gamma, 1) and bias (beta, 0).
 *     ng_layer_norm_new(128)   ng_layer_norm_new(128, .eps = 1e-6) */
typedef struct {
    double eps;              /* default 1e-5 */
    bool no_bias, no_affine; /* without beta; without both */
    bool unit_offset;        /* xhat (1 + weight) + bias, weight from 0 (Apex) */
    bool unbiased;           /* variance over n - 1 */
    bool channels_first;     /* over the channels of (N, dim, ...) instead, at each position */
    int64_t dim;             /* features */
} ng_layer_norm_new_options;
#define ng_layer_norm_new(...)                                                                     \
    ng_layer_norm_new_with(NG_NAMED(ng_layer_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_layer_norm_new_with(ng_layer_norm_new_options options);

/* LayerNorm over whole trailing dimensions; weight and bias have their shape.
 *     ng_layer_norm_over_new(NG_SHAPE(4, 8), .eps = 1e-6) */
typedef struct {
    double eps;              /* default 1e-5 */
    bool no_bias, no_affine; /* without beta; without both */
    bool unit_offset;        /* xhat (1 + weight) + bias, weight from 0 (Apex) */
    bool unbiased;           /* variance over n - 1 */
    ng_shape shape;          /* of those dimensions */
} ng_layer_norm_over_new_options;
#define ng_layer_norm_over_new(...)                                                                \
    ng_layer_norm_over_new_with(NG_NAMED(ng_layer_norm_over_new_options, shape, __VA_ARGS__))
NG_API ng_module *ng_layer_norm_over_new_with(ng_layer_norm_over_new_options options);

/* RMSNorm over the last dimension; parameter weight (gamma, 1). With .condition the factor of xhat
 * is 1 + scale(c) for a condition c (..., condition), as ng_film_new with .features_last and
 * .no_shift makes it, in the child modulation: AdaRMSNorm, Crowson et al. 2024. */
typedef struct {
    double eps;        /* default 1e-6 */
    bool no_affine;    /* without gamma */
    bool unit_offset;  /* xhat (1 + weight), weight from 0 (Gemma) */
    double partial;    /* share of the features that the statistic reads; default 1 */
    int64_t condition; /* features of c; default 0: none */
    int64_t dim;       /* features */
} ng_rms_norm_new_options;
#define ng_rms_norm_new(...)                                                                       \
    ng_rms_norm_new_with(NG_NAMED(ng_rms_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_rms_norm_new_with(ng_rms_norm_new_options options);

/* AdaptiveLayerNorm over the last dimension, xhat = LayerNorm without affine:
 *
 * NG_ADAPTIVE_PROJECTED   y = (W_g x + b_g) * xhat + (W_b x + b_b): scale and shift are made of the
 *                         input itself; children gamma and beta (Linear).
 * NG_ADAPTIVE_CONDITIONED y = (1 + scale(c)) * xhat + shift(c), for a condition c (..., condition)
 *                         whose leading dimensions broadcast against x's; with .gate the result is
 *                         multiplied by gate(c). One Linear makes (shift, scale[, gate]) of c and
 *                         starts at zero: adaLN-Zero; eps 1e-6. Peebles & Xie 2023 (DiT).
 * NG_ADAPTIVE_ADANORM     y = C (1 - k xhat) * xhat; C (1 - k xhat) is a constant in the gradient,
 *                         as published, unless .differentiate; with .raw the factor is
 *                         C (1 - k x) of the input. Xu et al. 2019 normalize it first. */
typedef enum {
    NG_ADAPTIVE_PROJECTED = 0,
    NG_ADAPTIVE_CONDITIONED,
    NG_ADAPTIVE_ADANORM
} ng_adaptive_form;
typedef struct {
    ng_adaptive_form form; /* default NG_ADAPTIVE_PROJECTED */
    double eps;            /* default 1e-5; conditioned 1e-6 */
    int64_t condition;     /* features of c */
    bool gate;
    double scale; /* C, default 1 */
    double k;     /* default 0.1 */
    bool differentiate, raw;
    int64_t dim; /* features of x */
} ng_adaptive_layer_norm_new_options;
#define ng_adaptive_layer_norm_new(...)                                                            \
    ng_adaptive_layer_norm_new_with(NG_NAMED(ng_adaptive_layer_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_adaptive_layer_norm_new_with(ng_adaptive_layer_norm_new_options options);

/* BatchNorm over (N, C), (N, C, L), (N, C, H, W), (N, C, D, H, W)...; parameters weight (1) and
 * bias (0), buffers running_mean (0), running_var (1) and num_batches_tracked (an int64 scalar).
 * Training with one value per channel is an error. The input .mask is that of ng_batch_norm, 0 for
 * padding; it is an error with .ghost. With .condition scale and shift are made of a
 * condition as in ng_film_new, in the child modulation: conditional BatchNorm, de Vries et al.
 * 2017. */
typedef struct {
    double eps;            /* default 1e-5 */
    double momentum;       /* default 0.1 */
    bool cumulative;       /* running statistics are plain averages over all batches */
    bool no_affine;        /* without weight and bias */
    bool no_running_stats; /* evaluation uses the batch too */
    bool frozen;           /* always use running statistics; weight and bias still train */
    int64_t ghost;         /* in training, samples of a sub-batch with its own statistics */
    bool combined;         /* with .ghost: combine them, as in ng_ghost_batch_norm */
    ng_group *group;       /* in training, statistics are over the batches of all ranks
                              (synchronized BatchNorm); it must outlive the layer's last pass */
    int64_t condition;     /* features of c; default 0: none */
    int64_t channels;      /* C */
} ng_batch_norm_new_options;
#define ng_batch_norm_new(...)                                                                     \
    ng_batch_norm_new_with(NG_NAMED(ng_batch_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_batch_norm_new_with(ng_batch_norm_new_options options);

/* Recomputes the running statistics of every BatchNorm in a network over a data set, for averaged
 * weights ("precise BatchNorm", Wu & Johnson 2021, arXiv 2105.07576) or for new data (AdaBN, Li et
 * al. 2017, arXiv 1603.04779). Afterwards running_mean and running_var are the mean and unbiased
 * variance of the layer's inputs in evaluation mode, over all samples, and over those of all ranks
 * for a layer with a .group. The batches only bound the memory: statistics do not depend on their
 * size. The cost is one pass over the data per BatchNorm. num_batches_tracked becomes the number of
 * batches. Frozen layers, those without running statistics and BatchRenorm do not change, nor do
 * the modes of the modules.
 *
 * It calls ng_forward in evaluation. All ranks of a group call it together. NG_EVALUE
 * if there is no BatchNorm to recompute; NG_ESHAPE for fewer than two values per channel. After an
 * error the statistics are what they were. */
struct ng_dataset; /* data.h */
NG_API NG_MUST_CHECK ng_status ng_batch_norm_recompute(ng_module *net, struct ng_dataset *dataset,
                                                       int64_t batch);

/* Activations; the formulas are in ops.h. A slope or an alpha below 0, or for CELU of 0, is
 * NG_EVALUE. */
NG_API ng_module *ng_relu_new(void);
NG_API ng_module *ng_gelu_new(void);
NG_API ng_module *ng_gelu_tanh_new(void);
NG_API ng_module *ng_silu_new(void);
NG_API ng_module *ng_tanh_new(void);
NG_API ng_module *ng_sigmoid_new(void);
NG_API ng_module *ng_softplus_new(void);
NG_API ng_module *ng_glu_new(void); /* halves the last dimension */
NG_API ng_module *ng_leaky_relu_new(double slope);
NG_API ng_module *ng_elu_new(double alpha);
NG_API ng_module *ng_celu_new(double alpha);

/* PReLU; parameter weight (channels), the slope left of 0: one for all, or one for each channel of
 * x (N, C, ...).   ng_prelu_new(1)   He, Zhang, Ren & Sun 2015 */
typedef struct {
    double slope;     /* where it starts; default 0.25 */
    int64_t channels; /* 1 or C */
} ng_prelu_new_options;
#define ng_prelu_new(...) ng_prelu_new_with(NG_NAMED(ng_prelu_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_prelu_new_with(ng_prelu_new_options options);

/* Any function of one tensor as a layer without parameters; the name, at most 47 characters, is
 * what ng_summary shows.   ng_function_new("sin", ng_sin) */
typedef ng_tensor *ng_function(ng_tape *tape, ng_tensor *x);
NG_API ng_module *ng_function_new(const char *name, ng_function *function);

/* Dropout with probability p, in training only. */
NG_API ng_module *ng_dropout_new(double p);

/* Sequential: calls its children one after the other. They are named 0, 1, 2... The sequential owns
 * them, also if the call fails. A module that ng_sequential_add adds keeps its mode: call ng_eval
 * or ng_freeze again if needed. */
NG_API ng_module *ng_sequential_from(ng_module *const *modules, int count);
#ifndef __cplusplus
#define ng_sequential_new(...)                                                                     \
    ng_sequential_from((ng_module *[]){__VA_ARGS__},                                               \
                       (int)(sizeof((ng_module *[]){__VA_ARGS__}) / sizeof(ng_module *)))
#else
NG_END_C
static inline ng_module *ng_sequential_of_list(std::initializer_list<ng_module *> modules)
{
    return ng_sequential_from(modules.begin(), (int)modules.size());
}
#define ng_sequential_new(...) ng_sequential_of_list({__VA_ARGS__})
NG_BEGIN_C
#endif
NG_API ng_status ng_sequential_add(ng_module *sequential, ng_module *module);

/* A list of modules that your code calls by ng_module_child: steps of a loop, heads of a network,
 * networks of an ensemble. It has no forward function. Names and ownership are as in
 * ng_sequential_from. */
NG_API ng_module *ng_list_from(ng_module *const *modules, int count);
#ifndef __cplusplus
#define ng_list_new(...)                                                                           \
    ng_list_from((ng_module *[]){__VA_ARGS__},                                                     \
                 (int)(sizeof((ng_module *[]){__VA_ARGS__}) / sizeof(ng_module *)))
#else
NG_END_C
static inline ng_module *ng_list_of_list(std::initializer_list<ng_module *> modules)
{
    return ng_list_from(modules.begin(), (int)modules.size());
}
#define ng_list_new(...) ng_list_of_list({__VA_ARGS__})
NG_BEGIN_C
#endif
NG_API ng_status ng_list_add(ng_module *list, ng_module *module);

/* Your tensors as the parameters of a module, named 0, 1, 2..., for an optimizer, clipping or a
 * file. They must be float leaves; they then require a gradient. The module owns them, but after an
 * error they are still yours. ng_module_init fills them with 0.
 *
 *     ng_tensor *w = ng_zeros_new(NG_F64, NG_SHAPE(3)), *b = ng_zeros_new(NG_F64, NG_SCALAR);
 *     ng_optimizer *adam = ng_adam_new(ng_parameters_new(NG_TENSORS(w, b))); */
NG_API ng_module *ng_parameters_new(ng_tensor *const *tensors, int count);

/* y = x + inner(x); the child is named inner. The residual owns it, also if the call
 * fails. */
NG_API ng_module *ng_residual_new(ng_module *inner);

/* ---- More norms ----------------------------------------------------------------------------- */

/* GroupNorm over (N, C, ...), a sample's channels in `groups` groups; parameters weight (1) and
 * bias (0) per channel. Wu & He 2018. With .condition scale and shift are made of a condition as in
 * ng_film_new, in the child modulation.   ng_group_norm_new(8, 32) */
typedef struct {
    double eps;        /* default 1e-5 */
    bool no_affine;    /* without parameters */
    int64_t condition; /* features of c; default 0: none */
    int64_t channels;  /* C, a multiple of the groups */
} ng_group_norm_new_options;
#define ng_group_norm_new(groups, ...)                                                             \
    ng_group_norm_new_with(groups, NG_NAMED(ng_group_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_group_norm_new_with(int64_t groups, ng_group_norm_new_options options);

/* InstanceNorm over (N, C, ...): each channel of each sample over its positions, more than one of
 * them. Without parameters unless .affine. Ulyanov, Vedaldi & Lempitsky 2016. With .condition scale
 * and shift are made of a condition as in ng_film_new, in the child modulation (Dumoulin, Shlens &
 * Kudlur 2017). With .style it needs the input .style, s (N, C, ...), whose positions may be others
 * than x's, and y = sqrt(var(s) + eps) xhat + mean(s): AdaIN, Huang & Belongie 2017.
 *
 * With .running_stats evaluation, and a frozen layer, normalize by running statistics, as BatchNorm
 * does. Training still normalizes each sample by itself, and
 *     running_mean += momentum (mean over samples of their means - running_mean)
 *     running_var  += momentum (mean over samples of their unbiased variances - running_var)
 * Buffers as in BatchNorm: PyTorch's track_running_stats. */
typedef struct {
    double eps;         /* default 1e-5 */
    bool affine;        /* parameters weight (1) and bias (0) */
    bool running_stats; /* buffers, for evaluation */
    double momentum;    /* of the running statistics; default 0.1 */
    int64_t condition;  /* features of c; default 0: none */
    bool style;         /* AdaIN; not with .affine or .condition */
    int64_t channels;   /* C */
} ng_instance_norm_new_options;
#define ng_instance_norm_new(...)                                                                  \
    ng_instance_norm_new_with(NG_NAMED(ng_instance_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_instance_norm_new_with(ng_instance_norm_new_options options);

/* Filter response normalization (FRN) of x (N, C, ...) and the thresholded linear unit (TLU): with
 * nu2 the mean of x^2 over the positions of a channel of a sample,
 *     y = max(weight x / sqrt(nu2 + eps) + bias, tau)
 * Parameters weight (1), bias (0) and tau (0) per channel. Singh & Krishnan 2020. Where a channel
 * has few positions, they learn eps: with .learned_eps |eps parameter| is added to .eps, one number
 * from 1e-4; squares are then taken in x's dtype. */
typedef struct {
    double eps;        /* default 1e-6 */
    bool learned_eps;  /* a parameter eps (1) */
    bool no_threshold; /* without max and tau */
    int64_t channels;  /* C */
} ng_filter_response_norm_new_options;
#define ng_filter_response_norm_new(...)                                                           \
    ng_filter_response_norm_new_with(                                                              \
        NG_NAMED(ng_filter_response_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_filter_response_norm_new_with(ng_filter_response_norm_new_options options);

/* Global response normalization (GRN) of x (N, C, ...), with G_c the length of channel c of a
 * sample over its positions:
 *     y = x + weight x G_c / (mean of G over the channels + eps) + bias
 * Parameters weight and bias (0) per channel. Woo et al. 2023 (ConvNeXt V2). */
typedef struct {
    double eps;       /* default 1e-6 */
    int64_t channels; /* C */
} ng_global_response_norm_new_options;
#define ng_global_response_norm_new(...)                                                           \
    ng_global_response_norm_new_with(                                                              \
        NG_NAMED(ng_global_response_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_global_response_norm_new_with(ng_global_response_norm_new_options options);

/* EvoNorm of x (N, C, ...), a norm with an activation in it; parameters weight (1), bias (0) and
 * v (1) per channel. Liu, Brock, Simonyan & Le 2020.
 *
 * B0  y = x / max(sqrt(var_batch + eps), v x + sqrt(var_sample + eps)) weight + bias: var_batch of
 *     a channel over all samples and positions, in evaluation and where frozen running_var (1);
 *     var_sample of a channel of a sample over its positions. In training
 *     running_var += momentum (unbiased var_batch - running_var), and one value per channel is an
 *     error.   ng_evo_norm_new(32)
 * S0  y = x sigmoid(v x) / sqrt(var_group + eps) weight + bias: var_group of a sample over the
 *     positions of a group of C / groups neighbouring channels.
 *     ng_evo_norm_new(32, .groups = 8) */
typedef struct {
    double eps;       /* default 1e-5 */
    int64_t groups;   /* of S0; default 0: B0 */
    double momentum;  /* of B0; default 0.1 */
    int64_t channels; /* C, a multiple of the groups */
} ng_evo_norm_new_options;
#define ng_evo_norm_new(...)                                                                       \
    ng_evo_norm_new_with(NG_NAMED(ng_evo_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_evo_norm_new_with(ng_evo_norm_new_options options);

/* L2 normalization, y = weight x / sqrt(sum x^2 + eps) over the last dimension; parameter weight
 * (dim), a scale for each feature. Liu, Rabinovich & Berg 2015 start it at 10 or 20. */
typedef struct {
    double eps;          /* default 1e-10, so that a row of zeros gives zeros */
    double scale;        /* where weight starts; default 1 */
    bool no_affine;      /* without weight */
    bool channels_first; /* over the channels of (N, dim, ...) instead, at each position */
    int64_t dim;         /* features */
} ng_l2_norm_new_options;
#define ng_l2_norm_new(...) ng_l2_norm_new_with(NG_NAMED(ng_l2_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_l2_norm_new_with(ng_l2_norm_new_options options);

/* ScaleNorm over the last dimension, y = g x / sqrt(sum x^2 + eps); parameter g, one number.
 * Nguyen & Salazar 2019. */
typedef struct {
    double eps;    /* default 1e-10, so that a row of zeros gives zeros */
    double length; /* where g starts; default sqrt(dim) */
    int64_t dim;   /* features */
} ng_scale_norm_new_options;
#define ng_scale_norm_new(...)                                                                     \
    ng_scale_norm_new_with(NG_NAMED(ng_scale_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_scale_norm_new_with(ng_scale_norm_new_options options);

/* DetachNorm over the last dimension: xhat of LayerNorm, without parameters, with mean and
 * deviation constants in the gradient; an option lets the gradient flow through one of them.
 * Through both it is LayerNorm-simple: ng_layer_norm_new(dim, .no_affine = true). Xu et al. 2019.
 */
typedef struct {
    double eps;                       /* default 1e-5 */
    bool mean_flows, deviation_flows; /* the gradient through it */
    int64_t dim;                      /* features */
} ng_detach_norm_new_options;
#define ng_detach_norm_new(...)                                                                    \
    ng_detach_norm_new_with(NG_NAMED(ng_detach_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_detach_norm_new_with(ng_detach_norm_new_options options);

/* DynamicTanh, y = weight tanh(alpha x) + bias over the last dimension; parameters alpha (one
 * number, from 0.5), weight (1) and bias (0). Zhu, Chen, He, LeCun & Liu 2025. */
typedef struct {
    double alpha;   /* where alpha starts; default 0.5 */
    bool no_affine; /* without weight and bias */
    int64_t dim;    /* features */
} ng_dynamic_tanh_new_options;
#define ng_dynamic_tanh_new(...)                                                                   \
    ng_dynamic_tanh_new_with(NG_NAMED(ng_dynamic_tanh_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_dynamic_tanh_new_with(ng_dynamic_tanh_new_options options);

/* Derf, y = weight erf(alpha x + shift) + bias over the last dimension; parameters alpha (one
 * number, from 0.5), shift (one number, 0), weight (1) and bias (0). Chen et al. 2025. */
typedef struct {
    double alpha;   /* where alpha starts; default 0.5 */
    bool no_affine; /* without weight and bias */
    int64_t dim;    /* features */
} ng_derf_new_options;
#define ng_derf_new(...) ng_derf_new_with(NG_NAMED(ng_derf_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_derf_new_with(ng_derf_new_options options);

/* Gated RMSNorm over the last dimension of x, with a gate z of x's shape, which it needs as the
 * input .gate: y = norm(x silu(z)) weight, norm(v) = v / sqrt(mean(v^2) + eps) (Dao & Gu 2024,
 * Mamba-2); with .norm_first y = norm(x) weight silu(z) (Qwen3-Next). Parameter weight (1).
 *     y = ng_forward(norm, tape, x, .gate = z) */
typedef struct {
    double eps;      /* default 1e-5 */
    int64_t groups;  /* neighbouring features with a mean square of their own; default 1 group */
    bool norm_first; /* gate what was normalized */
    int64_t dim;     /* features, a multiple of the groups */
} ng_gated_rms_norm_new_options;
#define ng_gated_rms_norm_new(...)                                                                 \
    ng_gated_rms_norm_new_with(NG_NAMED(ng_gated_rms_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_gated_rms_norm_new_with(ng_gated_rms_norm_new_options options);

/* FiLM, y = (1 + scale(c)) * x + shift(c) for each channel of x (N, channels, ...), without
 * statistics. (shift, scale) are weight c + bias, for a condition c (N, condition); parameters
 * weight (2 channels, condition) and bias (2 channels), both from 0, so that it starts as y = x.
 * Perez et al. 2018. Norms with .condition end in one, which is their child modulation.
 *
 * Of maps c (N, condition, ...) with the positions of x, each position has a scale and a shift of
 * its own: SPADE (Park et al. 2019) is a norm with .condition whose maps come from convolutions. */
typedef struct {
    int64_t condition;  /* features of c */
    bool features_last; /* x is (..., channels), c (..., condition), and their leading dimensions
                           broadcast */
    bool no_shift;      /* without shift; weight and bias have half as many rows */
    int64_t channels;   /* of x */
} ng_film_new_options;
#define ng_film_new(...) ng_film_new_with(NG_NAMED(ng_film_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_film_new_with(ng_film_new_options options);

/* Local response normalization of x (N, C, ...) over `size` neighbouring channels, as in ops.h;
 * without parameters. Squares are taken in the dtype: in float an x beyond 1.8e19 gives 0.
 * Krizhevsky, Sutskever & Hinton 2012. */
typedef struct {
    double alpha; /* default 1e-4 */
    double beta;  /* default 0.75 */
    double k;     /* default 1 */
    int64_t size; /* channels */
} ng_local_response_norm_new_options;
#define ng_local_response_norm_new(...)                                                            \
    ng_local_response_norm_new_with(NG_NAMED(ng_local_response_norm_new_options, size, __VA_ARGS__))
NG_API ng_module *ng_local_response_norm_new_with(ng_local_response_norm_new_options options);

/* Batch renormalization as in ops.h; parameters weight (1) and bias (0), buffers running_mean (0),
 * running_deviation (1) and num_batches_tracked. For .warmup batches it is BatchNorm (r_max 1,
 * d_max 0); over the next .ramp batches the limits rise evenly to r_max and d_max. Ioffe 2017. */
typedef struct {
    double eps;          /* default 1e-5 */
    double momentum;     /* default 0.1 */
    double r_max, d_max; /* default 3 and 5 */
    int64_t warmup, ramp;
    bool no_affine;   /* without weight and bias */
    ng_group *group;  /* as in ng_batch_norm_new */
    int64_t channels; /* C */
} ng_batch_renorm_new_options;
#define ng_batch_renorm_new(...)                                                                   \
    ng_batch_renorm_new_with(NG_NAMED(ng_batch_renorm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_batch_renorm_new_with(ng_batch_renorm_new_options options);

/* DiT's adaLN-Zero block: y = x + gate(c) * inner((1 + scale(c)) * xhat + shift(c)), xhat being
 * LayerNorm without affine. One Linear makes (shift, scale, gate) of silu(c), c (..., condition),
 * and starts at zero, so that the block starts as y = x. inner must keep the shape. The block owns
 * it, also if the call fails. Peebles & Xie 2023.
 *     ng_adaptive_residual_new(mlp, .dim = 128, .condition = 64) */
typedef struct {
    int64_t dim, condition;
    double eps;       /* default 1e-6 */
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_adaptive_residual_new_options;
#define ng_adaptive_residual_new(...)                                                              \
    ng_adaptive_residual_new_with(NG_NAMED(ng_adaptive_residual_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_adaptive_residual_new_with(ng_adaptive_residual_new_options options);

/* WeightNorm of a module that has a parameter "weight" (out, ...) of its own, as Linear, Conv2d and
 * Embedding have: weight = g v / ||v||, with a length g and a direction v for each output, or with
 * .whole one for all. Parameters g, which starts as ||v|| so that nothing changes at first, and
 * inner.weight, which is v. A row of zeros stays 0. The new module owns inner, also if the call
 * fails. The weight of a transposed convolution is (in, ...): there is a length for each input.
 * Salimans & Kingma 2016. With .centred weight = g (v - mean v) / ||v - mean v||, and g starts as
 * that length: centred weight normalization, Huang et al. 2017.
 *     ng_weight_norm_new(ng_linear_new(64, 32)) */
typedef struct {
    bool whole;
    bool centred;
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_weight_norm_new_options;
#define ng_weight_norm_new(...)                                                                    \
    ng_weight_norm_new_with(NG_NAMED(ng_weight_norm_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_weight_norm_new_with(ng_weight_norm_new_options options);

/* Weight standardization of such a module: weight = (v - mean) / sqrt(var + eps), mean and variance
 * over the row of each output, v being the parameter inner.weight. Qiao et al. 2019.
 *     ng_weight_standardization_new(ng_conv2d_new(16, 32, 3)) */
typedef struct {
    double eps;       /* default 1e-5 */
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_weight_standardization_new_options;
#define ng_weight_standardization_new(...)                                                         \
    ng_weight_standardization_new_with(                                                            \
        NG_NAMED(ng_weight_standardization_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_weight_standardization_new_with(ng_weight_standardization_new_options options);

/* SpectralNorm of such a module: weight = W / sigma, where W is inner.weight read as a matrix
 * (out, n) and sigma = u^T W v. Of a transposed convolution W is (in, n); PyTorch has (out, n).
 * Buffers u and v estimate W's first singular vectors. They are drawn at random and iterated 50
 * times when the weights are drawn, so that evaluation works at once. Each forward pass in
 * training starts with one more iteration:
 *     v = W^T u / ||W^T u||   u = W v / ||W v||
 * Evaluation, a frozen layer and a W of zeros (whose weight in use is 0) leave u and v as they
 * are. u and v are constants in the gradient. Miyato et al. 2018. */
typedef struct {
    int iterations; /* in a forward pass; default 1 */
    double eps;     /* least length of W^T u and W v, where W's largest element is 1; default 1e-12:
                       a pass that finds a shorter one leaves u and v as they are */
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_spectral_norm_new_options;
#define ng_spectral_norm_new(...)                                                                  \
    ng_spectral_norm_new_with(NG_NAMED(ng_spectral_norm_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_spectral_norm_new_with(ng_spectral_norm_new_options options);

/* Convolution of x (N, in, H, W); weight (out, in / groups, kernel_h, kernel_w), bias (out), both
 * drawn from U(-b, b), b = 1 / sqrt(in / groups kernel_h kernel_w). The settings are those of
 * ng_conv2d and ng_window_options in ops.h; the kernel has no default.
 *     ng_conv2d_new(1, 16, 3, .padding = 1)
 *     ng_conv2d_new(16, 32, 3, .stride = 2, .kernel_w = 5) */
typedef struct {
    int64_t stride, padding, dilation, groups;            /* for rows and columns alike */
    int64_t kernel_h, kernel_w, stride_h, stride_w;       /* for rows and for columns */
    int64_t padding_h, padding_w, dilation_h, dilation_w; /* the same */
    bool no_bias; /* use it before a BatchNorm, which subtracts any bias */
    int64_t kernel;
} ng_conv2d_new_options;
#define ng_conv2d_new(in, out, ...)                                                                \
    ng_conv2d_new_with(in, out, NG_NAMED(ng_conv2d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv2d_new_with(int64_t in, int64_t out, ng_conv2d_new_options options);

/* Convolution of lines x (N, in, L); weight (out, in / groups, kernel), bias (out), drawn alike.
 * The settings are ng_conv1d's.   ng_conv1d_new(16, 32, 5, .padding = 2) */
typedef struct {
    int64_t stride, padding, dilation, groups; /* of ng_conv1d */
    bool no_bias;                              /* without bias */
    int64_t kernel;                            /* its length */
} ng_conv1d_new_options;
#define ng_conv1d_new(in, out, ...)                                                                \
    ng_conv1d_new_with(in, out, NG_NAMED(ng_conv1d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv1d_new_with(int64_t in, int64_t out, ng_conv1d_new_options options);

/* Transposed convolution of images x (N, in, H, W) or lines x (N, in, L); weight (in, out / groups,
 * kernel_h, kernel_w) or (in, out / groups, kernel), bias (out), both drawn from U(-b, b) as in
 * PyTorch, b = 1 / sqrt(out / groups kernel_h kernel_w). The settings, and how large the result
 * is, stand at ng_conv_transpose2d.
 *     ng_conv_transpose2d_new(32, 16, 4, .stride = 2, .padding = 1)    twice as large */
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups; /* for rows and columns alike */
    int64_t kernel_h, kernel_w, stride_h, stride_w;            /* for rows and for columns */
    int64_t padding_h, padding_w, dilation_h, dilation_w;      /* the same */
    int64_t output_padding_h, output_padding_w;                /* the same */
    bool no_bias;                                              /* without bias */
    int64_t kernel;
} ng_conv_transpose2d_new_options;
#define ng_conv_transpose2d_new(in, out, ...)                                                      \
    ng_conv_transpose2d_new_with(in, out,                                                          \
                                 NG_NAMED(ng_conv_transpose2d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv_transpose2d_new_with(int64_t in, int64_t out,
                                               ng_conv_transpose2d_new_options options);
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups; /* of ng_conv_transpose1d */
    bool no_bias;                                              /* without bias */
    int64_t kernel;                                            /* its length */
} ng_conv_transpose1d_new_options;
#define ng_conv_transpose1d_new(in, out, ...)                                                      \
    ng_conv_transpose1d_new_with(in, out,                                                          \
                                 NG_NAMED(ng_conv_transpose1d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv_transpose1d_new_with(int64_t in, int64_t out,
                                               ng_conv_transpose1d_new_options options);

/* Lines (N, C, L) or images (N, C, H, W) at `scale` times their size, as ng_upsample in ops.h.
 *     ng_upsample_new(2, .mode = NG_LINEAR) */
#define ng_upsample_new(...) ng_upsample_new_with(NG_NAMED(ng_upsample_options, scale, __VA_ARGS__))
NG_API ng_module *ng_upsample_new_with(ng_upsample_options options);

/* Pooling of x (N, C, H, W), or of lines (N, C, L); flattening of any x (N, ...). The formulas
 * are in ops.h.
 *     ng_max_pool2d_new(2)   ng_avg_pool1d_new(3, .stride = 2, .padding = 1) */
#define ng_max_pool2d_new(...)                                                                     \
    ng_max_pool2d_new_with(NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
#define ng_avg_pool2d_new(...)                                                                     \
    ng_avg_pool2d_new_with(NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_max_pool2d_new_with(ng_window_options window);
NG_API ng_module *ng_avg_pool2d_new_with(ng_window_options window);
#define ng_max_pool1d_new(...)                                                                     \
    ng_max_pool1d_new_with(NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
#define ng_avg_pool1d_new(...)                                                                     \
    ng_avg_pool1d_new_with(NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_max_pool1d_new_with(ng_pool1d_options options);
NG_API ng_module *ng_avg_pool1d_new_with(ng_pool1d_options options);
NG_API ng_module *
ng_adaptive_avg_pool_new(ng_shape size); /* NG_SHAPE(7, 7), or (length) of lines */
NG_API ng_module *ng_adaptive_max_pool_new(ng_shape size);
NG_API ng_module *ng_global_avg_pool_new(void); /* (N, C, H, W) -> (N, C) */
NG_API ng_module *ng_flatten_new(void);         /* (N, ...) -> (N, all the others) */

/* ---- The transformer ----------------------------------------------------------------------- */

/* Embedding: int64 ids of any shape -> (..., dim), row by row of weight (count, dim), drawn from
 * N(0, deviation^2). An id outside 0 .. count - 1 is an error.
 *     ng_embedding_new(65, 128)   ng_embedding_new(65, 128, .padded = true, .padding = 0) */
typedef struct {
    double deviation; /* default 1 */
    bool padded;      /* there is an id of padding: in ng_embedding_new only */
    int64_t
        padding; /* that id, PyTorch's padding_idx: its row is drawn as zeros and gets no gradient
                         from here */
    int64_t dim;
} ng_embedding_new_options;
#define ng_embedding_new(count, ...)                                                               \
    ng_embedding_new_with(count, NG_NAMED(ng_embedding_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_embedding_new_with(int64_t count, ng_embedding_new_options options);

/* LearnedPositions: y = x + weight[t] for x (..., T, dim); weight (length, dim), and T is at most
 * length. Rotary positions are an option of the attention. */
#define ng_learned_positions_new(length, ...)                                                      \
    ng_learned_positions_new_with(length, NG_NAMED(ng_embedding_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_learned_positions_new_with(int64_t length, ng_embedding_new_options options);

/* A function that makes a norm over `dim` features. Modules with norms inside take one as an
 * option: one of these or your own. */
typedef ng_module *ng_norm_maker(int64_t dim);
NG_API ng_module *ng_norm_layer(int64_t dim);
NG_API ng_module *ng_norm_rms(int64_t dim);
/* BatchNorm over all positions of all samples. The input .mask has x's shape without features;
 * positions where it is 0 are left out. A transformer's block passes the key mask to it, a
 * recurrent layer the mask of the steps within the rows' lengths. */
NG_API ng_module *ng_norm_batch(int64_t dim);
NG_API ng_module *ng_norm_scale(int64_t dim);
NG_API ng_module *ng_norm_dynamic_tanh(int64_t dim);
NG_API ng_module *ng_norm_derf(int64_t dim);
NG_API ng_module *ng_norm_none(int64_t dim); /* y = x */

/* MultiHeadAttention: y = attention(q, k, v) W_o + b_o. Vaswani et al. 2017.
 *
 * Self-attention takes x (N, T, dim); q, k and v are parts of x W + b. The input .mask is that of
 * ng_attention: (N, T), 0 for a key that no query sees, or (1 or N, T, T), 0 for a key that a query
 * does not see. Parameters: in_weight (dim + 2 kv, dim), in_bias, out_weight (dim, dim), out_bias.
 * kv is dim, or with .kv_heads dim times kv_heads / heads.
 *
 * Cross-attention (.context) makes q of x, and k and v of another sequence (N, S, context), which
 * it needs as the input .memory; .memory_mask is a mask (N, S) or (1 or N, T, S). The parameters
 * q_weight (dim, dim), k_weight (kv, context) and v_weight (kv, value_context) replace in_weight.
 *
 * Each matrix is drawn as Xavier's normal.
 *     ng_multi_head_attention_new(128, 4, .causal = true, .qk_norm = ng_norm_rms)
 *     ng_multi_head_attention_new(128, 8, .kv_heads = 2)   ..._new(128, 8, .context = 64) */
typedef struct {
    bool causal, no_bias;   /* no position sees a later one; without in_bias, out_bias */
    bool rotary;            /* rotary positions for q and k; Su et al. 2021 */
    double rotary_base;     /* default 10000 */
    ng_norm_maker *qk_norm; /* of each head of q and k; Dehghani et al. 2023 */
    ng_norm_maker *v_norm;  /* of each head of v */
    double qk_temperature;  /* q and k of each head are divided by their lengths, and the weights
                               are softmax(g q k^T), g one learned number that starts here, the
                               parameter q_norm.g; default: not so. Henry et al. 2020, who start at
                               log2(L^2 - L) for sequences of length L; not with .qk_norm */
    double dropout;         /* of the attention weights, in training */
    double gain;            /* factor of the drawn weights of v and W_o; default 1 */
    int64_t kv_heads;       /* heads of k and v, a divisor of heads, each shared by neighbouring
                               heads of q; default heads. Ainslie et al. 2023 */
    int64_t context;        /* features of the other sequence; default: self-attention */
    int64_t value_context;  /* of values of their own, in ng_forward_attention; default context */
    int64_t heads;          /* divides dim */
} ng_multi_head_attention_new_options;
#define ng_multi_head_attention_new(dim, ...)                                                      \
    ng_multi_head_attention_new_with(                                                              \
        dim, NG_NAMED(ng_multi_head_attention_new_options, heads, __VA_ARGS__))
NG_API ng_module *ng_multi_head_attention_new_with(int64_t dim,
                                                   ng_multi_head_attention_new_options options);

/* y (N, T, dim) of queries x (N, T, dim), keys (N, S, context) and values (N, S, value_context),
 * which may be one tensor, and a mask as in ng_attention or NG_NONE. Of a module without .context
 * keys and values are x. Another module is NG_EVALUE.
 *
 * weights  gets the weights (N, heads, T, S), as in ng_attention
 *     ng_forward_attention(attention, tape, x, x, x, NG_NONE, .weights = &weights) */
typedef struct {
    ng_tensor **weights;
    ng_tensor *mask;
} ng_forward_attention_options;
#define ng_forward_attention(module, tape, x, keys, values, ...)                                   \
    ng_forward_attention_with(module, tape, x, keys, values,                                       \
                              NG_NAMED(ng_forward_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_forward_attention_with(ng_module *module, ng_tape *tape, ng_tensor *x,
                                            ng_tensor *keys, ng_tensor *values,
                                            ng_forward_attention_options options);

/* FeedForward: y = f(x W_1^T + b_1) W_2^T + b_2; with NG_FEED_FORWARD_SWIGLU y = (silu(a) b) W_2^T
 * + b_2, where a and b are halves of x W_1^T + b_1 (Shazeer 2020). Parameters in_weight (hidden,
 * dim), twice as high for SwiGLU, in_bias, out_weight (dim, hidden), out_bias. */
typedef enum {
    NG_FEED_FORWARD_GELU = 0,  /* f = gelu */
    NG_FEED_FORWARD_GELU_TANH, /* f = gelu_tanh */
    NG_FEED_FORWARD_RELU,      /* f = relu */
    NG_FEED_FORWARD_SWIGLU     /* two halves, multiplied */
} ng_feed_forward_activation;
typedef struct {
    int64_t hidden; /* default 4 dim; for SwiGLU 8/3 dim, so that the weights are as many */
    ng_feed_forward_activation activation; /* default NG_FEED_FORWARD_GELU */
    bool no_bias;                          /* without b_1 and b_2 */
    double gain;                           /* factor of the drawn weights; default 1 */
    int64_t dim;
} ng_feed_forward_new_options;
#define ng_feed_forward_new(...)                                                                   \
    ng_feed_forward_new_with(NG_NAMED(ng_feed_forward_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_feed_forward_new_with(ng_feed_forward_new_options options);

/* Where a block has its norms, f being its attention and then its feed-forward. To train without
 * norms, give .norm a layer that takes their place: ng_norm_dynamic_tanh (Zhu et al. 2025) or
 * ng_norm_derf (Chen et al. 2025). */
typedef enum {
    NG_NORM_PRE = 0, /* x + f(norm(x)); Xiong et al. 2020 */
    NG_NORM_POST,    /* norm(x + f(x)); Vaswani et al. 2017 */
    NG_NORM_PERI,    /* Peri-LN, a sandwich: x + norm(f(norm(x))); Ding et al. 2021, Kim et al. 2025
                        (without their optional norm of the embedding) */
    NG_NORM_DEEP,    /* DeepNorm: norm(alpha x + f(x)), alpha = (2 layers)^(1/4), and the weights of
                        v, W_o and feed-forward drawn beta = (8 layers)^(-1/4) times as wide; Wang
                        et al. 2022 */
    NG_NORM_HYBRID,  /* HybridNorm: y = norm(x + attention(x)), y + feed_forward(y), with norms of
                        each head of q, k and v, made by .norm; Zhuo et al. 2025 */
    NG_NORM_DUAL,    /* ResiDual: two streams x and d, which begin as the embedding, become
                        norm(x + f(x)) and d + f(x); the head takes x + norm(d); Xie et al. 2023 */
    NG_NORM_SCALED,  /* LayerNorm scaling: x + f(norm(x) / sqrt(layer)), the layers counted from 1;
                        Sun et al. 2025 */
    NG_NORM_MIX      /* Mix-LN: the first blocks post-norm, the others pre-norm; not for a single
                        block; Li et al. 2024 */
} ng_norm_placement;

/* TransformerBlock of x (N, T, dim); the input .mask is a key mask (N, T).
 * Children attention, attention_norm, feed_forward, feed_forward_norm (not with NG_NORM_HYBRID),
 * .._after for the second norms of NG_NORM_PERI, and .._dropout. With NG_NORM_DUAL x is
 * (N, T, 2 dim), the two streams side by side.
 *     ng_transformer_block_new(128, 4, .norm = ng_norm_rms, .placement = NG_NORM_PERI) */
typedef struct {
    int64_t hidden;                        /* of the feed-forward */
    ng_norm_maker *norm;                   /* default ng_norm_layer */
    ng_norm_placement placement;           /* default NG_NORM_PRE */
    int64_t layers;                        /* of the whole stack, for NG_NORM_DEEP; default 1 */
    int64_t layer;                         /* place in the stack, for NG_NORM_SCALED; default 1 */
    ng_feed_forward_activation activation; /* of the feed-forward */
    double dropout;               /* of the attention weights, and of what each branch adds */
    bool causal, rotary, no_bias; /* as in ng_multi_head_attention_new */
    ng_norm_maker *qk_norm;       /* the same */
    double qk_temperature;        /* the same */
    int64_t kv_heads;             /* the same */
    int64_t heads;                /* divides dim */
} ng_transformer_block_new_options;
#define ng_transformer_block_new(dim, ...)                                                         \
    ng_transformer_block_new_with(dim,                                                             \
                                  NG_NAMED(ng_transformer_block_new_options, heads, __VA_ARGS__))
NG_API ng_module *ng_transformer_block_new_with(int64_t dim,
                                                ng_transformer_block_new_options options);

/* Transformer, a language model: int64 ids (N, T) -> logits (N, T, vocabulary), T at most length.
 * Children embedding, positions, blocks (a Sequential), norm (not with NG_NORM_POST and
 * NG_NORM_DEEP, whose blocks end in one) and head. The input .mask is a key mask (N, T).
 *     ng_transformer_new(65, .norm = ng_norm_rms, .positions = NG_POSITIONS_ROTARY) */
typedef enum {
    NG_POSITIONS_LEARNED = 0, /* ng_learned_positions_new, after the embedding */
    NG_POSITIONS_ROTARY,      /* in every attention */
    NG_POSITIONS_NONE         /* only the causal mask tells them */
} ng_positions;
typedef struct {
    int64_t dim, heads, layers, length;    /* default 128, 4, 4, 128 */
    int64_t hidden;                        /* of the feed-forward */
    ng_norm_maker *norm;                   /* default ng_norm_layer */
    ng_norm_placement placement;           /* default NG_NORM_PRE */
    double post_share;                     /* of the blocks, rounded down, for NG_NORM_MIX; default
                                              0.25. Such a block must be there */
    ng_positions positions;                /* default NG_POSITIONS_LEARNED */
    ng_feed_forward_activation activation; /* of the feed-forward */
    double dropout;                        /* of the embedded ids, and in the blocks */
    bool bidirectional;                    /* every position sees every other */
    bool no_bias;                          /* in attention and feed-forward */
    ng_norm_maker *qk_norm;                /* of each head of q and k */
    double qk_temperature;                 /* as in ng_multi_head_attention_new */
    int64_t kv_heads;                      /* of keys and values; default heads */
    int64_t vocabulary;                    /* ids are 0 .. vocabulary - 1 */
} ng_transformer_new_options;
#define ng_transformer_new(...)                                                                    \
    ng_transformer_new_with(NG_NAMED(ng_transformer_new_options, vocabulary, __VA_ARGS__))
NG_API ng_module *ng_transformer_new_with(ng_transformer_new_options options);

/* ---- Recurrent networks ---------------------------------------------------------------------
 *
 * RNN, GRU and LSTM over x (N, T, features) -> y (N, T, hidden), twice as wide if .bidirectional:
 * the state h of the last layer after each step; the formulas are in ops.h. The input .lengths has
 * the rows' lengths, int64 (N). Parameters have the names, shapes and
 * order of gates of PyTorch: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0,
 * weight_ih_l0_reverse... All are drawn from U(-b, b), b = 1 / sqrt(hidden).
 *
 *     ng_lstm_new(64, 128)
 *     ng_gru_new(64, 128, .layers = 3, .bidirectional = true, .dropout = 0.1)
 *     ng_lstm_new(64, 128, .norm = ng_norm_layer)
 *
 * With .norm the cell is that of Ba, Kiros & Hinton 2016, where LayerNorm began, each norm a child
 * of its own, named norm_ih_l0 (and norm_ih_l0_reverse...):
 *
 * RNN   h' = tanh(norm(W_ih x + W_hh h) + b), b = b_ih + b_hh
 * GRU   r, z = s(norm_ih(W_ih x) + norm_hh(W_hh h) + b)
 *       n = tanh(norm_in(W_in x) + b_in + r * (norm_hn(W_hn h) + b_hn))    h' = (1 - z) * n + z * h
 * LSTM  i, f, g, o = norm_ih(W_ih x) + norm_hh(W_hh h) + b
 *       c' = s(f) * c + s(i) * tanh(g)    h' = s(o) * tanh(norm_c(c')) */
typedef struct {
    int64_t layers;      /* one on the other; default 1 */
    bool bidirectional;  /* each layer forward and back, h of both side by side */
    bool no_bias;        /* without bias_ih and bias_hh */
    bool relu;           /* max(0, ...) for tanh; in ng_rnn_new only */
    double dropout;      /* of what a layer hands to the next, in training */
    ng_norm_maker *norm; /* in the cell; default none */
    int64_t hidden;      /* features of h */
} ng_recurrent_new_options;
#define ng_rnn_new(features, ...)                                                                  \
    ng_rnn_new_with(features, NG_NAMED(ng_recurrent_new_options, hidden, __VA_ARGS__))
#define ng_gru_new(features, ...)                                                                  \
    ng_gru_new_with(features, NG_NAMED(ng_recurrent_new_options, hidden, __VA_ARGS__))
#define ng_lstm_new(features, ...)                                                                 \
    ng_lstm_new_with(features, NG_NAMED(ng_recurrent_new_options, hidden, __VA_ARGS__))
NG_API ng_module *ng_rnn_new_with(int64_t features, ng_recurrent_new_options options);
NG_API ng_module *ng_gru_new_with(int64_t features, ng_recurrent_new_options options);
NG_API ng_module *ng_lstm_new_with(int64_t features, ng_recurrent_new_options options);

/* y from the given state on, which becomes the state after the last step: h, and of an LSTM c, each
 * (layers directions, N, hidden), or NG_NONE for zeros; a GRU's and an RNN's c stays NG_NONE.
 * lengths as in ng_forward, or NG_NONE.
 *
 *     ng_recurrent_state state = NG_NO_STATE;
 *     ng_tensor *y = ng_forward_recurrent(lstm, tape, x, NG_NONE, &state);
 *
 * The state is the tape's: to go on from it after ng_tape_reset, keep copies (ng_copy_new). A
 * module that is no RNN, GRU or LSTM is NG_EVALUE. */
NG_API ng_tensor *ng_forward_recurrent(ng_module *module, ng_tape *tape, ng_tensor *x,
                                       ng_tensor *lengths, ng_recurrent_state *state);

/* ---- Your own module -----------------------------------------------------------------------
 *
 * A struct that begins with an ng_module, a class, a constructor and a forward function. This layer
 * computes x (1 + W c) weight for a condition c:
 *
 *     typedef struct { ng_module base; ng_tensor *weight; ng_module *project; } my_layer;
 *
 *     static ng_tensor *my_forward(ng_module *m, ng_tape *tape, const ng_inputs *in)
 *     {
 *         my_layer *self = (my_layer *)m;
 *         ng_tensor *scale = ng_forward(self->project, tape, in->condition);
 *         ng_tensor *y = ng_mul(tape, in->x, ng_add_scalar(tape, scale, 1));
 *         return ng_mul(tape, y, ng_parameter_value(tape, self->weight));
 *     }
 *
 *     static const ng_module_class my_class = {.name = "MyLayer",
 *                                              .size = sizeof(my_layer),
 *                                              .forward_with = my_forward,
 *                                              .needs = NG_INPUT_CONDITION};
 *
 *     ng_module *my_layer_new(int64_t dim, int64_t condition)
 *     {
 *         my_layer *self = (my_layer *)ng_module_new(&my_class);
 *         if (!self) return NULL;
 *         self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(dim), .value = 1);
 *         self->project = ng_module_add_child(&self->base, "project",
 *                                             ng_linear_new(condition, dim));
 *         return ng_module_built(&self->base);
 *     }
 *
 * Gradients, names, freezing, saving and the summary follow. ng_check_module checks it. */
typedef struct {
    const char *name; /* "LayerNorm" */
    size_t size;      /* of the struct that embeds ng_module */

    /* The output for x. Of a class that needs no other input and has no children that do. */
    ng_tensor *(*forward)(ng_module *self, ng_tape *tape, ng_tensor *x);
    /* In its place: the output for x and named inputs, which are NG_NONE where they are left out. A
     * container passes them on with ng_forward_child. */
    ng_tensor *(*forward_with)(ng_module *self, ng_tape *tape, const ng_inputs *inputs);
    unsigned takes; /* NG_INPUT_ names that it uses where they are given */
    unsigned needs; /* those without which it is not called */

    /* Draws the module's own parameters, at the first use and in ng_module_init. A parameter that it
     * leaves alone has the value with which it was registered. Children are drawn before. Optional, like the next two. */
    void (*init)(ng_module *self, ng_rng *rng);

    /* Frees what is not registered; also of an instance that is still zeroed. */
    void (*destroy)(ng_module *self);

    /* Writes the settings as text, such as "128, eps=1e-05" for LayerNorm(128, eps=1e-05). Write
     * all settings with all digits: ng_training_resume and ng_parallel_new compare layers by this
     * text (ng_module_load does not). If it fills all bytes, the function is called again with
     * more. */
    void (*describe)(const ng_module *self, char *text, size_t bytes);
} ng_module_class;

/* What every module begins with. */
struct ng_module {
    const ng_module_class *type;  /* its functions */
    bool training;                /* what ng_train and ng_eval say */
    bool frozen;                  /* what ng_freeze and ng_unfreeze say */
    unsigned takes, needs;        /* the class's; a constructor may change them */
    struct ng_registry *registry; /* parameters, buffers, children: module.c's */
};

/* Returns a zeroed instance of type->size with nothing registered yet. NG_ENULL without a name,
 * NG_EVALUE if the size is less than an ng_module's. */
NG_API ng_module *ng_module_new(const ng_module_class *type);

/* Registers a parameter under a name without '.', and returns it; the module owns it. A failure
 * is remembered by the module for ng_module_built.
 *     ng_module_add_parameter(&self->base, "gamma", NG_SHAPE(dim), .value = 1) */
typedef struct {
    double value;   /* of every element, in a new module and before the class's init; default 0 */
    bool left_out;  /* nothing is registered, and NG_NONE returned */
    ng_shape shape; /* of the parameter */
} ng_module_add_parameter_options;
#define ng_module_add_parameter(self, name, ...)                                                   \
    ng_module_add_parameter_with(self, name,                                                       \
                                 NG_NAMED(ng_module_add_parameter_options, shape, __VA_ARGS__))
NG_API ng_tensor *ng_module_add_parameter_with(ng_module *self, const char *name,
                                               ng_module_add_parameter_options options);

/* Registers a buffer, filled with `value`, and returns it. */
NG_API ng_tensor *ng_module_add_buffer(ng_module *self, const char *name, ng_shape shape,
                                       double value);

/* The output of a child for x, which is also given the other inputs of `inputs`. */
NG_API ng_tensor *ng_forward_child(ng_module *child, ng_tape *tape, ng_tensor *x,
                                   const ng_inputs *inputs);

/* Registers a child and returns it; a forward function calls it with ng_forward, or a container's
 * with ng_forward_child. The child belongs
 * to self from this call on, also if the call fails. A NULL child is a failure, remembered for
 * ng_module_built. A child keeps its modes, also if self is frozen or in evaluation. */
NG_API ng_module *ng_module_add_child(ng_module *self, const char *name, ng_module *child);

/* Returns the value of a parameter in this pass: the parameter itself (or NG_NONE), or the tensor
 * with which WeightNorm, SpectralNorm or ng_forward_using replaces it. A forward function reads
 * every parameter through it: an op on a parameter that is replaced is NG_ESTATE. */
NG_API ng_tensor *ng_parameter_value(ng_tape *tape, ng_tensor *parameter);

/* Ends a constructor: returns self. If anything could not be registered
 * since self was made, frees it and returns NULL. */
NG_API ng_module *ng_module_built(ng_module *self);

NG_END_C

#endif
