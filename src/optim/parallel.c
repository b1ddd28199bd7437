/* Data-parallel training. Each parameter has a second gradient, that of this rank's own passes: a
 * backward pass writes there, and the sum over the ranks is added to the first. So a pass that
 * fails, here or elsewhere, changes no parameter's gradient. */
#include "group/collective.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include <normgrad/parallel.h>
#include <string.h>

/* A parameter, and its own gradient: what else a leaf says of one. */
typedef struct {
    ng_tensor *weight, *grad;
    ng_grad_state state;
    uint32_t epoch;
} slot;

struct ng_parallel {
    ng_module *module;
    ng_group *group;
    int64_t piece_bytes;
    bool fast;
    slot *slots; /* of the parameters that require a gradient */
    int n_slots;
    float *reached; /* by slot: whether an own gradient is there; then on how many ranks */
    void *piece;    /* gradients that are being added up */
};

static const char function[] = "ng_parallel_backward", maker[] = "ng_parallel_new";

/* ---- The same network everywhere ------------------------------------------------------------- */

static uint64_t digest_of_text(uint64_t digest, const char *text)
{
    return ng_digest(digest, text, strlen(text) + 1);
}

/* Of a layer's path, class and settings; 0 with an error without memory. */
static uint64_t digest_of_layer(const char *path, const ng_module *layer)
{
    char *settings = ng_module_settings(maker, layer);
    if (!settings) return 0;
    uint64_t digest = digest_of_text(NG_DIGEST_START, path);
    digest = digest_of_text(digest_of_text(digest, layer->type->name), settings);
    ng_free(settings);
    return digest;
}

static uint64_t digest_of_tensor(const char *path, const ng_entry *entry)
{
    const ng_tensor *x = entry->tensor;
    const int64_t head[] = {entry->kind, x->dtype, x->shape.rank, x->requires_grad};
    const uint64_t digest = ng_digest(digest_of_text(NG_DIGEST_START, path), head, sizeof head);
    return ng_digest(digest, x->shape.dim, (size_t)x->shape.rank * sizeof x->shape.dim[0]);
}

/* Digests of the module and of all entries below it; `to` may be NULL. Returns their number. */
static int digests_of(const ng_module *module, uint64_t *to)
{
    int count = 1;
    if (to) to[0] = digest_of_layer("", module);
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w); count++) {
        if (!to) continue;
        const char *path = ng_entry_path(module, w.entry);
        to[count] = w.entry->kind == NG_ENTRY_CHILD ? digest_of_layer(path, w.entry->child)
                                                    : digest_of_tensor(path, w.entry);
    }
    return count;
}

static const char *path_of_digest(const ng_module *module, int index)
{
    ng_tree_walk w = ng_tree_begin(module);
    for (int i = 0; i < index; i++) ng_tree_next(&w);
    return index ? ng_entry_path(module, w.entry) : "";
}

/* Whether all ranks give the same numbers; else an error that names the first difference. */
static bool same_everywhere(const ng_parallel *p, const uint64_t *mine, int count, bool are_digests)
{
    const int size = ng_group_size(p->group);
    double *all = ng_calloc(maker, (int64_t)size * count, 2 * sizeof *all), *own = all;
    if (all) own = memcpy(all + (ptrdiff_t)size * count, mine, (size_t)count * sizeof *mine);
    bool same =
        ng_group_agree(p->group) == NG_OK && ng_group_gather(p->group, own, count, all) == NG_OK;
    for (int i = 0; i < count && same; i++)
        for (int r = 1; r < size && same; r++)
            if (memcmp(&all[r * (ptrdiff_t)count + i], &all[i], sizeof *all) != 0) {
                same = false;
                ng_fail(NG_ESTATE,
                        "%s: rank %d differs from rank 0 %s\"%s\", expected a network with the "
                        "same names, classes, settings, shapes, dtypes and freezing",
                        maker, r, are_digests ? "at " : "in the number of entries of ",
                        are_digests ? path_of_digest(p->module, i) : "");
            }
    ng_free(all);
    return same;
}

static bool same_network(const ng_parallel *p)
{
    const int count = digests_of(p->module, NULL);
    if (!same_everywhere(p, &(uint64_t){(uint64_t)count}, 1, false)) return false;
    uint64_t *digests = ng_calloc(maker, count, sizeof *digests);
    if (digests) digests_of(p->module, digests);
    const bool same = ng_group_agree(p->group) == NG_OK && same_everywhere(p, digests, count, true);
    ng_free(digests);
    return same;
}

static bool share_values(const ng_parallel *p)
{
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);) {
        const ng_entry_kind kind = w.entry->kind;
        if ((kind == NG_ENTRY_PARAMETER || kind == NG_ENTRY_BUFFER) &&
            ng_group_broadcast(p->group, w.entry->tensor, 0))
            return false;
    }
    return true;
}

/* ---- Make and free --------------------------------------------------------------------------- */

static void free_slots(ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++) ng_tensor_destroy(p->slots[i].grad);
    ng_free(p->slots), ng_free(p->reached);
    p->slots = NULL, p->reached = NULL;
    p->n_slots = 0;
}

void ng_parallel_free(ng_parallel *p)
{
    if (!p) return;
    free_slots(p);
    ng_free(p->piece);
    ng_free(p);
}

ng_parallel *ng_parallel_new_with(ng_module *module, ng_parallel_new_options options)
{
    if (!ng_given(maker, "group", options.group)) return NULL;
    ng_parallel *p = NULL;
    if (ng_given(maker, "module", module) && options.bucket < 0)
        ng_fail(NG_EVALUE, "%s: bucket is %lld, expected a number of bytes", maker,
                (long long)options.bucket);
    if (!ng_failed()) p = ng_calloc(maker, 1, sizeof *p);
    if (p)
        *p = (ng_parallel){.module = module,
                           .group = options.group,
                           .fast = options.fast,
                           .piece_bytes = options.bucket ? (options.bucket + 7) / 8 * 8 : 1 << 20};
    if (p) p->piece = ng_calloc(maker, p->piece_bytes, 1);
    if (ng_group_agree(options.group) == NG_OK && same_network(p) && share_values(p)) return p;
    ng_parallel_free(p);
    return NULL;
}

uint64_t ng_group_seed(const ng_group *group, uint64_t seed)
{
    if (!ng_given("ng_group_seed", "group", group)) return 0;
    ng_rng rng =
        ng_rng_seeded(seed ^ (UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(ng_group_rank(group) + 1)));
    return ng_rng_next(&rng);
}

/* ---- Own gradients --------------------------------------------------------------------------- */

static bool has_gradient(const ng_entry *entry)
{
    return entry->kind == NG_ENTRY_PARAMETER && entry->tensor->requires_grad;
}

/* Whether the slots are those of the present parameters; their number is *count. */
static bool are_current(const ng_parallel *p, int *count)
{
    bool same = true;
    *count = 0;
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);) {
        if (!has_gradient(w.entry)) continue;
        const slot *s = &p->slots[*count];
        same = same && *count < p->n_slots && s->weight == w.entry->tensor &&
               (!s->grad || s->grad->dtype == s->weight->dtype);
        ++*count;
    }
    return same && *count == p->n_slots;
}

static bool make_slots(ng_parallel *p)
{
    int count;
    if (are_current(p, &count)) return true;
    for (int i = 0; i < p->n_slots; i++)
        if (p->slots[i].state == NG_GRAD_NEW) {
            ng_fail(NG_ESTATE, "%s: the parameters have changed since a call with .later",
                    function);
            return false;
        }
    free_slots(p);
    p->slots = ng_calloc(function, count, sizeof *p->slots);
    p->reached = ng_calloc(function, count, sizeof *p->reached);
    if (!p->slots || !p->reached) return false;
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);)
        if (has_gradient(w.entry)) p->slots[p->n_slots++].weight = w.entry->tensor;
    return true;
}

/* Exchanges the gradients of all parameters with their own ones. */
static void exchange_gradients(ng_parallel *p)
{
    for (slot *s = p->slots; s < p->slots + p->n_slots; s++) {
        ng_leaf *leaf = s->weight->leaf;
        const slot before = *s;
        s->grad = leaf->grad, s->state = leaf->grad_state, s->epoch = leaf->grad_epoch;
        leaf->grad = before.grad, leaf->grad_state = before.state, leaf->grad_epoch = before.epoch;
    }
}

static bool own_backward(ng_parallel *p, ng_tape *tape, ng_tensor *loss, double share)
{
    exchange_gradients(p);
    const bool well = ng_backward(tape, ng_mul_scalar(tape, loss, share)) == NG_OK;
    exchange_gradients(p);
    return well;
}

static void drop_own_gradients(ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++) p->slots[i].state = NG_GRAD_NONE;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Where a walk over the gradients is: at a number of a slot's. */
typedef struct {
    int slot;
    int64_t at;
} position;

/* The numbers of one dtype that a walk has passed. */
typedef struct {
    int64_t count;
    ng_dtype dtype;
} piece_content;

/* Goes on from `from` over the gradients that some rank has, as far as they are of one dtype and a
 * piece holds them, and calls `each` for each slot. Returns where it has ended. */
static position walk_piece(ng_parallel *p, position from, piece_content *passed,
                           void (*each)(const slot *s, int64_t at, int64_t count, char *piece))
{
    char *piece = p->piece;
    *passed = (piece_content){0};
    for (; from.slot < p->n_slots; from = (position){from.slot + 1, 0}) {
        const slot *s = &p->slots[from.slot];
        if (p->reached[from.slot] == 0 || s->weight->size == 0) continue;
        if (passed->count == 0) passed->dtype = s->weight->dtype;
        if (passed->dtype != s->weight->dtype) break;
        const int64_t bytes = (int64_t)ng_dtype_bytes(passed->dtype);
        const int64_t rest = s->weight->size - from.at,
                      left = p->piece_bytes / bytes - passed->count;
        const int64_t n = rest < left ? rest : left;
        each(s, from.at, n, piece + passed->count * bytes);
        passed->count += n;
        if (n < rest) return (position){from.slot, from.at + n};
    }
    return from;
}

static void copy_own(const slot *s, int64_t at, int64_t count, char *piece)
{
    const size_t bytes = ng_dtype_bytes(s->weight->dtype);
    if (s->state == NG_GRAD_NEW)
        memcpy(piece, (char *)s->grad->data + (size_t)at * bytes, (size_t)count * bytes);
    else
        memset(piece, 0, (size_t)count * bytes);
}

static void add_sum(const slot *s, int64_t at, int64_t count, char *piece)
{
    const size_t bytes = ng_dtype_bytes(s->weight->dtype);
    char *grad = (char *)s->weight->leaf->grad->data + (size_t)at * bytes;
    if (s->weight->leaf->grad_state == NG_GRAD_NEW)
        ng_kernels_for(s->weight->dtype)->add_to(piece, grad, count);
    else
        memcpy(grad, piece, (size_t)count * bytes);
}

/* Makes the memory of all gradients, so that nothing fails after the sums. */
static bool make_gradients(const ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++)
        if (!ng_tensor_grad_slot(p->slots[i].weight)) return false;
    return true;
}

static ng_status add_up(ng_parallel *p)
{
    for (int i = 0; i < p->n_slots; i++) p->reached[i] = p->slots[i].state == NG_GRAD_NEW;
    ng_status status = ng_group_combine(
        p->group, function,
        (ng_collective){.how = NG_COMBINE_F32, .data = p->reached, .count = p->n_slots});
    piece_content piece;
    for (position from = {0}, next; !status; from = next) {
        next = walk_piece(p, from, &piece, copy_own);
        if (piece.count == 0) break;
        status = ng_group_combine(
            p->group, function,
            (ng_collective){.how = piece.dtype == NG_F32 ? NG_COMBINE_F32 : NG_COMBINE_F64,
                            .fast = p->fast,
                            .data = p->piece,
                            .count = piece.count});
        if (!status) walk_piece(p, from, &piece, add_sum);
    }
    for (int i = 0; i < p->n_slots && !status; i++)
        if (p->reached[i] != 0) ng_tensor_grad_arrived(p->slots[i].weight);
    return status;
}

ng_status ng_parallel_backward_with(ng_parallel *p, ng_tape *tape,
                                    ng_parallel_backward_options options)
{
    if (!ng_given(function, "parallel", p)) return ng_newest_status();
    const double share = ng_option(options.share, 1.0 / ng_group_size(p->group));
    const bool well = ng_given(function, "tape", tape) &&
                      ng_given(function, "loss", options.loss) && !ng_failed() && make_slots(p) &&
                      make_gradients(p) && own_backward(p, tape, options.loss, share);
    if (well && options.later) return NG_OK;
    const ng_status status = well ? add_up(p) : ng_group_end_failed(p->group, function);
    drop_own_gradients(p);
    return status;
}
