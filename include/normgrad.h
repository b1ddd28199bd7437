/* normgrad: a small reverse-mode autodiff engine with one subject, normalization.
 *
 *     ng_module *net = ng_sequential_new(ng_linear_new(64, 128), ng_layer_norm_new(128),
 *                                        ng_relu_new(), ng_linear_new(128, 10));
 *     ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
 *     ng_tape *tape = ng_tape_new();
 *     for (int step = 0; step < 100; step++, ng_tape_reset(tape)) {
 *         ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), labels);
 *         if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
 *     }
 *     if (ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
 *     ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
 *
 *     core.h          errors, threads, random numbers
 *     tensor.h        arrays of numbers
 *     tape.h          recording, gradients, an operation of your own
 *     ops.h           differentiable operations: elementwise.h, reductions.h, shapes.h, losses.h,
 *                     norm_ops.h, images.h, sequences.h
 *     nn.h            layers and networks: module.h, layers.h, norms.h, channel_norms.h,
 *                     attention.h, recurrent.h, custom.h
 *     optim.h         optimizers, schedules, clipping
 *     data.h          data sets, batches, NumPy's files
 *     training.h      a training that can be stopped and resumed
 *     evaluate.h      loss and accuracy over a data set, a layer that standardizes
 *     history.h       curves in files
 *     plot.h          figures of histories, and of what happens inside a network
 *     gradcheck.h     the gradient checker
 *     derivatives.h   Jacobians, Hessians, their products with vectors
 *     group.h         groups of processes or threads
 *     parallel.h      training on a group
 *
 * Names and calls:
 *
 *     ng_exp(tape, x)                an operation: first the tape that owns the result
 *     ng_linear_new(64, 128)         makes an object that is yours, as _read and _from do:
 *                                    ng_module_free frees it
 *     ng_module_save(net, path)      a call on an object: the object's name, then the verb
 *     ng_tape_set_recording(t, on)   sets a state; ng_tape_recording(t) returns it
 *     ng_sum(tape, x, .axes = NG_AXES(0), .keepdim = true)   settings: named, optional, last
 *     ng_sum_with(tape, options)     the function behind that macro. Its struct is ng_sum_options,
 *                                    or that of its family, ng_reduce_options
 *
 * A setting of 0 is its default, which for most is 0; to pass zero to others, write NG_ZERO
 * (core.h).
 *
 * Three owners. You own what a _new, _read or _from function returns. Free it with _free, which
 * takes NULL. A module owns its parameters. A tape owns everything computed on it until
 * ng_tape_reset; the operands must live as long (tensor.h).
 *
 * Errors pass through. A failing call returns NULL or a status and records the first cause
 * (core.h).
 */
#ifndef NORMGRAD_H
#define NORMGRAD_H

#include <normgrad/core.h>
#include <normgrad/data.h>
#include <normgrad/derivatives.h>
#include <normgrad/evaluate.h>
#include <normgrad/gradcheck.h>
#include <normgrad/group.h>
#include <normgrad/history.h>
#include <normgrad/nn.h>
#include <normgrad/ops.h>
#include <normgrad/optim.h>
#include <normgrad/parallel.h>
#include <normgrad/plot.h>
#include <normgrad/tape.h>
#include <normgrad/tensor.h>
#include <normgrad/training.h>

#endif
