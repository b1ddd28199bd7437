/* A link over MPI on which messages take as long as over a network that is stated: what is sent
 * leaves one after the other at its bandwidth, and is there its latency later. The copying is still
 * done by the processors, which a network card would do by itself. */
#ifndef NG_TESTS_MPI_NETWORK_H
#define NG_TESTS_MPI_NETWORK_H

#include <normgrad/mpi.h>

typedef struct {
    double latency;   /* seconds */
    double bandwidth; /* bytes a second; 0: no network, a link of MPI's own */
} network;

/* The group of all processes; NULL with an error. */
ng_group *network_group(network of);

#endif
