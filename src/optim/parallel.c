/* Data-parallel training. Gradients are written straight into buckets. As soon as the gradients of
 * a bucket are complete (tape/hook.h), it is added up over the group; at the end the sums are added
 * to the parameters' gradients. A parameter as large as a bucket has one to itself. If its gradient
 * was used by an optimizer, the gradient's memory is the bucket, and nothing is copied.
 *
 * Buckets hold the parameters from the last registered to the first, about the order in which a
 * backward pass completes them. After the buckets one number per parameter is added up, 1 on the
 * ranks that have reached it: a parameter that no rank has reached keeps its gradient. */
#include "group/collective.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "tape/hook.h"
#include <normgrad/parallel.h>
#include <string.h>

/* One parameter. */
typedef struct {
    ng_gradient_hook hook; /* first: a hook is its slot */
    ng_tensor *weight;
    ng_tensor place; /* in the bucket */
} slot;

typedef struct {
    ng_dtype dtype;
    int first, count;              /* slots */
    int64_t size;                  /* numbers */
    void *memory;                  /* the bucket's own */
    void *data;                    /* of this pass: `memory`, or that of a used gradient */
    void *waiting;                 /* sums of earlier passes with .later */
    int incomplete;                /* gradients that this pass has not completed */
    int64_t first_call, last_call; /* tickets of the calls that add it up */
} bucket;

struct ng_parallel {
    ng_module *module;
    ng_group *group;
    int64_t bucket_bytes;
    bool fast;
    slot *slots; /* of the parameters that require a gradient, the last registered first */
    int n_slots;
    bucket *buckets;
    int n_buckets;
    void *memory;
    bool waits;     /* earlier passes are in `waiting` */
    bool starts;    /* this pass is added up, not kept for later */
    int started;    /* buckets that are being added up */
    float *reached; /* by slot: 1 if a pass has reached it; then the sum over the ranks */
};

static const char function[] = "ng_parallel_backward", maker[] = "ng_parallel_new";

/* ---- The same network everywhere ------------------------------------------------------------- */

static uint64_t digest_of_text(uint64_t digest, const char *text)
{
    return ng_digest(digest, text, strlen(text) + 1);
}

/* A digest of a layer's path, class and settings; 0 with an error without memory. */
static uint64_t digest_of_layer(const char *path, const ng_module *layer)
{
    char *settings = ng_module_settings(maker, layer);
    if (!settings) return 0;
    uint64_t digest = digest_of_text(NG_DIGEST_START, path);
    digest = digest_of_text(digest_of_text(digest, layer->type->name), settings);
    ng_free(settings);
    return digest;
}

static uint64_t digest_of_tensor(const ng_named_tensor *named)
{
    const ng_tensor *x = named->tensor;
    const int64_t head[] = {x->dtype, x->shape.rank, x->requires_grad};
    const uint64_t digest =
        ng_digest(digest_of_text(NG_DIGEST_START, named->name), head, sizeof head);
    return ng_digest(digest, x->shape.dim, (size_t)x->shape.rank * sizeof x->shape.dim[0]);
}

/* The index-th of all parameters and then all buffers. */
static bool tensor_at(const ng_module *module, int parameters, int index, ng_named_tensor *found)
{
    return index < parameters
               ? ng_module_tensor(module, NG_ENTRY_PARAMETER, index, found)
               : ng_module_tensor(module, NG_ENTRY_BUFFER, index - parameters, found);
}

static int parallel_count_of(const ng_module *module, ng_entry_kind kind)
{
    ng_named_tensor found;
    int count = 0;
    while (ng_module_tensor(module, kind, count, &found)) count++;
    return count;
}

/* Whether every rank gives the same number; else `other` is the first that differs from rank 0. */
static bool same_everywhere(ng_group *group, uint64_t number, double *all, int *other)
{
    double mine;
    memcpy(&mine, &number, sizeof mine);
    *other = -1;
    if (ng_group_gather(group, &mine, 1, all)) return false;
    for (int r = ng_group_size(group) - 1; r > 0; r--)
        if (memcmp(&all[r], &all[0], sizeof mine) != 0) *other = r;
    return *other < 0;
}

/* Compares the layers, then the parameters and buffers. */
static bool same_network(const ng_module *module, ng_group *group, double *all)
{
    const int layers = parallel_count_of(module, NG_ENTRY_CHILD) + 1;
    const int parameters = parallel_count_of(module, NG_ENTRY_PARAMETER);
    const int count = layers + parameters + parallel_count_of(module, NG_ENTRY_BUFFER);
    int other;
    bool same = same_everywhere(group, (uint64_t)count, all, &other);
    const char *path = "";
    for (int i = 0; i < count && same; i++) {
        const ng_module *layer = i < layers ? ng_module_layer(module, i) : NULL;
        ng_named_tensor named = {0};
        if (!layer) tensor_at(module, parameters, i - layers, &named);
        path = layer ? ng_module_path(module, layer) : named.name;
        same = same_everywhere(
            group, layer ? digest_of_layer(path, layer) : digest_of_tensor(&named), all, &other);
    }
    if (!same && other >= 0)
        ng_fail(
            NG_ESTATE,
            "%s: rank %d differs from rank 0 at \"%s\", expected a network with the same names, "
            "classes, settings, shapes, dtypes and freezing",
            maker, other, path);
    return same;
}

static bool share_values(ng_module *module, ng_group *group)
{
    const int parameters = parallel_count_of(module, NG_ENTRY_PARAMETER);
    ng_named_tensor named;
    for (int i = 0; tensor_at(module, parameters, i, &named); i++)
        if (ng_group_broadcast(group, named.tensor, 0)) return false;
    return true;
}

/* ---- Make and free --------------------------------------------------------------------------- */

static void forget_buckets(ng_parallel *p)
{
    ng_free(p->slots), ng_free(p->buckets), ng_free(p->memory), ng_free(p->reached);
    p->slots = NULL, p->buckets = NULL, p->memory = NULL, p->reached = NULL;
    p->n_slots = p->n_buckets = 0;
    p->waits = false;
}

void ng_parallel_free(ng_parallel *p)
{
    if (!p) return;
    forget_buckets(p);
    ng_free(p);
}

ng_parallel *ng_parallel_new_with(ng_module *module, ng_parallel_new_options options)
{
    if (!ng_given(maker, "group", options.group)) return NULL;
    const bool given = ng_given(maker, "module", module);
    if (given && options.bucket < 0)
        ng_fail(NG_EVALUE, "%s: bucket is %lld, expected a number of bytes", maker,
                (long long)options.bucket);
    ng_parallel *p = NULL;
    double *all = NULL;
    if (!ng_failed()) p = ng_calloc(maker, 1, sizeof *p);
    if (p) all = ng_calloc(maker, ng_group_size(options.group), sizeof *all);
    const bool well = ng_group_agree(options.group) == NG_OK &&
                      same_network(module, options.group, all) &&
                      share_values(module, options.group);
    ng_free(all);
    if (!well) {
        ng_free(p);
        return NULL;
    }
    *p = (ng_parallel){.module = module,
                       .group = options.group,
                       .bucket_bytes = options.bucket ? options.bucket : 1 << 20,
                       .fast = options.fast};
    return p;
}

uint64_t ng_group_seed(const ng_group *group, uint64_t seed)
{
    if (!ng_given("ng_group_seed", "group", group)) return 0;
    ng_rng rng =
        ng_rng_seeded(seed ^ (UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(ng_group_rank(group) + 1)));
    return ng_rng_next(&rng);
}

/* ---- Buckets --------------------------------------------------------------------------------- */

/* Whether the slots are those of the present parameters. */
static bool are_current(const ng_parallel *p, int parameters)
{
    int at = 0;
    for (int i = parameters - 1; i >= 0; i--) {
        ng_named_tensor named;
        ng_module_parameter(p->module, i, &named);
        if (!named.tensor->requires_grad) continue;
        if (at == p->n_slots) return false;
        const slot *s = &p->slots[at++];
        if (s->weight != named.tensor || s->place.dtype != named.tensor->dtype) return false;
    }
    return at == p->n_slots;
}

static int64_t bucket_bytes(const bucket *b)
{
    return (b->size * (int64_t)ng_dtype_bytes(b->dtype) + 63) / 64 * 64;
}

/* Divides the slots into buckets of one dtype each; returns the bytes of all. */
static int64_t divide_into_buckets(ng_parallel *p)
{
    int64_t bytes = 0;
    p->n_buckets = 0;
    for (int i = 0; i < p->n_slots; i++) {
        const ng_tensor *weight = p->slots[i].weight;
        bucket *b = p->n_buckets ? &p->buckets[p->n_buckets - 1] : NULL;
        const int64_t of_dtype = (int64_t)ng_dtype_bytes(weight->dtype);
        if (!b || b->dtype != weight->dtype ||
            (b->size + weight->size) * of_dtype > p->bucket_bytes) {
            b = &p->buckets[p->n_buckets++];
            *b = (bucket){.dtype = weight->dtype, .first = i};
        }
        b->count++;
        b->size += weight->size;
    }
    for (int i = 0; i < p->n_buckets; i++) bytes += bucket_bytes(&p->buckets[i]);
    return bytes;
}

static void place_slots(ng_parallel *p, int64_t bytes)
{
    char *at = p->memory;
    for (int i = 0; i < p->n_buckets; i++) {
        bucket *b = &p->buckets[i];
        b->memory = at, b->waiting = at + bytes;
        for (int k = b->first; k < b->first + b->count; k++)
            p->slots[k].place = (ng_tensor){.dtype = p->slots[k].weight->dtype,
                                            .shape = p->slots[k].weight->shape,
                                            .size = p->slots[k].weight->size};
        at += bucket_bytes(b);
    }
}

static bool make_buckets(ng_parallel *p)
{
    const int parameters = parallel_count_of(p->module, NG_ENTRY_PARAMETER);
    if (p->slots && are_current(p, parameters)) return true;
    if (p->waits) {
        ng_fail(NG_ESTATE, "%s: the parameters have changed since a call with .later", function);
        return false;
    }
    forget_buckets(p);
    p->slots = ng_calloc(function, parameters, sizeof *p->slots);
    p->buckets = ng_calloc(function, parameters, sizeof *p->buckets);
    p->reached = ng_calloc(function, parameters, sizeof *p->reached);
    if (!p->slots || !p->buckets || !p->reached) {
        forget_buckets(p);
        return false;
    }
    for (int i = parameters - 1; i >= 0; i--) {
        ng_named_tensor named;
        ng_module_parameter(p->module, i, &named);
        if (!named.tensor->requires_grad) continue;
        p->slots[p->n_slots++] = (slot){.weight = named.tensor};
    }
    const int64_t bytes = divide_into_buckets(p);
    p->memory = ng_calloc(function, bytes, 2);
    if (p->memory)
        place_slots(p, bytes);
    else
        forget_buckets(p);
    return p->memory != NULL;
}

/* Makes the memory of all gradients, so that nothing fails after the sums. */
static bool make_gradients(const ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++)
        if (!ng_tensor_grad_slot(p->slots[i].weight)) return false;
    return true;
}

/* ---- One pass -------------------------------------------------------------------------------- */

/* Adds earlier passes to a bucket, and begins to add it up over the ranks. A large parameter is
 * added up in pieces of the size of a bucket, which stay in the cache between steps. */
static void start_bucket(ng_parallel *p, bucket *b)
{
    if (p->waits) ng_kernels_for(b->dtype)->add_to(b->waiting, b->data, b->size);
    const int64_t of_dtype = (int64_t)ng_dtype_bytes(b->dtype);
    const int64_t most = p->bucket_bytes < of_dtype ? 1 : p->bucket_bytes / of_dtype;
    for (int64_t at = 0; at < b->size; at += most) {
        b->last_call = ng_group_start(
            p->group, (ng_collective){.how = b->dtype == NG_F32 ? NG_COMBINE_F32 : NG_COMBINE_F64,
                                      .fast = p->fast,
                                      .data = (char *)b->data + at * of_dtype,
                                      .count = b->size - at < most ? b->size - at : most,
                                      .call = function});
        if (at == 0) b->first_call = b->last_call;
    }
}

static bucket *bucket_of(ng_parallel *p, const slot *s)
{
    int i = p->started;
    while (s - p->slots >= p->buckets[i].first + p->buckets[i].count) i++;
    return &p->buckets[i];
}

/* The hook's call: the gradient of a slot is complete. */
static void slot_complete(ng_gradient_hook *hook)
{
    ng_parallel *p = hook->with;
    slot *s = (slot *)hook;
    if (hook->reached)
        p->reached[s - p->slots] = 1;
    else
        memset(s->place.data, 0, (size_t)s->place.size * ng_dtype_bytes(s->place.dtype));
    bucket_of(p, s)->incomplete--;
    if (!p->starts) return;
    while (p->started < p->n_buckets && p->buckets[p->started].incomplete == 0)
        start_bucket(p, &p->buckets[p->started++]);
    if (p->started > 0) ng_group_poll(p->group);
}

/* Chooses the memory for this pass. A pass with .later must not show in a gradient. */
static void open_bucket(ng_parallel *p, bucket *b)
{
    const ng_tensor *weight = p->slots[b->first].weight;
    b->incomplete = b->count;
    b->data = p->starts && b->count == 1 && weight->leaf->grad_state != NG_GRAD_NEW
                  ? weight->leaf->grad->data
                  : b->memory;
    char *place = b->data;
    for (slot *s = &p->slots[b->first]; s < &p->slots[b->first + b->count]; s++) {
        s->place.data = place;
        place += s->place.size * (int64_t)ng_dtype_bytes(b->dtype);
    }
}

static void begin_pass(ng_parallel *p)
{
    p->started = 0;
    for (int i = 0; i < p->n_buckets; i++) open_bucket(p, &p->buckets[i]);
    for (int i = 0; i < p->n_slots; i++) {
        slot *s = &p->slots[i];
        s->hook = (ng_gradient_hook){.place = &s->place, .call = slot_complete, .with = p};
        s->weight->leaf->hook = &s->hook;
        if (!p->waits) p->reached[i] = 0;
    }
}

/* After a failure: drops the used gradients whose memory was a bucket and has been written to. */
static void drop_overwritten(ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++) {
        const slot *s = &p->slots[i];
        if ((s->hook.complete || s->hook.reached) && s->place.data == s->weight->leaf->grad->data)
            s->weight->leaf->grad_state = NG_GRAD_NONE;
    }
}

static void end_pass(ng_parallel *p, bool well)
{
    if (!well) drop_overwritten(p);
    for (int i = 0; i < p->n_slots; i++) p->slots[i].weight->leaf->hook = NULL;
    for (int i = 0; i < p->n_slots && well; i++)
        if (!p->slots[i].hook.complete) slot_complete(&p->slots[i].hook);
}

/* Keeps the gradients of this pass for the next call. */
static void keep_for_later(ng_parallel *p)
{
    for (int i = 0; i < p->n_buckets; i++) {
        const bucket *b = &p->buckets[i];
        if (p->waits)
            ng_kernels_for(b->dtype)->add_to(b->data, b->waiting, b->size);
        else
            memcpy(b->waiting, b->data, (size_t)b->size * ng_dtype_bytes(b->dtype));
    }
    p->waits = true;
}

static ng_status wait_for_sums(ng_parallel *p)
{
    const int64_t reached = ng_group_start(p->group, (ng_collective){.how = NG_COMBINE_F32,
                                                                     .data = p->reached,
                                                                     .count = p->n_slots,
                                                                     .call = function});
    for (const bucket *b = p->buckets; b < p->buckets + p->n_buckets; b++)
        for (int64_t ticket = b->first_call; ticket <= b->last_call; ticket++) {
            const ng_status status = ng_group_wait(p->group, function, ticket);
            if (status) return status;
        }
    return ng_group_wait(p->group, function, reached);
}

static void add_to_gradients(ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++) {
        const ng_tensor *sum = &p->slots[i].place;
        ng_tensor *weight = p->slots[i].weight, *grad = weight->leaf->grad;
        if (p->reached[i] == 0) continue;
        if (weight->leaf->grad_state == NG_GRAD_NEW)
            ng_kernels_for(grad->dtype)->add_to(sum->data, grad->data, grad->size);
        else if (sum->data != grad->data)
            memcpy(grad->data, sum->data, (size_t)grad->size * ng_dtype_bytes(grad->dtype));
        ng_tensor_grad_arrived(weight);
    }
}

ng_status ng_parallel_backward_with(ng_parallel *p, ng_tape *tape,
                                    ng_parallel_backward_options options)
{
    if (!ng_given(function, "parallel", p)) return ng_newest_status();
    if (!ng_given(function, "tape", tape) || !ng_given(function, "loss", options.loss) ||
        ng_failed() || !make_buckets(p) || !make_gradients(p)) {
        p->waits = false;
        return ng_group_end_failed(p->group, function);
    }
    const double share = ng_option(options.share, 1.0 / ng_group_size(p->group));
    p->starts = !options.later;
    begin_pass(p);
    const bool well = ng_backward_of(function, tape, options.loss, share, true) == NG_OK;
    end_pass(p, well);
    if (!well) {
        p->waits = false;
        return ng_group_end_failed(p->group, function);
    }
    if (options.later) {
        keep_for_later(p);
        return NG_OK;
    }
    const ng_status status = wait_for_sums(p);
    p->waits = false;
    if (status == NG_OK)
        add_to_gradients(p);
    else
        drop_overwritten(p);
    return status;
}
