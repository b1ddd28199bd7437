#include "network.h"
#include <stdlib.h>
#include <time.h>

enum { MOST_REQUESTS = 1024 };

/* A message and its stamp: from when on it is there, by the clock that all processes share. */
typedef struct {
    bool used, receives;
    MPI_Request request[2];
    double due;
} message;

typedef struct {
    network of;
    MPI_Comm data, stamps;
    double free_at; /* when what was sent so far has left */
    message message[MOST_REQUESTS];
} card;

/* The machine's: MPI_Wtime begins with each process. */
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static message *new_message(card *c, ng_group_request *request)
{
    for (int i = 0; i < MOST_REQUESTS; i++)
        if (!c->message[i].used) {
            request->words[0] = (uint64_t)i;
            c->message[i].used = true;
            return &c->message[i];
        }
    abort();
}

/* When bytes that are to leave now have left. */
static double departure(card *c, double bytes)
{
    const double now = seconds_now();
    c->free_at = (c->free_at > now ? c->free_at : now) + bytes / c->of.bandwidth;
    return c->free_at;
}

static void network_send(void *with, int to, int tag, const void *data, size_t bytes,
                         ng_group_request *request)
{
    card *c = with;
    message *m = new_message(c, request);
    m->receives = false;
    m->due = departure(c, (double)bytes) + c->of.latency;
    MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, c->data, &m->request[0]);
    MPI_Isend(&m->due, 1, MPI_DOUBLE, to, tag, c->stamps, &m->request[1]);
}

static void network_receive(void *with, int from, int tag, void *data, size_t bytes,
                            ng_group_request *request)
{
    card *c = with;
    message *m = new_message(c, request);
    m->receives = true;
    MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, c->data, &m->request[0]);
    MPI_Irecv(&m->due, 1, MPI_DOUBLE, from, tag, c->stamps, &m->request[1]);
}

/* By a ring: to each neighbour 2 (n - 1) times an n-th of it. */
static void network_sum(void *with, void *data, int64_t count, ng_dtype dtype,
                        ng_group_request *request)
{
    card *c = with;
    message *m = new_message(c, request);
    int n;
    MPI_Comm_size(c->data, &n);
    const double bytes = (double)count * (dtype == NG_F32 ? 4 : 8);
    m->receives = true;
    m->due = departure(c, 2 * bytes * (n - 1) / n) + 2 * (n - 1) * c->of.latency;
    m->request[1] = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, dtype == NG_F32 ? MPI_FLOAT : MPI_DOUBLE,
                   MPI_SUM, c->data, &m->request[0]);
}

static bool network_test(void *with, ng_group_request *request)
{
    card *c = with;
    message *m = &c->message[request->words[0]];
    int done;
    MPI_Testall(2, m->request, &done, MPI_STATUSES_IGNORE);
    if (!done || seconds_now() < m->due - (m->receives ? 0 : c->of.latency)) return false;
    m->used = false;
    return true;
}

static void network_close(void *with)
{
    card *c = with;
    MPI_Comm_free(&c->data), MPI_Comm_free(&c->stamps);
    free(c);
}

ng_group *network_group(network of)
{
    if (of.bandwidth == 0) return ng_mpi_group(MPI_COMM_WORLD);
    card *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->of = of;
    MPI_Comm_dup(MPI_COMM_WORLD, &c->data), MPI_Comm_dup(MPI_COMM_WORLD, &c->stamps);
    ng_group_link link = {.with = c,
                          .send = network_send,
                          .receive = network_receive,
                          .test = network_test,
                          .sum = network_sum,
                          .close = network_close};
    MPI_Comm_rank(c->data, &link.rank), MPI_Comm_size(c->data, &link.size);
    return ng_group_over(&link);
}
