/* A comparison of five networks on handwritten digits: without a norm, and with each of four. For
 * each it finds the learning rate that works best, trains at that rate from other seeds, prints a
 * table and draws the first figure of README: build/examples/digits --help */
#include "compare.h"

static int chosen_optimizer, depth = 2, width = 128;
static const char *file;

typedef enum { ADAM, ADAMW, SGD, MOMENTUM, RMSPROP } optimizer_kind;
static const char *const optimizer_names[] = {"adam", "adamw", "sgd", "momentum", "rmsprop"};
static const double lowest_rates[] = {5e-4, 5e-4, 0.025, 0.005, 1.25e-4};

static ng_optimizer *make_optimizer(const comparison *c, ng_module *net, double lr, int64_t steps)
{
    (void)c, (void)steps;
    switch ((optimizer_kind)chosen_optimizer) {
    case ADAM: return ng_adam_new(net, .lr = lr);
    case ADAMW: return ng_adamw_new(net, 0.01, .lr = lr);
    case SGD: return ng_sgd_new(net, .lr = lr);
    case MOMENTUM: return ng_sgd_new(net, .lr = lr, .momentum = 0.9);
    case RMSPROP: return ng_rmsprop_new(net, .lr = lr);
    }
    return NULL;
}

/* depth times Linear, norm, ReLU; then a Linear to the classes. */
static ng_module *make_network(const comparison *c, ng_norm_maker *norm)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    int64_t from = ng_dim(ng_dataset_x(c->data), 1);
    for (int i = 0; i < depth; i++, from = width) {
        ng_sequential_add(net, ng_linear_new(from, width));
        if (norm != ng_norm_none) ng_sequential_add(net, norm(width));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(from, c->classes));
    return net;
}

static bool read_data(comparison *c)
{
    c->optimizer_name = optimizer_names[chosen_optimizer];
    c->lowest_rate = lowest_rates[chosen_optimizer];
    c->data = ng_dataset_read_csv(file ? file : find_data("digits.csv"), .scale = 1.0 / 16);
    if (!count_classes(c)) return false;
    c->train = ng_dataset_count(c->data) * 4 / 5;
    char *text = c->network_text;
    const size_t bytes = sizeof c->network_text;
    int at = snprintf(text, bytes, "%lld", (long long)ng_dim(ng_dataset_x(c->data), 1));
    for (int i = 0; i < depth && depth <= 4; i++)
        at += snprintf(text + at, bytes - (size_t)at, "-%d", width);
    if (depth > 4) at += snprintf(text + at, bytes - (size_t)at, "-%d (x %d)", width, depth);
    snprintf(text + at, bytes - (size_t)at, "-%lld", (long long)c->classes);
    return true;
}

int main(int argc, char **argv)
{
    static const program_option own[] = {
        OPTION_CHOICE("optimizer", "NAME", "adam, adamw, sgd, momentum or rmsprop (adam)",
                      &chosen_optimizer, "adam,adamw,sgd,momentum,rmsprop"),
        OPTION_COUNT("depth", "N", "hidden layers", &depth, 0, 1000),
        OPTION_COUNT("width", "N", "features of each hidden layer", &width, 1, 100000),
        OPTION_TEXT("data", "FILE",
                    "a CSV file: features, from 0 to 16, and the label\n(examples/data/digits.csv)",
                    &file)};
    static comparison digits = {.usage = "usage: digits [options]\n"
                                         "\n"
                                         "Trains one network on handwritten digits with each norm, "
                                         "from several seeds, prints a\n"
                                         "table, and draws training loss and validation accuracy "
                                         "by epoch. Each norm has its own\n"
                                         "learning rate: of eight candidates, the one with the "
                                         "lowest final training loss, taking\n"
                                         "the worst of three other seeds.\n",
                                .prefix = "convergence",
                                .script = "plots/convergence.gp",
                                .norms = "none,batch,layer,rms,adaptive",
                                .own = OPTIONS(own),
                                .seeds = 9,
                                .epochs = 30,
                                .batch = 64,
                                .with = {.threads = 1},
                                .read = read_data,
                                .network = make_network,
                                .optimizer = make_optimizer};
    return compare_norms(&digits, argc, argv);
}
