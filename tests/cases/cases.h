/* Every op of the library, and every layer in each of its modes, with inputs to try it on. Tests
 * loop over them. check/test_check.c is where gradients are compared with finite differences. */
#ifndef NG_TESTS_CASES_H
#define NG_TESTS_CASES_H

#include <normgrad.h>

/* One input of a case. */
typedef struct {
    const char *name; /* "gamma"; NULL ends the list */
    ng_shape shape;
    double low, high; /* drawn uniformly from [low, high); both 0: normal values */
    double avoid;     /* keep |value| above this, to stay clear of a kink at 0 */
    bool index;       /* int64 values in low .. high - 1 */
    bool constant;    /* handed on, not differentiated */
    bool batch;       /* a sample's result depends on the others, or on its place */
} case_input;

/* An op or a layer, and what it is tried on. */
enum { CASE_INPUTS = 8 }; /* the most a case may have */
typedef struct {
    const char *name;           /* "matmul_transposed_b" */
    ng_check_call *call;        /* an op; or */
    ng_module *(*module)(void); /* a layer; the names of inputs are ng_forward's */
    bool eval;                  /* the layer's mode */
    bool broadcasts;            /* two operands: also tried with each of case_broadcast's shapes */
    case_input inputs[CASE_INPUTS]; /* up to the first without a name */
} gradient_case;

/* One case after the other, from 0; NULL past the last. */
const gradient_case *op_case(int index);
const gradient_case *layer_case(int index);
/* Whether it is of a norm. */
bool case_is_norm(const gradient_case *spec);
/* Ops at sizes around vectors and blocks, to be compared with their definitions. */
const gradient_case *large_case(int index);
/* How many there are: case_count(op_case). */
int case_count(const gradient_case *case_at(int index));

/* Draws one input, float64 (int64 for indices). NULL if there are no such values. */
ng_tensor *case_input_new(const case_input *input, ng_rng *rng);

/* The inputs of a layer, by their names. */
ng_inputs case_inputs(const gradient_case *spec, ng_tensor *const *inputs);

/* Checks one case with these settings (their inputs are not used). */
ng_check_report check_case(const gradient_case *spec, ng_check_options options);

/* The case with shapes of inputs[0] and inputs[1] that broadcast. */
typedef enum {
    BROADCAST_LEFT = 0, /* inputs[0] loses its first dimension */
    BROADCAST_RIGHT,    /* the last dimension of inputs[1] is 1 */
    BROADCAST_BOTH      /* the last dimension of inputs[0] is 1, inputs[1] loses its first */
} broadcast_side;
gradient_case case_broadcast(const gradient_case *spec, broadcast_side side);

#endif
