/* The cases: every op of the library, and every layer in each of its modes, with inputs to try it
 * on. The library's tests and the gradcheck program loop over them. A case of your own is checked
 * the same way, with ng_check_case of gradcheck.h.
 */
#ifndef NORMGRAD_CASES_H
#define NORMGRAD_CASES_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* A function under test: computes its output on the tape from inputs and context. */
typedef ng_tensor *ng_check_call(ng_tape *tape, ng_tensor *const *inputs, void *context);

/* One input of a case. */
typedef struct {
    const char *name; /* "gamma"; NULL ends the list */
    ng_shape shape;   /* of the input */
    double low, high; /* drawn uniformly from [low, high); both 0: normal values */
    double avoid;     /* keep |value| above this, to stay clear of a kink at 0 */
    bool index;       /* int64 values in low .. high - 1 */
    bool constant;    /* handed on, not differentiated */
} ng_case_input;

/* A case: an op or a layer, and what it is tried on. */
#define NG_CASE_INPUTS 8 /* the most a case may have */
typedef struct {
    const char *name;                  /* "matmul (transposed b)" */
    ng_check_call *call;               /* an op; or */
    struct ng_module *(*module)(void); /* a layer's constructor; inputs[0] is its x, inputs[1] its
                                          condition */
    bool eval;                         /* a layer's mode; an op has neither */
    bool broadcasts; /* two operands that broadcast: also tried on the left, right, both */
    ng_case_input inputs[NG_CASE_INPUTS]; /* up to the first without a name */
} ng_case;

/* One case after the other, from 0; NULL past the last. */
NG_API const ng_case *ng_op_case(int index);
NG_API const ng_case *ng_layer_case(int index);

NG_END_C

#endif
