/* The whole library in one file, in the order in which it is to be read:
 *
 *     make build/dist/names.h
 *     cc -O2 -c src/normgrad.c -Iinclude -Isrc -Ibuild/dist
 *
 * builds it. `make dist` writes it as a file that includes only normgrad.h. Compressed files need
 * -DNG_WITH_ZLIB and zlib. A program links it with -lm -pthread. Results have the bits of the
 * library that make builds with the same compiler.
 *
 *     -DNG_NO_IO       leaves out data sets, histories, files and figures
 *     -DNG_NO_SIMD     leaves out all kernels but those for any processor of the architecture
 *     -DNG_NO_THREADS  leaves out threads: a kernel runs on the thread that calls it, and
 *                      ng_group_run takes one rank
 *
 * For kernels of AVX on Windows (MinGW-w64, posix threads), gcc needs two options: -DNG_UNALIGNED
 * and -Wa,-muse-unaligned-vector-move. Without the second one a program crashes; without both it
 * has the kernels for any processor. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define NG_ONE_FILE
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(_WIN32) && !defined(__clang__) && !defined(NG_UNALIGNED) && !defined(NG_NO_SIMD)
#define NG_NO_SIMD
#endif
#if defined(__x86_64__) && !defined(NG_NO_SIMD)
#define NG_ISAS(X) X(avx512) X(avx2) X(baseline)
#elif defined(__aarch64__) && !defined(NG_NO_SIMD)
#define NG_ISAS(X) X(neon) X(baseline)
#else
#define NG_ISAS(X) X(baseline)
#endif

/* The order is that of reading. */
/* clang-format off */

/* Errors, memory, threads, random numbers, shapes, tensors, numbers as text. */
#include "core/error.c"
#include "core/alloc.c"
#include "core/arena.c"
#include "core/workspace.c"
#include "core/pool.c"
#include "core/elementary.c"
#include "core/rng.c"
#include "core/shape.c"
#include "core/tensor.c"
#include "core/number.c"
#include "core/option.c"
#include "core/print.c"

/* What chooses a table of kernels, and kernels made of others; the tables are at the end. */
#include "kernels/walk.c"
#include "kernels/select.c"
#include "kernels/conv.c"

/* Process groups and their sums. */
#include "group/group.c"
#include "group/threads.c"

/* Recording, the reverse sweep, replay. */
#include "tape/tape.c"
#include "tape/sweep.c"
#include "tape/gradients.c"
#include "tape/replay.c"

/* Primitive ops. */
#include "ops/op.c"
#include "ops/elementwise.c"
#include "ops/arithmetic.c"
#include "ops/combine.c"
#include "ops/reduce.c"
#include "ops/layout.c"
#include "ops/parts.c"
#include "ops/select.c"
#include "ops/order.c"
#include "ops/constants.c"
#include "ops/products.c"
#include "ops/matmul.c"

/* Norms. */
#include "ops/norm.c"
#include "ops/row_norm.c"
#include "ops/batch_norm.c"
#include "ops/batch_renorm.c"
#include "ops/ghost_batch_norm.c"
#include "ops/group.c"
#include "ops/group_norm.c"
#include "ops/channel_norm.c"
#include "ops/simple_norms.c"
#include "ops/weight_norm.c"

/* Other fused ops, losses, derivatives of derivatives. */
#include "ops/activations.c"
#include "ops/softmax.c"
#include "ops/swiglu.c"
#include "ops/likelihoods.c"
#include "ops/losses.c"
#include "ops/margins.c"
#include "ops/dropout.c"
#include "ops/rotary.c"
#include "ops/attention.c"
#include "ops/recurrent.c"
#include "ops/window.c"
#include "ops/conv2d.c"
#include "ops/conv_transpose.c"
#include "ops/image.c"
#include "ops/adaptive_pool.c"
#include "ops/upsample.c"
#include "ops/derivatives.c"

/* Modules. */
#include "nn/tree.c"
#include "nn/module.c"
#include "nn/settings.c"
#include "nn/forward.c"
#include "nn/init.c"
#include "nn/copy.c"
#include "nn/using.c"
#include "nn/recompute.c"
#include "nn/parameters.c"
#include "nn/summary.c"
#include "nn/fold.c"
#include "nn/sequential.c"
#include "nn/residual.c"
#include "nn/linear.c"
#include "nn/activations.c"
#include "nn/dropout.c"
#include "nn/embedding.c"
#include "nn/feed_forward.c"
#include "nn/attention.c"
#include "nn/hyper_connection.c"
#include "nn/transformer.c"
#include "nn/recurrent.c"
#include "nn/conv2d.c"
#include "nn/pooling.c"

/* Normalization layers. */
#include "norms/batch_state.c"
#include "norms/film.c"
#include "norms/layer_norm.c"
#include "norms/rms_norm.c"
#include "norms/gated_rms_norm.c"
#include "norms/adaptive_layer_norm.c"
#include "norms/ada_norm.c"
#include "norms/batch_norm.c"
#include "norms/batch_renorm.c"
#include "norms/group_norm.c"
#include "norms/instance_norm.c"
#include "norms/filter_response_norm.c"
#include "norms/global_response_norm.c"
#include "norms/evo_norm.c"
#include "norms/scale_norm.c"
#include "norms/l2_norm.c"
#include "norms/detach_norm.c"
#include "norms/dynamic_tanh.c"
#include "norms/derf.c"
#include "norms/bhyt.c"
#include "norms/seed_norm.c"
#include "norms/poly_norm.c"
#include "norms/local_response_norm.c"
#include "norms/reparameterized.c"
#include "norms/weight_norm.c"
#include "norms/weight_standardization.c"
#include "norms/spectral_norm.c"
#include "norms/norm_makers.c"

/* Optimizers. */
#include "optim/optimizer.c"
#include "optim/sgd.c"
#include "optim/adam.c"
#include "optim/rmsprop.c"
#include "optim/lion.c"
#include "optim/lars.c"
#include "optim/lamb.c"
#include "optim/muon.c"
#include "optim/schedule.c"
#include "optim/clip.c"
#include "optim/parallel.c"

/* The gradient checker. */
#include "check/subject.c"
#include "check/repeat.c"
#include "check/rows.c"
#include "check/detached.c"
#include "check/richardson.c"
#include "check/kink.c"
#include "check/derivatives.c"
#include "check/hints.c"
#include "check/report.c"
#include "check/shapes.c"
#include "check/check.c"
#include "check/module.c"

/* Files. */
#ifndef NG_NO_IO
#include "io/file.c"
#include "io/stored.c"
#include "io/json.c"
#include "io/unpack.c"
#include "io/dataset.c"
#include "io/batch_statistics.c"
#include "io/evaluate.c"
#include "io/standardize.c"
#include "io/csv.c"
#include "io/idx.c"
#include "io/npy.c"
#include "io/npz.c"
#include "io/dat.c"
#include "io/history.c"
#include "io/dot.c"
#include "io/safetensors.c"
#include "io/checkpoint.c"
#include "io/training.c"
#include "io/training_settings.c"
#include "io/training_state.c"
#endif

/* Figures. */
#ifndef NG_NO_IO
#include "plot/summary.c"
#include "plot/gnuplot.c"
#include "plot/plot.c"
#include "plot/watch.c"
#include "plot/layers.c"
#endif

/* The tables of kernels, with the instruction set and the dtype in each of their names, by macros
 * of names.h, which names.awk writes. */
#include "names.h"
#ifndef __clang__
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#endif
#define ISA baseline
#include "kernels/dtypes.inc"
#undef ISA
#if defined(__aarch64__) && !defined(NG_NO_SIMD)
#define ISA neon
#include "kernels/dtypes.inc"
#undef ISA
#endif
#if defined(__x86_64__) && !defined(NG_NO_SIMD)
#ifdef __clang__
#pragma clang attribute push(__attribute__((__target__("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define ISA avx2
#include "kernels/dtypes.inc"
#undef ISA
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#ifdef __clang__
#pragma clang attribute push(                                                                      \
    __attribute__((__target__("avx512f,avx512vl,avx512dq,avx512bw,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,prefer-vector-width=512")
#endif
#define ISA avx512
#include "kernels/dtypes.inc"
#undef ISA
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
