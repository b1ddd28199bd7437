/* The optimizers that tests loop over: a row of optimizers.def each. */
#ifndef OPTIMIZERS_H
#define OPTIMIZERS_H

#include <normgrad.h>

/* CALLED(ng_adamw_new, net REQUIRED_adamw, .lr = 0.1): with what it takes after the module. */
#define CALLED(constructor, ...) constructor(__VA_ARGS__)
#define REQUIRED_sgd
#define REQUIRED_adam
#define REQUIRED_adamw , 0.01
#define REQUIRED_rmsprop
#define REQUIRED_lion
#define REQUIRED_lars
#define REQUIRED_lamb , 0.01
#define REQUIRED_muon

#define WITH(...) __VA_ARGS__
#define SETTING(name, setting, other, refused)
#define FLAG(name, setting)
#define OPTIMIZER(name, ...) OF_##name,
enum {
#include "optimizers.def"
    OPTIMIZERS
};

typedef struct {
    const char *name;
    ng_optimizer *(*make)(ng_module *net);             /* with the row's settings */
    ng_optimizer *(*make_default)(ng_module *net);     /* without any */
    ng_optimizer *(*make_written_out)(ng_module *net); /* with all defaults written out */
} optimizer_row;

extern const optimizer_row optimizers[OPTIMIZERS];

#endif
