/* The settings of a class as a table: defaults, refusals, descriptions. */
#include "nn/settings.h"
#include "nn/module.h"
#include <float.h>
#include <string.h>

/* ---- Values ---------------------------------------------------------------------------------- */

/* The ranges of doubles; no NaN is in one. */
static const struct {
    double low, high;
    const char *text;
} ranges[] = {
    [NG_IS_FINITE] = {-DBL_MAX, DBL_MAX, "a finite number"},
    [NG_IS_POSITIVE] = {DBL_TRUE_MIN, DBL_MAX, "a positive number"},
    [NG_IS_NOT_NEGATIVE] = {0, DBL_MAX, "a finite number of at least 0"},
    [NG_IS_FACTOR] = {1, DBL_MAX, "a finite number of at least 1"},
    [NG_IS_FRACTION] = {0, 1, "a number from 0 to 1"},
    [NG_IS_PROBABILITY] = {0, 1 - DBL_EPSILON / 2, "a number of at least 0 and below 1"},
    [NG_IS_PART] = {DBL_TRUE_MIN, 1, "a number above 0 and at most 1"},
};

static void *member_of(const ng_setting *s, const void *layer)
{
    return (char *)(uintptr_t)layer + s->place;
}

/* The value as a number; of a shape its rank, of a pointer whether there is one. */
static double value_of(const ng_setting *s, const void *layer)
{
    const void *member = member_of(s, layer);
    switch (s->kind) {
    case NG_IS_COUNT:
    case NG_IS_COUNT_OR_0: return (double)*(const int64_t *)member;
    case NG_IS_FLAG: return *(const bool *)member;
    case NG_IS_CHOICE: return *(const unsigned *)member;
    case NG_IS_SHAPE: return ((const ng_shape *)member)->rank;
    case NG_IS_POINTER: return *(void *const *)member != NULL;
    case NG_IS_OTHER: return 1;
    default: return *(const double *)member;
    }
}

static bool is_given(const ng_setting *s, const void *layer)
{
    return ng_option_given(value_of(s, layer));
}

static const ng_setting *find_setting(const ng_setting *settings, const char *name)
{
    while (settings->name && strcmp(settings->name, name) != 0) settings++;
    return settings;
}

/* ---- What goes together ---------------------------------------------------------------------- */

/* Whether a list of names, "momentum group", or NULL has this one. */
static bool lists(const char *names, const ng_setting *s)
{
    const size_t length = strlen(s->name);
    for (const char *place = names; place && (place = strstr(place, s->name)); place += length)
        if ((place == names || place[-1] == ' ') && (place[length] == ' ' || !place[length]))
            return true;
    return false;
}

/* Whether the setting that it needs is given, or has one of the values. */
static bool has_effect(const ng_setting *settings, const ng_setting *s, const void *layer)
{
    if (!s->needs) return true;
    const ng_setting *other = find_setting(settings, s->needs);
    const double value = value_of(other, layer);
    return s->when ? value < 32 && s->when >> (int)value & 1 : is_given(other, layer);
}

static bool refuse_unneeded(const char *function, const ng_setting *settings, const ng_setting *s)
{
    char values[128] = "";
    const ng_setting *other = find_setting(settings, s->needs);
    for (int i = 0; s->when >> i; i++)
        if (s->when >> i & 1)
            snprintf(values + strlen(values), sizeof values - strlen(values), "%s%s",
                     *values ? " or " : " = ", other->choices[i]);
    ng_fail(NG_EVALUE, "%s: .%s is set, which has an effect only with .%s%s", function, s->name,
            s->needs, values);
    return false;
}

static bool go_together(const char *function, const ng_setting *settings, const void *layer)
{
    for (const ng_setting *s = settings; s->name; s++) {
        if (!is_given(s, layer)) continue;
        if (!has_effect(settings, s, layer)) return refuse_unneeded(function, settings, s);
        for (const ng_setting *other = settings; other->name; other++)
            if (lists(s->excludes, other) &&
                !ng_option_apart(function, s->name, true, other->name, is_given(other, layer)))
                return false;
    }
    return true;
}

/* ---- Defaults and ranges --------------------------------------------------------------------- */

static bool count_ok(const char *function, const ng_setting *settings, const ng_setting *s,
                     const void *layer)
{
    const int64_t value = *(const int64_t *)member_of(s, layer);
    if (!ng_option_positive(function, s->name, value, s->unit)) return false;
    if (s->most && value > s->most) {
        ng_fail(NG_EVALUE, "%s: %s is %lld, expected at most %lld", function, s->name,
                (long long)value, (long long)s->most);
        return false;
    }
    for (const ng_setting *other = settings; other->name; other++) {
        if (!lists(s->divides, other)) continue;
        const int64_t whole = *(const int64_t *)member_of(other, layer);
        if (whole % value == 0) continue;
        ng_fail(NG_EVALUE, "%s: %s is %lld, expected a divisor of %s = %lld", function, s->name,
                (long long)value, other->name, (long long)whole);
        return false;
    }
    return true;
}

static bool choice_ok(const char *function, const ng_setting *s, unsigned value)
{
    for (unsigned i = 0; s->choices[i]; i++)
        if (i == value) return true;
    ng_fail(NG_EVALUE, "%s: %s is %d, expected an %s", function, s->name, (int)value, s->unit);
    return false;
}

static bool number_ok(const char *function, const ng_setting *s, double value)
{
    if (value >= ranges[s->kind].low && value <= ranges[s->kind].high) return true;
    ng_fail(NG_EVALUE, "%s: %s is %g, expected %s", function, s->name, value + 0,
            ranges[s->kind].text);
    return false;
}

static bool shape_ok(const char *function, const ng_setting *s, const ng_shape *shape)
{
    for (int i = 0; i < shape->rank && i < NG_MAX_RANK; i++)
        if (!ng_option_positive(function, s->name, shape->dim[i], s->unit)) return false;
    return ng_shape_size(function, *shape) >= 0;
}

static bool value_ok(const char *function, const ng_setting *settings, const ng_setting *s,
                     const void *layer)
{
    switch (s->kind) {
    case NG_IS_COUNT: return count_ok(function, settings, s, layer);
    case NG_IS_COUNT_OR_0: return !is_given(s, layer) || count_ok(function, settings, s, layer);
    case NG_IS_CHOICE: return choice_ok(function, s, *(const unsigned *)member_of(s, layer));
    case NG_IS_SHAPE: return shape_ok(function, s, member_of(s, layer));
    case NG_IS_FLAG:
    case NG_IS_POINTER:
    case NG_IS_OTHER: return true;
    default: return number_ok(function, s, value_of(s, layer));
    }
}

static void fill_in(const ng_setting *s, void *layer)
{
    if (s->standard == 0 || is_given(s, layer)) return;
    if (s->kind == NG_IS_COUNT)
        *(int64_t *)member_of(s, layer) = (int64_t)s->standard;
    else
        *(double *)member_of(s, layer) = s->standard;
}

/* Fills in the defaults of a layer's struct. False with an error: a value is refused. */
static bool settings_accepted(const char *function, const ng_setting *settings, void *layer)
{
    if (!go_together(function, settings, layer)) return false;
    for (const ng_setting *s = settings; s->name; s++) fill_in(s, layer);
    for (const ng_setting *s = settings; s->name; s++)
        if (has_effect(settings, s, layer) && !value_ok(function, settings, s, layer)) return false;
    return true;
}

void *ng_layer_new(const char *function, const ng_module_class *type, const ng_setting *settings,
                   void *layer)
{
    if (!settings_accepted(function, settings, layer)) return NULL;
    ng_module *self = ng_module_new(type);
    if (!self) return NULL;
    memcpy(self + 1, (const ng_module *)layer + 1, type->size - sizeof *self);
    self->registry->settings = settings;
    return self;
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

/* Whether the setting stands in the description: it has an effect, and a value worth a word. */
static bool is_shown(const ng_setting *settings, const ng_setting *s, const void *layer)
{
    const bool may_be_none = s->kind >= NG_IS_COUNT_OR_0 && s->kind <= NG_IS_POINTER;
    const double value = value_of(s, layer);
    if (s->hidden || (s->quiet && value == s->standard) || (may_be_none && value == 0) ||
        !has_effect(settings, s, layer))
        return false;
    for (const ng_setting *other = settings; other->name; other++)
        if (lists(other->excludes, s) && is_given(other, layer)) return false;
    return true;
}

static void print_value(const ng_setting *s, const void *layer, char *text, size_t bytes)
{
    const void *member = member_of(s, layer);
    const ng_shape *shape = member;
    switch (s->kind) {
    case NG_IS_COUNT:
    case NG_IS_COUNT_OR_0:
        snprintf(text, bytes, "%lld", (long long)*(const int64_t *)member);
        break;
    case NG_IS_OTHER: s->print(member, text, bytes); break;
    case NG_IS_CHOICE: snprintf(text, bytes, "%s", s->choices[*(const unsigned *)member]); break;
    case NG_IS_SHAPE:
        if (shape->rank == 1)
            snprintf(text, bytes, "%lld", (long long)shape->dim[0]);
        else
            snprintf(text, bytes, "%s", ng_shape_print(*shape).text);
        break;
    default: snprintf(text, bytes, "%s", ng_number_print(value_of(s, layer)).text);
    }
}

/* "eps=1e-05"; of a flag or a pointer its name in words, "no affine". */
static void print_setting(const ng_setting *s, const void *layer, char *text, size_t bytes)
{
    char value[256] = "";
    const char *name = s->label ? s->label : s->name;
    if (s->kind == NG_IS_FLAG || s->kind == NG_IS_POINTER) {
        snprintf(text, bytes, "%s", name);
        for (char *place = text; (place = strchr(place, '_'));) *place = ' ';
    } else {
        print_value(s, layer, value, sizeof value);
        const bool named = !s->bare && *value;
        snprintf(text, bytes, "%s%s%s", named ? name : "", named ? "=" : "", value);
    }
}

void ng_module_describe(const ng_module *module, char *text, size_t bytes)
{
    const ng_setting *settings = module->registry->settings;
    *text = '\0';
    if (module->type->describe) module->type->describe(module, text, bytes);
    if (module->type->describe || !settings) return;
    for (const ng_setting *s = settings; s->name; s++) {
        if (!is_shown(settings, s, module)) continue;
        const size_t used = strlen(text);
        const char *comma = used > 0 ? ", " : "";
        char one[320];
        print_setting(s, module, one, sizeof one);
        if (*one) snprintf(text + used, bytes - used, "%s%s", comma, one);
    }
}

/* The description, in a buffer that is doubled until the text fits. */
static char *describe_whole(const char *function, const ng_module *module)
{
    enum { MOST = 1 << 20 };
    for (int64_t bytes = 256; bytes <= MOST; bytes *= 2) {
        char *text = ng_calloc(function, bytes, 1);
        if (!text) return NULL;
        ng_module_describe(module, text, (size_t)bytes);
        if ((int64_t)strlen(text) < bytes - 1) return text;
        ng_free(text);
    }
    ng_fail(NG_EVALUE, "%s: the settings of a %s take more than %d characters", function,
            module->type->name, MOST);
    return NULL;
}

char *ng_module_settings(const char *function, const ng_module *module)
{
    const locale_t locale = ng_c_locale_begin();
    char *text = describe_whole(function, module);
    ng_c_locale_end(locale);
    return text;
}
