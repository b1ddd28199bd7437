/* The engine kann: a training step of a network with LayerNorm, from a clone that the user names
 * (make bench KANN=FOLDER). It has one thread, and RMSprop instead of Adam. */
#include "engine.h"
#include <kann.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kann_t *net;
    float *x, *truth, *memory; /* memory: RMSprop's */
} kann_state;

static void run(void *state, int variant)
{
    const kann_state *s = state;
    (void)variant;
    kann_cost(s->net, 0, 1);
    kann_RMSprop(kann_size_var(s->net), 1e-5f, NULL, 0.9f, s->net->g, s->net->x, s->memory);
}

static void close_net(void *state)
{
    kann_state *s = state;
    if (s->net) kann_delete(s->net);
    free(s->x), free(s->truth), free(s->memory), free(s);
}

static kann_t *network(const bench_case *what)
{
    const int last = what->widths - 1;
    kad_node_t *t = kann_layer_input((int)what->width[0]);
    for (int i = 1; i < last; i++)
        t = kad_relu(kann_layer_layernorm(kann_layer_dense(t, (int)what->width[i])));
    return kann_new(kann_layer_cost(t, (int)what->width[last], KANN_C_CEM), 0);
}

static bool open_net(const bench_case *what, bench_job *job)
{
    const char *threads = getenv("OMP_NUM_THREADS");
    if (!what->widths || strcmp(what->name, "mlp") || (threads && atoi(threads) > 1)) return false;
    const int64_t n = what->batch, in = what->width[0], out = what->width[what->widths - 1];
    kann_state *s = calloc(1, sizeof *s);
    if (!s) return false;
    *job = (bench_job){.state = s, .run = run, .close = close_net, .per = 1, .variants = 1};
    s->net = network(what);
    s->x = bench_buffer(4 * n * in), s->truth = bench_buffer(4 * n * out);
    s->memory = s->net ? bench_buffer(4 * (int64_t)kann_size_var(s->net)) : NULL;
    if (!s->x || !s->truth || !s->memory) return false;
    for (int64_t i = 0; i < n * in; i++) s->x[i] = (float)(i % 1009) / 500 - 1;
    for (int64_t i = 0; i < n; i++) s->truth[i * out + i % out] = 1;
    kann_switch(s->net, 1);
    kann_set_batch_size(s->net, (int)n);
    kann_feed_bind(s->net, KANN_F_IN, 0, &s->x);
    kann_feed_bind(s->net, KANN_F_TRUTH, 0, &s->truth);
    return true;
}

int main(void) { return bench_serve("kann " KANN_VERSION, open_net); }
