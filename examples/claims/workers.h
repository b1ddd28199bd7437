/* Training of one network by several workers, simulated one after the other in one process: shards,
 * statistics, steps. workers.c is the experiment; examples/mpi/workers_mpi.c runs each worker on
 * a rank of its own and compares. */
#ifndef EXAMPLES_WORKERS_H
#define EXAMPLES_WORKERS_H

#include "lab.h"
#include <math.h>
#include <string.h>

enum { WIDTH, EPOCHS, BATCH, RATE };
enum { MOST_WORKERS = 16, BUFFERS = 8 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of both hidden layers", .normal = 64},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 20, .quick = 2},
    [BATCH] = {"batch", "samples per step, of all workers; a multiple of 16", .normal = 128,
               .least = 32, .most = 1424, .multiple = MOST_WORKERS},
    [RATE] = {"rate", "learning rate of Adam", .normal = 0.003, .fraction = true},
    {0}};

/* ---- Shards ---- */

enum { RANDOM_SHARDS, SORTED_SHARDS, SHARDINGS };
static const char *const sharding_names[SHARDINGS] = {"random shards", "sorted shards"};

/* Splits the data into equal parts, in their own (random) order or sorted by class. */
static inline void make_shards(ng_dataset *data, int sharding, ng_dataset **shards, int workers)
{
    const int64_t count = ng_dataset_count(data), part = count / workers;
    const float *pixels = ng_data_f32(ng_dataset_x(data));
    ng_tensor *x = ng_copy_new(ng_dataset_x(data), NG_F32);
    ng_tensor *y = ng_copy_new(ng_dataset_y(data), NG_I64);
    lab_goes_on();
    int64_t placed = 0;
    for (int digit = 0; digit < 10 && sharding == SORTED_SHARDS; digit++)
        for (int64_t i = 0; i < count; i++) {
            if (ng_get(ng_dataset_y(data), i) != digit) continue;
            memcpy(ng_data_f32(x) + placed * 64, pixels + i * 64, 64 * sizeof *pixels);
            ng_set(y, placed++, digit);
        }
    for (int k = 0; k < workers; k++) {
        ng_tensor *part_x =
            ng_tensor_from_array(NG_F32, NG_SHAPE(part, 64), ng_data_f32(x) + k * part * 64);
        ng_tensor *part_y = ng_tensor_from_array(NG_I64, NG_SHAPE(part), ng_data_i64(y) + k * part);
        shards[k] = ng_dataset_from(part_x, part_y);
        ng_tensor_free(part_x), ng_tensor_free(part_y);
    }
    ng_tensor_free(x), ng_tensor_free(y);
    lab_goes_on();
}

/* ---- Workers ---- */

/* A worker's running statistics, kept here while another worker's are in the network. */
typedef struct {
    ng_tensor *buffers[BUFFERS];
    int count;
} statistics;

static statistics copy_statistics(ng_module *net)
{
    statistics s = {.count = 0};
    ng_named_tensor b;
    for (; s.count < BUFFERS && ng_module_buffer(net, s.count, &b); s.count++)
        s.buffers[s.count] = ng_copy_new(b.tensor, ng_dtype_of(b.tensor));
    return s;
}

typedef enum { INTO_NETWORK, FROM_NETWORK } direction;

static void move_statistics(direction where, ng_module *net, const statistics *s)
{
    ng_named_tensor b;
    for (int i = 0; i < s->count && ng_module_buffer(net, i, &b); i++)
        ng_copy_values(where == INTO_NETWORK ? b.tensor : s->buffers[i],
                       where == INTO_NETWORK ? s->buffers[i] : b.tensor);
}

/* Sets the network's statistics to the combination of the workers': the mean of the means, and the
 * mean variance plus the variance of the means. Returns the root mean square of the deviation of
 * the workers' means, over the total deviation. */
static inline double combine_statistics(ng_module *net, const statistics *workers, int count)
{
    double squares = 0, features = 0;
    ng_named_tensor b;
    for (int i = 0; ng_module_buffer(net, i, &b); i++) {
        if (!strstr(b.name, "running_mean")) continue; /* running_var is the next one */
        ng_named_tensor next;
        ng_module_buffer(net, i + 1, &next);
        for (int64_t k = 0; k < ng_size(b.tensor); k++) {
            double mean = 0, square = 0, var = 0;
            for (int w = 0; w < count; w++) {
                const double m = ng_get(workers[w].buffers[i], k);
                mean += m / count, square += m * m / count;
                var += ng_get(workers[w].buffers[i + 1], k) / count;
            }
            const double between = fmax(square - mean * mean, 0);
            ng_set(b.tensor, k, mean), ng_set(next.tensor, k, var + between);
            squares += between / (var + between), features++;
        }
    }
    return features > 0 ? sqrt(squares / features) : 0;
}

/* ---- Training ---- */

enum { OWN, COMBINED, LAYER, METHODS };
static const char *const method_names[METHODS] = {"own statistics", "combined statistics",
                                                  "LayerNorm"};

static ng_module *make_network(int method, uint64_t seed)
{
    const int64_t width = lab_whole(WIDTH);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < 2; i++) {
        ng_sequential_add(net, ng_linear_new(i == 0 ? 64 : width, width));
        ng_sequential_add(net,
                          method == LAYER ? ng_layer_norm_new(width) : ng_batch_norm_new(width));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(width, 10));
    ng_module_init(net, seed);
    return net;
}

/* Takes a step in which each worker runs the network separately, one after the other. The gradients
 * add up to their mean. Returns the mean loss. */
static double step_apart(ng_module *net, ng_tape *tape, const ng_batch *parts,
                         const statistics *own, int workers)
{
    double sum = 0;
    for (int k = 0; k < workers; k++) {
        move_statistics(INTO_NETWORK, net, &own[k]);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, parts[k].x), parts[k].y);
        if (ng_backward(tape, ng_mul_scalar(tape, loss, 1.0 / workers))) return (double)NAN;
        move_statistics(FROM_NETWORK, net, &own[k]);
        sum += ng_item(loss) / workers;
    }
    return sum;
}

/* The same with one forward pass of all parts. */
static double step_together(ng_module *net, ng_tape *tape, const ng_batch *parts, int workers)
{
    ng_tensor *x[MOST_WORKERS], *loss = NULL;
    for (int k = 0; k < workers; k++) x[k] = parts[k].x;
    ng_tensor *logits = ng_forward(net, tape, ng_concat(tape, x, workers, 0));
    for (int k = 0; k < workers; k++) {
        const int64_t size = parts[k].size;
        ng_tensor *slice = ng_slice(tape, logits, 0, k * size, (k + 1) * size);
        ng_tensor *part = ng_cross_entropy(tape, slice, parts[k].y);
        loss = k == 0 ? part : ng_add(tape, loss, part);
    }
    loss = ng_mul_scalar(tape, loss, 1.0 / workers);
    return ng_backward(tape, loss) == NG_OK ? ng_item(loss) : (double)NAN;
}

typedef struct {
    double accuracy, worst, together; /* per cent: mean and lowest over workers; with combined
                                       * statistics */
    double difference;                /* of the running means */
    double first, loss;               /* training loss in the first epoch and in the last */
} outcome;

static inline outcome run(int method, int workers, ng_dataset **shards, ng_dataset *validate,
                          uint64_t seed)
{
    const int64_t part = lab_whole(BATCH) / workers;
    ng_module *net = make_network(method, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = lab_number(RATE));
    ng_tape *tape = ng_tape_new();
    statistics own[MOST_WORKERS];
    for (int k = 0; k < workers; k++) own[k] = copy_statistics(net);
    outcome o = {.worst = 100};
    for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++) {
        const int steps = (int)(ng_dataset_count(shards[0]) / part);
        o.loss = 0;
        for (int k = 0; k < workers; k++)
            ng_dataset_shuffle(shards[k], (uint64_t)(epoch * workers + k));
        for (int i = 0; i < steps && lab_goes_on(); i++) {
            ng_batch parts[MOST_WORKERS];
            for (int k = 0; k < workers; k++) ng_dataset_batch(shards[k], tape, i, part, &parts[k]);
            o.loss += (method == COMBINED ? step_together(net, tape, parts, workers)
                                          : step_apart(net, tape, parts, own, workers)) /
                      steps;
            if (ng_optimizer_step(adam)) break;
            ng_tape_reset(tape);
        }
        if (epoch == 0) o.first = o.loss;
    }
    const int views = method == OWN ? workers : 1;
    for (int k = 0; k < views; k++) {
        if (method == OWN) move_statistics(INTO_NETWORK, net, &own[k]);
        const double accuracy = 100 * lab_evaluate(net, tape, validate).accuracy;
        o.accuracy += accuracy / views;
        o.worst = fmin(o.worst, accuracy);
    }
    if (method == OWN) o.difference = combine_statistics(net, own, workers);
    o.together = 100 * lab_evaluate(net, tape, validate).accuracy;
    for (int k = 0; k < workers; k++)
        for (int i = 0; i < own[k].count; i++) ng_tensor_free(own[k].buffers[i]);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    return o;
}

#endif
