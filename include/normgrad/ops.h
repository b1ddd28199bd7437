/* Differentiable operations: includes the headers in which they are.
 *
 *     ng_tensor *h = ng_relu(tape, ng_linear(tape, x, weight, bias));
 *     ng_tensor *y = ng_layer_norm(tape, h, gamma, beta, .eps = 1e-5);
 *     ng_tensor *loss = ng_cross_entropy(tape, y, labels, .smoothing = 0.1);
 *     if (ng_backward(tape, loss)) fprintf(stderr, "%s\n", ng_error_text());
 *
 *     elementwise.h   constants, arithmetic, functions of each element, activations, dropout
 *     reductions.h    sums, means, maxima, cumulative sums, matrix products
 *     shapes.h        reshape, transpose, slice and join; select and sort elements
 *     losses.h        softmax, cross-entropy and the other losses, accuracy
 *     norm_ops.h      the norms
 *     images.h        convolution, pooling, resizing
 *     sequences.h     attention, rotary positions, RNN, GRU, LSTM
 *
 * The first argument is the tape that owns the result. Operands have one dtype, float or double;
 * labels and indices are int64. On wrong input an operation returns NULL with an error (core.h). In
 * the shapes below (...) stands for any leading dimensions.
 *
 * An axis that has a default is a setting: .axes = NG_AXES(0). Reductions take any number of axes
 * and default to all of them; the others take one axis and default to the last. An axis without a
 * default is an argument (ng_slice, ng_concat). Negative axes count from the last.
 */
#ifndef NORMGRAD_OPS_H
#define NORMGRAD_OPS_H

#include <normgrad/elementwise.h>
#include <normgrad/images.h>
#include <normgrad/losses.h>
#include <normgrad/norm_ops.h>
#include <normgrad/reductions.h>
#include <normgrad/sequences.h>
#include <normgrad/shapes.h>

#endif
