/* Layers and networks: includes the headers in which they are.
 *
 *     module.h     what all modules share: forward, modes, parameters by name, files, copies
 *     layers.h     Linear, activations, dropout, containers, convolutions, pooling,
 *                  norms of weights
 *     norms.h      the normalization layers
 *     attention.h  attention, embeddings, transformers; norms to choose from
 *     recurrent.h  RNN, GRU, LSTM, with norms in the cell
 *     custom.h     layers of your own
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
