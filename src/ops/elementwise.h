/* Ops that map each element, or two. */
#ifndef NG_OPS_ELEMENTWISE_H
#define NG_OPS_ELEMENTWISE_H

#include "ops/op.h"

/* y = map(x; a, b), recorded as `op`; its attributes are an ng_mapping. */
ng_tensor *ng_map_record(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *x,
                         ng_map map, double a, double b);

/* ng_op.backward by kernels->map_backward, for the maps that have one. */
ng_status ng_map_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx);

/* Defines the gradient rule of y = f(x): dx by its formula in dy, x and y. */
#define NG_UNARY_RULE(op, formula)                                                                 \
    static void op##_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)   \
    {                                                                                              \
        ng_tensor *const x = node->inputs[0], *const y = node->output;                             \
        (void)x, (void)y;                                                                          \
        dx[0] = formula;                                                                           \
    }

/* y = binary(a, b), broadcasting, recorded as `op`. */
ng_tensor *ng_binary_record(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *a,
                            ng_tensor *b, ng_binary binary);

#endif
