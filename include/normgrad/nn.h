/* Layers and networks: includes the headers in which they are.
 *
 *     ng_module *mlp = ng_sequential_new(ng_linear_new(64, 128), ng_layer_norm_new(128),
 *                                        ng_relu_new(), ng_linear_new(128, 10));
 *     ng_tensor *scores = ng_forward(mlp, tape, x);
 *     ng_summary(mlp);
 *     ng_module_free(mlp);
 *
 *     module.h      what all modules share: forward, modes, parameters by name, files, copies
 *     layers.h      Linear, activations, dropout, containers, convolutions, pooling,
 *                   norms of weights
 *     norms.h       the normalization layers; those of channels are in channel_norms.h
 *     attention.h   attention, embeddings, transformers; norms to choose from
 *     recurrent.h   RNN, GRU, LSTM, with norms in the cell
 *     custom.h      layers of your own
 */
#ifndef NORMGRAD_NN_H
#define NORMGRAD_NN_H

#include <normgrad/attention.h>
#include <normgrad/custom.h>
#include <normgrad/layers.h>
#include <normgrad/module.h>
#include <normgrad/norms.h>
#include <normgrad/recurrent.h>

#endif
