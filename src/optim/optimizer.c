/* Collects parameters, keeps their state, and walks over them at each step. */
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>

/* ---- State --------------------------------------------------------------------------------- */

/* Bytes of `count` elements of the weight's dtype, in whole cache lines. */
static int64_t bytes_like(const ng_tensor *weight, int64_t count)
{
    return (count * (int64_t)ng_dtype_bytes(weight->dtype) + 63) / 64 * 64;
}

/* Bytes of one state array of a parameter. */
static int64_t state_bytes(const ng_tensor *weight) { return bytes_like(weight, weight->size); }

static int64_t scratch_bytes(const ng_optimizer *self, const ng_tensor *weight)
{
    return self->type->scratch ? bytes_like(weight, self->type->scratch(weight)) : 0;
}

/* Zeroed state for a list of parameters in their present dtypes, and the scratch of the one that
 * needs most; NULL without memory. */
static void *state_new(const char *function, const ng_optimizer *self, ng_moved *list, int count)
{
    int64_t bytes = 0, scratch = 0;
    for (int i = 0; i < count; i++) {
        bytes += self->states * state_bytes(list[i].weight);
        const int64_t own = scratch_bytes(self, list[i].weight);
        if (own > scratch) scratch = own;
    }
    char *const slab = ng_calloc(function, bytes + scratch, 1);
    char *next = slab;
    for (int i = 0; slab && i < count; i++) {
        list[i].dtype = list[i].weight->dtype;
        list[i].scratch = slab + bytes;
        for (int k = 0; k < self->states; k++) {
            list[i].state[k] = next;
            next += state_bytes(list[i].weight);
        }
    }
    return slab;
}

/* ---- Groups -------------------------------------------------------------------------------- */

/* Whether the whole name matches the pattern, in which * matches any characters. */
static bool matches(const char *pattern, const char *name)
{
    const char *star = NULL, *again = NULL;
    while (*name) {
        if (*pattern == '*')
            star = ++pattern, again = name;
        else if (*pattern == *name)
            pattern++, name++;
        else if (star)
            pattern = star, name = ++again;
        else
            return false;
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

/* Gives a parameter the settings of the last groups whose patterns it matches. */
static void optimizer_apply_groups(const ng_optimizer *self, ng_moved *moved)
{
    moved->lr_scale = 1;
    moved->weight_decay = (double)NAN;
    for (int i = 0; i < self->n_groups; i++) {
        const ng_parameter_group *group = &self->groups[i];
        if (!matches(group->pattern, moved->name)) continue;
        if (group->decays)
            moved->weight_decay = group->value;
        else
            moved->lr_scale = group->value;
    }
}

static bool has_match(const char *function, const ng_optimizer *self, const char *pattern)
{
    for (int i = 0; i < self->count; i++)
        if (matches(pattern, self->moved[i].name)) return true;
    ng_fail(NG_EVALUE, "%s: no parameter's name matches \"%s\"", function, pattern);
    return false;
}

/* Adds a group with a decay, or else a factor of the rate. */
static ng_status add_group(const char *function, ng_optimizer *self, const char *text, bool decays,
                           double value)
{
    if (!ng_given(function, "optimizer", self) || !ng_given(function, "pattern", text) ||
        !ng_option_range(function, decays ? "decay" : "factor", value, 0, HUGE_VAL) ||
        !ng_optimizer_current(function, self) || !has_match(function, self, text))
        return ng_newest_status();
    char *pattern = ng_copy_text(function, text);
    ng_parameter_group *grown =
        pattern ? ng_grow(function, self->groups, self->n_groups, self->n_groups + 1, sizeof *grown)
                : NULL;
    if (!grown) {
        ng_free(pattern);
        return ng_newest_status();
    }
    self->groups = grown;
    grown[self->n_groups++] =
        (ng_parameter_group){.pattern = pattern, .decays = decays, .value = fabs(value)};
    for (int i = 0; i < self->count; i++) optimizer_apply_groups(self, &self->moved[i]);
    return NG_OK;
}

ng_status ng_optimizer_set_decay(ng_optimizer *optimizer, const char *pattern, double decay)
{
    return add_group("ng_optimizer_set_decay", optimizer, pattern, true, decay);
}

ng_status ng_optimizer_scale_lr(ng_optimizer *optimizer, const char *pattern, double factor)
{
    return add_group("ng_optimizer_scale_lr", optimizer, pattern, false, factor);
}

/* ---- Parameters ---------------------------------------------------------------------------- */

/* A parameter that is new to the optimizer, which uses its gradient unless another one has. */
static ng_moved moved_new(const ng_named_tensor *parameter)
{
    const ng_tensor *weight = parameter->tensor;
    return (ng_moved){
        .weight = parameter->tensor, .name = parameter->name, .arrived = weight->leaf->used};
}

static const ng_moved *find_moved(const ng_optimizer *self, const ng_tensor *weight, int hint)
{
    if (hint < self->count && self->moved[hint].weight == weight) return &self->moved[hint];
    for (int i = 0; i < self->count; i++)
        if (self->moved[i].weight == weight) return &self->moved[i];
    return NULL;
}

/* Collects the present parameters of the module: known ones keep their state, new ones start with
 * zero state. On failure nothing changes. */
static bool collect(const char *function, ng_optimizer *self)
{
    ng_named_tensor parameter;
    int count = 0;
    if (!ng_module_ready(self->module)) return false;
    while (ng_module_parameter(self->module, count, &parameter)) count++;
    ng_moved *list = ng_calloc(function, count, sizeof *list);
    for (int i = 0; list && i < count; i++) {
        ng_module_parameter(self->module, i, &parameter);
        const ng_moved *known = find_moved(self, parameter.tensor, i);
        list[i] = known ? *known : moved_new(&parameter);
        list[i].name = parameter.name;
        optimizer_apply_groups(self, &list[i]);
    }
    void *state = list ? state_new(function, self, list, count) : NULL;
    if (!state) {
        ng_free(list);
        return false;
    }
    for (int i = 0; i < count; i++) {
        const ng_moved *known = find_moved(self, list[i].weight, i);
        for (int k = 0; known && k < self->states; k++)
            memcpy(list[i].state[k], known->state[k], (size_t)state_bytes(list[i].weight));
    }
    ng_free(self->state), ng_free(self->moved);
    self->state = state;
    self->moved = list;
    self->count = count;
    self->structure = self->module->registry->structure;
    return true;
}

/* ---- Make and free ------------------------------------------------------------------------- */

ng_optimizer *ng_optimizer_make(const ng_optimizer_class *type, const char *function,
                                ng_module *module, double lr, ng_schedule schedule, int states)
{
    if (!ng_given(function, "module", module)) return NULL;
    if (!ng_option_range(function, "lr", lr, 0, HUGE_VAL)) return NULL;
    if (!ng_schedule_accepted(function, &schedule)) return NULL;
    ng_optimizer *self = ng_calloc(function, 1, type->size);
    if (!self) return NULL;
    self->type = type;
    self->lr = self->first_lr = lr;
    self->schedule = schedule;
    self->states = states;
    self->module = module;
    if (collect(function, self)) return self;
    ng_optimizer_free(self);
    return NULL;
}

ng_optimizer *ng_optimizer_checked(const char *function, ng_optimizer *self)
{
    ng_optimizer_setting settings[NG_SETTINGS];
    const int count = self ? self->type->settings(self, settings) : 0;
    for (int i = 0; i < count; i++) {
        const double below = settings[i].below > 0 ? settings[i].below : HUGE_VAL;
        if (ng_option_range(function, settings[i].name, settings[i].value, 0, below)) continue;
        ng_optimizer_free(self);
        return NULL;
    }
    return self;
}

void ng_optimizer_free(ng_optimizer *optimizer)
{
    if (!optimizer) return;
    for (int i = 0; i < optimizer->n_groups; i++) ng_free(optimizer->groups[i].pattern);
    ng_free(optimizer->groups);
    ng_free(optimizer->state);
    ng_free(optimizer->moved);
    ng_free(optimizer);
}

/* ---- Step ---------------------------------------------------------------------------------- */

static const char step_name[] = "ng_optimizer_step";

/* Before the first step, a change of dtype gives zeroed state of that dtype. After it, it is an
 * error. */
static ng_status follow_dtype(const char *function, ng_optimizer *self)
{
    const ng_moved *converted = NULL;
    for (int i = 0; i < self->count && !converted; i++)
        if (self->moved[i].weight->dtype != self->moved[i].dtype) converted = &self->moved[i];
    if (!converted) return NG_OK;
    if (self->steps > 0)
        return ng_fail(
            NG_ESTATE,
            "%s: \"%s\" is %s now and was %s at the first step, expected no change after it",
            function, converted->name, ng_dtype_name(converted->weight->dtype),
            ng_dtype_name(converted->dtype));
    void *state = state_new(function, self, self->moved, self->count);
    if (!state) return NG_ENOMEM;
    ng_free(self->state);
    self->state = state;
    return NG_OK;
}

bool ng_optimizer_current(const char *function, ng_optimizer *self)
{
    if (follow_dtype(function, self) != NG_OK) return false;
    return self->structure == self->module->registry->structure || collect(function, self);
}

bool ng_has_new_gradient(const ng_moved *moved)
{
    return ng_has_grad(moved->weight) && moved->weight->leaf->arrived != moved->arrived;
}

static bool any_new_gradient(const ng_optimizer *self)
{
    for (int i = 0; i < self->count; i++)
        if (ng_has_new_gradient(&self->moved[i])) return true;
    return false;
}

/* Moves a parameter with a new gradient, and returns whether it has. The gradient of a frozen one
 * is used up too: once the parameter is unfrozen, it would be out of date. */
static bool move(ng_optimizer *self, ng_moved *moved, double lr)
{
    ng_tensor *weight = moved->weight;
    if (!ng_has_new_gradient(moved)) return false;
    moved->arrived = weight->leaf->used = weight->leaf->arrived;
    if (!weight->requires_grad) return false;
    moved->steps++;
    self->type->move(self, ng_kernels_for(moved->dtype), moved, lr * moved->lr_scale);
    ng_touch(weight);
    return true;
}

static ng_status project(const ng_optimizer *self, const ng_moved *moved)
{
    if (!self->projection) return NG_OK;
    const int64_t before = ng_failures_ever();
    const ng_status status = self->projection(self->context, moved->name, moved->weight);
    ng_touch(moved->weight);
    if (status != NG_OK)
        ng_fail_unrecorded(before, status, "%s: the projection of \"%s\" returned %s", step_name,
                           moved->name, ng_status_name(status));
    return status;
}

ng_status ng_optimizer_step(ng_optimizer *optimizer)
{
    if (!ng_given(step_name, "optimizer", optimizer)) return ng_newest_status();
    if (!ng_optimizer_current(step_name, optimizer)) return ng_newest_status();
    if (!any_new_gradient(optimizer))
        return ng_fail(NG_ESTATE,
                       "%s: no backward pass has reached a parameter since the last step",
                       step_name);

    const double lr = ng_optimizer_lr(optimizer);
    ng_status status = NG_OK;
    for (int i = 0; i < optimizer->count; i++) {
        ng_moved *const moved = &optimizer->moved[i];
        if (move(optimizer, moved, lr) && status == NG_OK) status = project(optimizer, moved);
    }
    optimizer->steps++;
    return status;
}

/* ---- Look and set -------------------------------------------------------------------------- */

double ng_optimizer_lr(const ng_optimizer *optimizer)
{
    if (!ng_given("ng_optimizer_lr", "optimizer", optimizer)) return (double)NAN;
    return optimizer->lr * ng_schedule_factor(&optimizer->schedule, optimizer->steps);
}

ng_status ng_optimizer_set_lr(ng_optimizer *optimizer, double lr)
{
    if (!ng_given("ng_optimizer_set_lr", "optimizer", optimizer)) return ng_newest_status();
    if (!ng_option_range("ng_optimizer_set_lr", "lr", lr, 0, HUGE_VAL)) return ng_newest_status();
    optimizer->lr = lr;
    return NG_OK;
}

ng_status ng_optimizer_set_projection(ng_optimizer *optimizer, ng_projection *projection,
                                      void *context)
{
    if (!ng_given("ng_optimizer_set_projection", "optimizer", optimizer)) return ng_newest_status();
    optimizer->projection = projection;
    optimizer->context = context;
    return NG_OK;
}

int64_t ng_optimizer_steps(const ng_optimizer *optimizer)
{
    return ng_given("ng_optimizer_steps", "optimizer", optimizer) ? optimizer->steps : -1;
}

int ng_optimizer_settings(const ng_optimizer *self, ng_optimizer_setting settings[NG_SETTINGS])
{
    const ng_schedule *schedule = &self->schedule;
    const ng_optimizer_setting common[] = {
        {.name = "lr", .value = self->first_lr},
        {.name = "schedule.kind", .value = (double)schedule->kind},
        {.name = "schedule.warmup", .value = (double)schedule->warmup},
        {.name = "schedule.steps", .value = (double)schedule->steps},
        {.name = "schedule.every", .value = (double)schedule->every},
        {.name = "schedule.factor", .value = ng_option(schedule->factor, 0.1)},
        {.name = "schedule.floor", .value = schedule->floor}};
    const int count = sizeof common / sizeof common[0];
    memcpy(settings, common, sizeof common);
    return count + self->type->settings(self, settings + count);
}
