/* The tape: records what is computed, owns it, and walks it backwards. */
#ifndef NORMGRAD_TAPE_H
#define NORMGRAD_TAPE_H

#include <normgrad/tensor.h>

NG_BEGIN_C

/* A tape is used by one thread at a time; different tapes are independent. */
typedef struct ng_tape ng_tape;
NG_API ng_tape *ng_tape_new(void);
NG_API void ng_tape_free(ng_tape *tape);

/* Ends the life of every tensor computed on the tape, at once. The memory is kept for the next
 * step, so that a training loop in its steady state allocates nothing. A tensor from before the
 * reset must not be used: an op refuses it (NG_ESTATE) as long as no new result has taken its
 * memory. After that the pointer shows other data, which is noticed in no case. The functions that
 * read a tensor without a tape (ng_get, ng_data_f32, ng_print) never notice. */
NG_API void ng_tape_reset(ng_tape *tape);

/* Hands a tensor of your own to the tape, which frees it at its next reset, and returns it:
 *     ng_tensor *x = ng_tape_own(tape, ng_normal_new(NG_F32, NG_SHAPE(32, 64), 0, 1, &rng));
 * From then on it is read-only and lives on this tape alone, as a result does; it stays a leaf,
 * with its gradient. A tensor that this tape owns already is returned as it is. NG_ESTATE for a
 * module's tensor, a leaf's gradient and what lives on another tape. After any error x is still
 * yours. */
NG_API ng_tensor *ng_tape_own(ng_tape *tape, ng_tensor *x);

/* Seeds the stream that dropout draws from (a new tape has seed 0). */
NG_API void ng_tape_seed(ng_tape *tape, uint64_t seed);

/* Switches recording on or off and returns what it was. While it is off, results need no
 * gradient and nothing is kept for a backward pass:
 *     bool was = ng_tape_set_recording(tape, false);
 *     ...evaluate...
 *     ng_tape_set_recording(tape, was); */
NG_API bool ng_tape_set_recording(ng_tape *tape, bool on);
NG_API bool ng_tape_recording(const ng_tape *tape);

/* What the tape holds now: recorded ops, and bytes in use and kept. */
typedef struct {
    int64_t ops;
    int64_t bytes_used, bytes_kept; /* kept: for the next step too */
} ng_tape_usage;
NG_API ng_tape_usage ng_tape_used(const ng_tape *tape);

/* ---- Gradients ---------------------------------------------------------------------------- */

/* Adds d loss / d leaf to the gradient of every leaf that requires one and that the loss
 * depends on. `loss` has one element. May be called again, for another loss or the same. What was
 * frozen since (ng_freeze) gets none; NG_EGRAD where nothing else is left. Nor does what was frozen
 * when it was used, and is not any more. After an error no gradient has changed, but for one that
 * an optimizer's step has used: where the pass has come to it already, it is gone (ng_has_grad). */
NG_API NG_MUST_CHECK ng_status ng_backward(ng_tape *tape, ng_tensor *loss);

/* The same for a y of any shape, contracted with the cotangent dy (y's shape and dtype). */
NG_API NG_MUST_CHECK ng_status ng_backward_from(ng_tape *tape, ng_tensor *y, ng_tensor *dy);

/* Gradients of any outputs with respect to any inputs (leaves or intermediates), contracted with
 * cotangents and summed over the outputs: gradients[j] = sum_i cotangents[i] . d outputs[i] / d
 * inputs[j], in the shape of inputs[j], owned by the tape. Leaves' own gradients are not touched.
 *
 *     ng_gradients(tape, &y, 1, inputs, 2, gradients, .record = true)
 *
 * cotangents    one per output, or NULL: ones
 * record        record the gradients too, so that they can be differentiated again
 * allow_unused  an input that no output depends on has gradient 0, in place of NG_EGRAD */
typedef struct {
    ng_tensor *const *cotangents;
    bool record, allow_unused;
    ng_tensor **gradients;
} ng_gradients_options;
#define ng_gradients(tape, outputs, n_outputs, inputs, n_inputs, ...)                              \
    ng_gradients_with(tape, outputs, n_outputs, inputs, n_inputs,                                  \
                      NG_NAMED(ng_gradients_options, gradients, __VA_ARGS__))
NG_API ng_status ng_gradients_with(ng_tape *tape, ng_tensor *const *outputs, int n_outputs,
                                   ng_tensor *const *inputs, int n_inputs,
                                   ng_gradients_options options);

/* The gradient of one output with respect to one input, with the settings of ng_gradients; the
 * cotangent has y's shape, default ones: ng_gradient(tape, y, x, .record = true). */
typedef struct {
    ng_tensor *cotangent;
    bool record, allow_unused; /* as in ng_gradients */
    ng_tensor *x;
} ng_gradient_options;
#define ng_gradient(tape, y, ...)                                                                  \
    ng_gradient_with(tape, y, NG_NAMED(ng_gradient_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_gradient_with(ng_tape *tape, ng_tensor *y, ng_gradient_options options);

/* x's value as a constant: no gradient flows through it. The gradient checker holds it fixed while
 * it moves the inputs, and tells that it did, with the place of this call.
 *
 * by_definition  the constant is what the formula says, as AdaNorm's does of its factor, and no
 *                oversight: the checker counts it apart */
typedef struct {
    bool by_definition;
    ng_tensor *x;
} ng_detach_options;
#define ng_detach(tape, ...)                                                                       \
    ng_detach_with(tape, NG_HERE, NG_NAMED(ng_detach_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_detach_with(ng_tape *tape, const char *place, ng_detach_options options);

/* x's value as a leaf of the tape that requires a gradient: where a gradient to an intermediate is
 * wanted and none through it (an adversarial example, a saliency map, the points of a gradient
 * penalty or of a differential equation):
 *
 *     ng_tensor *v = ng_variable(tape, ng_add(tape, real, ng_mul(tape, mix, off)));
 *     ng_tensor *slope = ng_gradient(tape, ng_forward(critic, tape, v), v, .record = true);
 *
 * ng_backward leaves its gradient in it (ng_grad), which lives as long as the tape's other results.
 * To the checker it is a detached value; settings as in ng_detach. */
#define ng_variable(tape, ...)                                                                     \
    ng_variable_with(tape, NG_HERE, NG_NAMED(ng_detach_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_variable_with(ng_tape *tape, const char *place, ng_detach_options options);

/* The place where it is written, "my_norm.c:42". */
#define NG_HERE __FILE__ ":" NG_LINE_TEXT(__LINE__)
#define NG_LINE_TEXT(line) NG_LINE_TEXT_OF(line)
#define NG_LINE_TEXT_OF(line) #line

/* Writes the graph that leads to `root` as Graphviz text, ops as boxes with their names, tensors
 * with their shapes: ng_tape_write_dot(tape, loss, "graph.dot"); then dot -Tsvg graph.dot. The file
 * is replaced only when it is complete (history.h). */
NG_API ng_status ng_tape_write_dot(const ng_tape *tape, const ng_tensor *root, const char *path);

/* ---- Your own op ---------------------------------------------------------------------------
 *
 * An op computes a result on the tape and records how it was made:
 *
 *     ng_tensor *cube(ng_tape *tape, ng_tensor *x)
 *     {
 *         if (!ng_accepts("cube", tape, 1, &x)) return NULL;
 *         ng_tensor *y = ng_result(tape, ng_dtype_of(x), ng_shape_of(x));
 *         if (!y) return NULL;
 *         ...write y's elements...
 *         return ng_record(tape, &cube_op, y, &x, 1, NULL, 0);
 *     }
 *
 * and states its gradient in one or two of three ways. A *primitive* has `gradient`, a rule made
 * of ng_ ops: recorded again, it gives gradients of any order. A *fused* op has a `backward`
 * kernel for speed and a `definition`, the same value composed of primitives: documentation, test
 * oracle, and the gradient of the gradient. A primitive may have a `backward` kernel besides. An
 * op with none of them fails loudly when its gradient is asked for.
 */
typedef struct ng_op ng_op;
typedef struct ng_node ng_node;

/* Where a backward kernel leaves the gradient of one input: `data` has the input's shape and
 * dtype, and is NULL where no gradient is wanted; `accumulate` says add to what stands there (the
 * memory is otherwise uninitialised). */
typedef struct {
    void *data;
    bool accumulate;
} ng_slot;

/* What an op is called, and how it is differentiated. */
struct ng_op {
    const char *name; /* "cube", for messages and graphs; NG_ENULL without one */

    /* Leaves in dx[i] the gradient of each input for which ng_requires_grad(node->inputs[i]),
     * made of dy, inputs and output by ng_ ops; NG_NONE is a gradient of zero. Where dx[i] is
     * NG_NONE already, it is not asked for. */
    void (*gradient)(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx);

    /* The same straight into memory. */
    ng_status (*backward)(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx);

    /* The output, composed of primitives from node->inputs and node->attributes. */
    ng_tensor *(*definition)(ng_tape *tape, const ng_node *node);

    /* Whether `backward` is called for an output without elements too (whose gradients are 0), for
     * others, the members of a group, take part in it. */
    bool joint;
};

/* One recorded op. */
struct ng_node {
    const ng_op *op;
    ng_tensor *output;        /* what the op made */
    ng_tensor **inputs;       /* NG_NONE where an optional one was left out */
    const void *attributes;   /* the tape's copy of what ng_record was given */
    int n_inputs;             /* how many of them */
    uint32_t inputs_version;  /* to notice an input that was changed since */
    int64_t index;            /* its place on the tape, from 0 */
    ng_node *previous, *next; /* in the order of recording */
    const bool *required;     /* which inputs required a gradient when it was recorded */
};

/* Whether `function` may go on: the tape and each of the inputs is there (a NULL is passed on in
 * silence), lives on this tape or on none, and all are floating and of one dtype. */
NG_API bool ng_accepts(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs);

/* A tensor of the tape with uninitialised elements; memory of the tape (64-byte aligned, not
 * initialised) for what an op keeps for its backward pass. Both live until ng_tape_reset. */
NG_API ng_tensor *ng_result(ng_tape *tape, ng_dtype dtype, ng_shape shape);
NG_API void *ng_tape_memory(ng_tape *tape, size_t bytes);

/* Whether ng_record would keep a node: recording is on and an input requires a gradient. */
NG_API bool ng_will_record(const ng_tape *tape, int n_inputs, ng_tensor *const *inputs);

/* Records that `op` made y of the inputs, copies the attributes, and returns y. Without anything
 * to record, y is returned as a constant. */
NG_API ng_tensor *ng_record(ng_tape *tape, const ng_op *op, ng_tensor *y, ng_tensor *const *inputs,
                            int n_inputs, const void *attributes, size_t attributes_bytes);

/* The op that made x, or NULL for a leaf and a constant. */
NG_API const ng_node *ng_node_of(const ng_tensor *x);

NG_END_C

#endif
