/* normgrad: a small reverse-mode autodiff engine with one subject, normalization.
 *
 *     core.h       errors, threads, random numbers      nn.h           layers and networks
 *     tensor.h     arrays of numbers                    optim.h        optimizers and schedules
 *     tape.h       recording and gradients              gradcheck.h    the gradient checker
 *     ops.h        differentiable operations            group.h        groups of processes
 *     data.h       data sets and batches                training.h     saving and resuming
 *     history.h    curves in files                      derivatives.h  Jacobians, Hessians
 *     plot.h       figures; inside a network            parallel.h     training on a group
 *
 * Names and calls:
 *
 *     ng_exp(tape, x)               an operation: first the tape that owns the result
 *     ng_linear_new(64, 128)        makes an object that is yours (also _read and _from);
 *                                   ng_module_free frees it
 *     ng_module_save(net, path)     a call on an object: its noun, then the verb
 *     ng_tape_set_recording(t, on)  sets a state, which ng_tape_recording(t) returns
 *     ng_sum(tape, x, .axes = NG_AXES(0), .keepdim = true)    settings: named, optional, last
 *     ng_sum_with(tape, options)    the function behind that macro; the struct of settings is
 *                                   ng_sum_options, or that of its family, ng_reduce_options
 *
 * A setting of 0 selects the default. To pass zero, write NG_ZERO. Arguments are used as given.
 *
 * Three owners. You own what a _new, _read or _from function returns, and free it with _free, which
 * takes NULL. A module owns its parameters. A tape owns everything computed on it until
 * ng_tape_reset; the operands must live as long (tensor.h). Errors pass through (core.h).
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
#include <normgrad/plot.h>
#include <normgrad/tape.h>
#include <normgrad/tensor.h>
#include <normgrad/training.h>

#endif
