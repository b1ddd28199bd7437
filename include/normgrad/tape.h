/* The tape: records what is computed, owns it, and computes gradients.
 *
 *     ng_tape *tape = ng_tape_new();
 *     ng_tensor *w = ng_require_grad(ng_ones_new(NG_F64, NG_SHAPE(3)));
 *     ng_tensor *loss = ng_sum(tape, ng_square(tape, w));
 *     if (ng_backward(tape, loss) == NG_OK) ng_print(ng_grad(w));
 *     ng_tensor *slope = ng_gradient(tape, loss, w, .record = true);
 *     ng_tensor *second = ng_gradient(tape, slope, w);
 *     ng_print(second);
 *     ng_tape_free(tape), ng_tensor_free(w);
 *
 *     ng_tape_reset(tape)                   ends the life of all that was computed
 *     ng_tape_own(tape, x)                  gives a tensor of yours to the tape
 *     ng_tape_seed(tape, seed)              seeds dropout, ng_normal, ng_uniform, ng_sample
 *     ng_tape_set_recording(tape, on)       off for evaluation
 *     ng_backward(tape, loss)               adds d loss / d leaf to the gradient of every leaf
 *     ng_gradient(tape, y, x)               d y / d x as a tensor
 *     ng_gradients(tape, outputs, n, inputs, m, gradients)   the same of several
 *     ng_detach(tape, x)                    x as a constant
 *     ng_variable(tape, x)                  x as a leaf of the tape
 *     ng_tape_write_dot(tape, root, path)   the graph for Graphviz
 *     ng_record(...)                        an operation of your own
 *     ng_tape_free(tape)                    frees it with all that it owns
 */
#ifndef NORMGRAD_TAPE_H
#define NORMGRAD_TAPE_H

#include <normgrad/tensor.h>

NG_BEGIN_C

/* A tape is used by one thread at a time; different tapes are independent. */
typedef struct ng_tape ng_tape;
NG_API ng_tape *ng_tape_new(void);

/* Ends the life of every tensor computed on the tape. The memory is kept for the next step, so a
 * training loop allocates nothing after its first steps.
 *
 * Do not use a tensor from before the reset. Ops and readers (ng_item, ng_get, ng_print) refuse it
 * with NG_ESTATE, and name the function that made it, until its memory is given to a new result.
 * After that the mistake is not noticed: the pointer shows other numbers, or the program crashes.
 *
 * To reset or to free the tape inside a gradient rule, a definition or a recomputed pass is
 * NG_ESTATE, and does nothing. */
NG_API void ng_tape_reset(ng_tape *tape);

/* Gives a tensor of yours to the tape, which frees it at its next reset, and returns it:
 *     ng_tensor *x = ng_tape_own(tape, ng_normal_new(NG_F32, NG_SHAPE(32, 64), 0, 1, &rng));
 * From then on it is read-only, and only this tape can use it. It stays a leaf and keeps its
 * gradient. A tensor that the tape owns already is returned unchanged. NG_ESTATE for a module's
 * tensor, a leaf's gradient and a tensor of another tape; then x is still yours. */
NG_API ng_tensor *ng_tape_own(ng_tape *tape, ng_tensor *x);

/* Seeds the tape's generator, from which dropout, ng_normal, ng_uniform and ng_sample draw. A new
 * tape has seed 0. */
NG_API void ng_tape_seed(ng_tape *tape, uint64_t seed);

/* Switches recording on or off and returns the old setting. While it is off, results require no
 * gradient and the tape keeps nothing for a backward pass. Results still live until the reset:
 *     bool was = ng_tape_set_recording(tape, false);
 *     ...evaluate...
 *     ng_tape_set_recording(tape, was); */
NG_API bool ng_tape_set_recording(ng_tape *tape, bool on);
NG_API bool ng_tape_recording(const ng_tape *tape);

/* How many ops are recorded, and how much memory the tape has. */
typedef struct {
    int64_t ops;        /* recorded since the reset */
    int64_t bytes_used; /* in use now */
    int64_t bytes_kept; /* allocated, and kept for later steps */
} ng_tape_usage;
NG_API ng_tape_usage ng_tape_used(const ng_tape *tape);

NG_API void ng_tape_free(ng_tape *tape); /* takes NULL; frees all that the tape owns */

/* ---- Gradients ---------------------------------------------------------------------------- */

/* Adds d loss / d leaf to the gradient of every leaf that requires one and that the loss depends
 * on, also if the derivative is 0 (ng_sign). `loss` has one element. Several calls add up, for the
 * same or another loss. The first call after an optimizer's step overwrites the gradients instead.
 *
 * A parameter that was frozen (ng_freeze) when it was used, or is frozen now, gets no gradient. If
 * no other leaf is left, that is NG_EGRAD. After an error the gradients that wait for a step are
 * unchanged; those that a step has used may be gone (ng_has_grad). */
NG_API NG_MUST_CHECK ng_status ng_backward(ng_tape *tape, ng_tensor *loss);

/* ng_backward for a y of any shape: the gradients of sum(y dy). The cotangent dy has y's shape and
 * dtype, a weight for each element of y. */
NG_API NG_MUST_CHECK ng_status ng_backward_from(ng_tape *tape, ng_tensor *y, ng_tensor *dy);

/* Computes the gradients of outputs with respect to inputs, which are leaves or intermediates:
 *     gradients[j] = sum_i cotangents[i] . d outputs[i] / d inputs[j]
 * in the shape of inputs[j]. The tape owns them; the gradients of leaves (ng_grad) do not change.
 *     ng_gradients(tape, &y, 1, inputs, 2, gradients, .record = true) */
typedef struct {
    ng_tensor *const *cotangents; /* one for each output, or NG_NONE for ones; default: ones */
    bool record;                  /* record the gradients, so that they can be differentiated */
    bool allow_unused; /* an input that no output depends on gets gradient 0; default: NG_EGRAD */
    ng_tensor **gradients;
} ng_gradients_options;
#define ng_gradients(tape, outputs, n_outputs, inputs, n_inputs, ...)                              \
    ng_gradients_with(tape, outputs, n_outputs, inputs, n_inputs,                                  \
                      NG_NAMED(ng_gradients_options, gradients, __VA_ARGS__))
NG_API ng_status ng_gradients_with(ng_tape *tape, ng_tensor *const *outputs, int n_outputs,
                                   ng_tensor *const *inputs, int n_inputs,
                                   ng_gradients_options options);

/* The gradient of one output with respect to one input: ng_gradient(tape, y, x, .record = true). */
typedef struct {
    ng_tensor *cotangent;      /* of y's shape; default: ones */
    bool record, allow_unused; /* as in ng_gradients */
    ng_tensor *x;
} ng_gradient_options;
#define ng_gradient(tape, y, ...)                                                                  \
    ng_gradient_with(tape, y, NG_NAMED(ng_gradient_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_gradient_with(ng_tape *tape, ng_tensor *y, ng_gradient_options options);

/* x's value as a constant: no gradient flows through it. While the gradient checker moves its
 * inputs, the constant keeps its value; the report shows where it was detached. */
typedef struct {
    bool by_definition; /* the formula itself calls it a constant, as AdaNorm does with its factor:
                           the checker counts it apart */
    ng_tensor *x;
} ng_detach_options;
#define ng_detach(tape, ...)                                                                       \
    ng_detach_with(tape, NG_HERE, NG_NAMED(ng_detach_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_detach_with(ng_tape *tape, const char *place, ng_detach_options options);

/* x's value as a leaf of the tape that requires a gradient. Use it for a gradient with respect to
 * x that stops at x: adversarial examples, saliency maps, gradient penalties, differential
 * equations.
 *
 *     ng_tensor *v = ng_variable(tape, ng_add(tape, real, ng_mul(tape, mix, off)));
 *     ng_tensor *slope = ng_gradient(tape, ng_forward(critic, tape, v), v, .record = true);
 *
 * After ng_backward, ng_grad gives its gradient, which lives until the reset. To the gradient
 * checker it is a detached value, with the setting of ng_detach. */
#define ng_variable(tape, ...)                                                                     \
    ng_variable_with(tape, NG_HERE, NG_NAMED(ng_detach_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_variable_with(ng_tape *tape, const char *place, ng_detach_options options);

/* The place in the source where it stands: "my_norm.c:42". */
#define NG_HERE __FILE__ ":" NG_LINE_TEXT(__LINE__)
#define NG_LINE_TEXT(line) NG_LINE_TEXT_OF(line)
#define NG_LINE_TEXT_OF(line) #line

#ifndef NG_NO_IO
/* Writes the graph that leads to `root` as Graphviz text, ops as boxes with their names, tensors
 * with their shapes: ng_tape_write_dot(tape, loss, "graph.dot"); then dot -Tsvg graph.dot. The file
 * is replaced only when it is complete (history.h). */
NG_API ng_status ng_tape_write_dot(const ng_tape *tape, const ng_tensor *root, const char *path);
#endif

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
 * The ng_op states its gradient. A primitive has `gradient`, a rule made of ng_ ops; since these
 * are recorded, it gives gradients of any order. A fused op has a `backward` kernel for speed and
 * a `definition`, the same value composed of primitives: it documents the op, the kernel is tested
 * against it, and it gives the higher derivatives. A primitive may have a `backward` kernel too.
 * Without any of them the op has no gradient: NG_EGRAD. */

/* An op; one record of it on a tape. */
typedef struct ng_op ng_op;
typedef struct ng_node ng_node;

/* Where a backward kernel writes the gradient of one input. */
typedef struct {
    void *data;      /* of the input's shape and dtype; NULL: no gradient is wanted */
    bool accumulate; /* add to what is there; otherwise the memory is uninitialised */
} ng_slot;

/* The name of an op and its derivatives. */
struct ng_op {
    const char *name; /* "cube", for messages and graphs; NG_ENULL without one */

    /* Sets dx[i] to the gradient of each input for which ng_requires_grad(node->inputs[i]), made of
     * dy, inputs and output by ng_ ops; NG_NONE is a gradient of zero. Leave a dx[i] that is
     * NG_NONE already: it is not wanted. A rule fails by ng_fail, or by a dx[i] that it leaves
     * NULL. Recording is off, unless the gradient is recorded: a rule that takes a gradient itself
     * switches it on for the ops that it differentiates. */
    void (*gradient)(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx);

    /* Writes the same gradients into memory. A status other than NG_OK ends the backward pass,
     * which returns it. */
    ng_status (*backward)(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx);

    /* The output, composed of primitives from node->inputs and node->attributes. */
    ng_tensor *(*definition)(ng_tape *tape, const ng_node *node);
};

/* One recorded op. */
struct ng_node {
    const ng_op *op;
    ng_tensor *output;        /* what the op made */
    ng_tensor **inputs;       /* NG_NONE where an optional one was left out */
    const void *attributes;   /* the tape's copy of what ng_record was given */
    int n_inputs;             /* how many of them */
    uint32_t inputs_version;  /* notices an input that was changed after recording */
    int64_t index;            /* its place on the tape, from 0 */
    ng_node *previous, *next; /* in the order of recording */
};

/* Whether `function` can use its operands: none is NULL, each belongs to this tape or to none, and
 * all have one dtype, float or double. If not, it records the error. The text `function` is to live
 * as long as the tape: errors name results by it. */
NG_API bool ng_accepts(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs);

/* A tensor of the tape with uninitialised elements; memory of the tape, for what an op's backward
 * pass needs, aligned to 16 bytes (from 256 bytes on to 64). Both live until ng_tape_reset. */
NG_API ng_tensor *ng_result(ng_tape *tape, ng_dtype dtype, ng_shape shape);
NG_API void *ng_tape_memory(ng_tape *tape, size_t bytes);

/* Whether ng_record would record: recording is on and an input requires a gradient. */
NG_API bool ng_will_record(const ng_tape *tape, int n_inputs, ng_tensor *const *inputs);

/* Records that `op` computed y from the inputs, copies the attributes, and returns y. If recording
 * is off, or no input requires a gradient, y is a constant. */
NG_API ng_tensor *ng_record(ng_tape *tape, const ng_op *op, ng_tensor *y, ng_tensor *const *inputs,
                            int n_inputs, const void *attributes, size_t attributes_bytes);

/* The node that computed x; NULL for a leaf or a constant. */
NG_API const ng_node *ng_node_of(const ng_tensor *x);

NG_END_C

#endif
