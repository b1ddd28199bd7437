/* The settings of a training as one text, a line for each. It is written into the file; a program
 * with another text is refused, and the error shows the first line that differs:
 *
 *     optimizer: RMSProp with momentum
 *     lr: 0.01
 *     group *.bias: weight_decay=0
 *     layer 0: Linear(64, 128)
 *     data: 1797 samples, digest 8c736521ae0e1c47
 *     seed: 5
 *
 * The first line says which state arrays the optimizer has; .changed allows other lines only. */
#include "io/training.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void print_optimizer(ng_text *text, const ng_optimizer *optimizer)
{
    ng_optimizer_setting settings[NG_SETTINGS];
    const int count = ng_optimizer_settings(optimizer, settings);
    const char *between = " with ";
    ng_text_print(text, "optimizer: %s", optimizer->type->name);
    for (int i = 0; i < count; i++) {
        if (!settings[i].has_state || settings[i].value <= 0) continue;
        ng_text_print(text, "%s%s", between, settings[i].name);
        between = ", ";
    }
    for (int i = 0; i < count; i++)
        ng_text_print(text, "\n%s: %s", settings[i].name, ng_number_print(settings[i].value).text);
    for (int i = 0; i < optimizer->n_groups; i++) {
        const ng_parameter_group *group = &optimizer->groups[i];
        ng_text_print(text, "\ngroup %s: %s=%s", group->pattern,
                      group->decays ? "weight_decay" : "lr_scale",
                      ng_number_print(group->value).text);
    }
    if (optimizer->projection) ng_text_print(text, "\nprojection: after each step");
}

static void print_layers(ng_text *text, const ng_module *root)
{
    const ng_module *module;
    for (int i = 0; (module = ng_module_layer(root, i)); i++) {
        char *settings = ng_module_settings(text->function, module);
        text->failed = text->failed || !settings;
        if (text->failed) return;
        const char *path = ng_module_path(root, module);
        ng_text_print(text, "\n%s%s: %s", *path ? "layer " : "network", path, module->type->name);
        if (*settings) ng_text_print(text, "(%s)", settings);
        ng_free(settings);
    }
}

uint64_t ng_training_digest_of(const ng_dataset *data)
{
    uint64_t digest = NG_DIGEST_START;
    const ng_tensor *const tensors[] = {ng_dataset_x(data), ng_dataset_y(data)};
    for (int i = 0; i < 2; i++) {
        const ng_tensor *x = tensors[i];
        if (ng_is_none(x)) continue;
        digest = ng_digest(digest, x->shape.dim, (size_t)x->shape.rank * sizeof x->shape.dim[0]);
        digest = ng_digest(digest, x->data, (size_t)x->size * ng_dtype_bytes(x->dtype));
    }
    return digest;
}

void ng_training_print_settings(const ng_training *self, ng_text *text)
{
    print_optimizer(text, self->with.optimizer);
    print_layers(text, self->with.optimizer->module);
    if (self->with.data)
        ng_text_print(text,
                      "\ndata: %" PRId64 " samples, digest %016" PRIx64 "\nseed: %" PRIu64
                      "\nin_order: %s",
                      ng_dataset_count(self->with.data), self->samples, self->with.seed,
                      self->with.in_order ? "true" : "false");
}

bool ng_training_same_settings(ng_origin origin, const char *saved, const char *own, bool changed)
{
    enum { SHOWN = 160 };
    for (bool first = true;; first = false) {
        const size_t there = strcspn(saved, "\n"), here = strcspn(own, "\n");
        if (there != here || memcmp(saved, own, here) != 0)
            return ng_refuse(origin, NG_EVALUE, "saved with \"%.*s\", and here it is \"%.*s\"%s",
                             there < SHOWN ? (int)there : SHOWN, saved,
                             here < SHOWN ? (int)here : SHOWN, own,
                             first ? "" : " (.changed goes on with this program's)");
        saved += there, own += here;
        if (changed || (!*saved && !*own)) return true;
        saved += *saved == '\n', own += *own == '\n';
    }
}
