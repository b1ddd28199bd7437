/* normgrad: a small reverse-mode autodiff engine with one subject, normalization.
 *
 *     core.h       errors, threads, random numbers      nn.h         layers and networks
 *     tensor.h     arrays of numbers                    optim.h      optimizers and schedules
 *     tape.h       recording and gradients              gradcheck.h  the gradient checker
 *     ops.h        differentiable operations            cases.h      ops and layers to try out
 *     data.h       data in, in batches                  training.h   saved, and taken up again
 *     history.h    figures out                          derivatives.h  Jacobians, Hessians
 *     group.h      many threads and machines            parallel.h   training on a group
 *
 * How names and calls are made:
 *
 *     ng_exp(tape, x)               an operation: the tape that owns the result, then the operands
 *     ng_linear_new(64, 128)        an object of yours, as from _read, _from; _free gives it back
 *     ng_module_save(net, path)     what is done with an object: its noun, then the verb
 *     ng_tape_set_recording(t, on)  _set changes a state, which ng_tape_recording(t) tells
 *     ng_forward_conditioned(net, t, x, c)   _given: with a condition
 *     ng_sum(tape, x, .axes = NG_AXES(0), .keepdim = true)     settings: named, last, optional
 *     ng_sum_with(tape, options)    what that macro calls: the last argument and the settings in a
 *                                   struct, ng_sum_options or that of its family, ng_reduce_options
 *     0, or nothing, in a setting is its default; NG_ZERO is 0; an argument is taken as it is
 *
 * Three owners. What a _new, _read or _from function gives is yours, and goes back with _free
 * (which takes NULL). A module owns its parameters. A tape owns all that is computed on it, until
 * ng_tape_reset; till then its operands must live: see tensor.h. Errors pass through: see core.h.
 *
 *     ng_module *net = ng_sequential_new(
 *         ng_linear_new(64, 128), ng_layer_norm_new(128), ng_relu_new(), ng_linear_new(128, 10));
 *     ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
 *     ng_tape *tape = ng_tape_new();
 *     for (int step = 0; step < 100; step++) {
 *         ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), labels);
 *         if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
 *         ng_tape_reset(tape);
 *     }
 *     if (ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
 *     ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
 */
#ifndef NORMGRAD_H
#define NORMGRAD_H

#include <normgrad/cases.h>
#include <normgrad/core.h>
#include <normgrad/data.h>
#include <normgrad/derivatives.h>
#include <normgrad/gradcheck.h>
#include <normgrad/group.h>
#include <normgrad/history.h>
#include <normgrad/nn.h>
#include <normgrad/ops.h>
#include <normgrad/optim.h>
#include <normgrad/parallel.h>
#include <normgrad/tape.h>
#include <normgrad/tensor.h>
#include <normgrad/training.h>

#endif
