/* What a training's file says of the program that it is of, line by line, so that another one is
 * refused by the name of what differs. The settings of the optimizer itself are numbers, and stand
 * apart (training_state.c).
 *
 *     group *.bias TAB lr_scale=1, weight_decay=0
 *     layer 0 TAB Linear(64, 128)
 *     seed TAB 5 */
#include "io/training.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>

/* ---- Write --------------------------------------------------------------------------------- */

static void print_groups(ng_text *text, const ng_optimizer *optimizer)
{
    for (int i = 0; i < optimizer->n_groups; i++) {
        const ng_parameter_group *group = &optimizer->groups[i];
        ng_text_print(text, "group %s\tlr_scale=%.17g", group->pattern, group->lr_scale);
        if (!isnan(group->weight_decay))
            ng_text_print(text, ", weight_decay=%.17g", group->weight_decay);
        ng_text_print(text, "\n");
    }
}

static void print_layers(ng_text *text, const ng_module *root, const ng_module *module)
{
    char *settings = ng_module_settings(text->function, module);
    if (!settings) {
        text->failed = true;
        return;
    }
    const char *path = ng_module_path(root, module);
    ng_text_print(text, "%s%s\t%s", *path ? "layer " : "the network", path, module->type->name);
    ng_text_print(text, *settings ? "(%s)\n" : "\n", settings);
    ng_free(settings);
    for (int i = 0; i < module->registry->count; i++) {
        const ng_module *child = module->registry->entries[i].child;
        if (child) print_layers(text, root, child);
    }
}

void ng_training_print_program(const ng_training *self, ng_text *text)
{
    ng_c_locale locale; /* a number is the same in all of them */
    if (!ng_c_locale_enter(text->function, &locale)) {
        text->failed = true;
        return;
    }
    print_groups(text, self->with.optimizer);
    print_layers(text, self->with.optimizer->module, self->with.optimizer->module);
    ng_c_locale_leave(&locale);
    if (!self->with.data) return;
    ng_text_print(text, "data\t%lld samples\n", (long long)ng_dataset_count(self->with.data));
    ng_text_print(text, "in_order\t%s\n", self->with.in_order ? "true" : "false");
    ng_text_print(text, "seed\t%llu\n", (unsigned long long)self->with.seed);
    ng_text_print(text, "the samples' digest\t%016llx\n", (unsigned long long)self->samples);
}

/* FNV-1a over whole elements, so that it is the same for either order of bytes. A product carries
 * upwards only: without the high half on top of the low one two signs would cancel each other, and
 * of whole numbers in double little more than their exponents would count. */
static uint64_t digest_of_word(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x100000001b3);
    return digest ^ digest >> 32;
}

static uint64_t digest_of(uint64_t digest, const ng_tensor *x)
{
    digest = digest_of_word(digest, (uint64_t)x->dtype);
    for (int i = 0; i < x->shape.rank; i++)
        digest = digest_of_word(digest, (uint64_t)x->shape.dim[i]);
    const size_t width = ng_dtype_bytes(x->dtype);
    for (int64_t i = 0; i < x->size; i++) {
        uint32_t four;
        uint64_t bits;
        memcpy(&four, (const char *)x->data + (size_t)i * width, sizeof four);
        bits = four;
        if (width == sizeof bits) memcpy(&bits, (const char *)x->data + (size_t)i * width, width);
        digest = digest_of_word(digest, bits);
    }
    return digest;
}

uint64_t ng_training_digest_of(const ng_dataset *data)
{
    const uint64_t digest = digest_of(NG_DIGEST_START, ng_dataset_x(data));
    const ng_tensor *y = ng_dataset_y(data);
    return y == NG_NONE ? digest : digest_of(digest, y);
}

/* ---- Compare ------------------------------------------------------------------------------- */

/* One line: what it is of, and what it says of that. */
typedef struct {
    const char *subject, *value;
    int subject_length, value_length; /* cut where they are long */
} line;

static line line_at(const char *text)
{
    enum { LONGEST = 160 };
    const size_t length = strcspn(text, "\n"), subject = strcspn(text, "\t\n");
    const size_t gap = subject < length ? 1 : 0, value = length - subject - gap;
    return (line){.subject = text,
                  .value = text + subject + gap,
                  .subject_length = (int)(subject < LONGEST ? subject : LONGEST),
                  .value_length = (int)(value < LONGEST ? value : LONGEST)};
}

static const char *next_line(const char *text)
{
    text += strcspn(text, "\n");
    return *text ? text + 1 : text;
}

static bool same_line(const char *a, const char *b)
{
    const size_t length = strcspn(a, "\n");
    return length == strcspn(b, "\n") && memcmp(a, b, length) == 0;
}

static bool has_line(const char *text, const char *wanted)
{
    for (; *text; text = next_line(text))
        if (same_line(text, wanted)) return true;
    return false;
}

static bool same_subject(const line *a, const line *b)
{
    return a->subject_length > 0 && a->subject_length == b->subject_length &&
           memcmp(a->subject, b->subject, (size_t)a->subject_length) == 0;
}

/* The lines that settings alone make no more or fewer: those of layers and data. */
static int count_parts(const char *text)
{
    int count = 0;
    for (; *text; text = next_line(text)) count += strncmp(text, "group ", 6) != 0;
    return count;
}

bool ng_training_same_program(const char *function, const char *path, const char *saved,
                              const char *own)
{
    const bool settings = count_parts(saved) == count_parts(own);
    const char *allowed = settings ? " (.changed allows other settings)" : "";
    while (*saved && *own && same_line(saved, own)) saved = next_line(saved), own = next_line(own);
    if (!*saved && !*own) return true;
    const line there = line_at(saved), here = line_at(own);
    const bool other = same_subject(&there, &here), extra = *own && !has_line(saved, own);
    if (other)
        ng_fail(NG_EVALUE, "%s: %s: %.*s is %.*s, and here %.*s%s", function, path,
                here.subject_length, here.subject, there.value_length, there.value,
                here.value_length, here.value, allowed);
    else if (extra)
        ng_fail(NG_EVALUE, "%s: %s has no %.*s, and here it is %.*s%s", function, path,
                here.subject_length, here.subject, here.value_length, here.value, allowed);
    else
        ng_fail(NG_EVALUE, "%s: %s: %.*s is %.*s, and here there is none%s", function, path,
                there.subject_length, there.subject, there.value_length, there.value, allowed);
    return false;
}
