#include "optimizers.h"

#define SETTING(name, setting, other, refused)
#define FLAG(name, setting)
#define OPTIMIZER(name, new, defaults, settings)                                                   \
    static ng_optimizer *make_##name(ng_module *net)                                               \
    {                                                                                              \
        return CALLED(ng_##new##_new, net REQUIRED_##new, settings);                               \
    }                                                                                              \
    static ng_optimizer *default_##name(ng_module *net)                                            \
    {                                                                                              \
        return CALLED(ng_##new##_new, net REQUIRED_##new);                                         \
    }                                                                                              \
    static ng_optimizer *written_out_##name(ng_module *net)                                        \
    {                                                                                              \
        return CALLED(ng_##new##_new, net REQUIRED_##new, defaults);                               \
    }
#include "optimizers.def"

#define SETTING(name, setting, other, refused)
#define FLAG(name, setting)
#define OPTIMIZER(name, ...) {#name, make_##name, default_##name, written_out_##name},
const optimizer_row optimizers[OPTIMIZERS] = {
#include "optimizers.def"
};
