/* The error of central differences by step size for the library's norms, in double and float. Used
 * by gradcheck --sweep and the experiment gradcheck_error. */
#ifndef SWEEP_H
#define SWEEP_H

#include <math.h>
#include <normgrad.h>
#include <string.h>

/* Cases of ng_op_case. Norms with a detached part are left out: their gradient is not the
 * derivative of their value. */
static const char *const swept_norms[] = {"layer_norm",   "rms_norm",
                                          "batch_norm",   "group_norm (N, C)",
                                          "dynamic_tanh", "channel_norm (N, C)",
                                          "scale_norm",   "ghost_batch_norm",
                                          "weight_norm",  "instance_norm (N, C, L)"};
enum { SWEPT_NORMS = sizeof swept_norms / sizeof *swept_norms };

/* Steps from 1 down to 1e-14, eight per decade. */
enum { SWEEP_STEPS = 113 };
static inline double sweep_step(int index) { return pow(10, -index / 8.0); }

static inline const ng_case *swept_case(const char *name)
{
    const ng_case *spec;
    for (int i = 0; (spec = ng_op_case(i)); i++)
        if (strcmp(spec->name, name) == 0) return spec;
    return NULL;
}

/* A norm whose value is computed in float, or whose gradient is scaled by `factor`: an op whose
 * value is computed by doubtful_call and whose gradient comes from its definition. */
typedef struct {
    ng_check_call *norm;
    int inputs;
    bool in_float;
    double factor;
} altered_norm;

static inline ng_tensor *altered_definition(ng_tape *tape, const ng_node *node)
{
    const altered_norm *altered = node->attributes;
    return ng_mul_scalar(tape, altered->norm(tape, node->inputs, NULL), altered->factor);
}

static inline ng_tensor *altered_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "altered norm", .definition = altered_definition};
    const altered_norm *altered = context;
    ng_tensor *given[NG_CASE_INPUTS];
    const bool was = ng_tape_set_recording(tape, false);
    for (int i = 0; i < altered->inputs; i++)
        given[i] = ng_cast(tape, in[i], altered->in_float ? NG_F32 : NG_F64);
    ng_tensor *y = ng_cast(tape, altered->norm(tape, given, NULL), NG_F64);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, altered->inputs, altered, sizeof *altered);
}

/* Draws the inputs of a case. Returns their number. */
static inline int draw_inputs(const ng_case *spec, uint64_t seed, ng_tensor **inputs)
{
    int count = 0;
    ng_rng rng = ng_rng_seeded(seed);
    for (; count < NG_CASE_INPUTS && spec->inputs[count].name; count++)
        inputs[count] = ng_case_input_new(&spec->inputs[count], &rng);
    return count;
}

/* Sets errors[i] to the median relative error over all elements at sweep_step(i). The exact
 * gradient is the library's in double. With in_float the differences are taken of values in
 * float. */
static inline ng_status sweep_norm(const char *name, bool in_float, uint64_t seed, double *errors)
{
    const ng_case *spec = swept_case(name);
    ng_tensor *inputs[NG_CASE_INPUTS];
    double steps[SWEEP_STEPS];
    for (int i = 0; i < SWEEP_STEPS; i++) steps[i] = sweep_step(i);
    const int count = draw_inputs(spec, seed, inputs);
    altered_norm altered = {spec->call, count, true, 1};
    const ng_status status =
        ng_check_sweep(in_float ? altered_call : spec->call, steps, errors, SWEEP_STEPS, inputs,
                       count, .seed = seed, .context = in_float ? &altered : NULL);
    for (int i = 0; i < count; i++) ng_tensor_free(inputs[i]);
    return status;
}

#endif
