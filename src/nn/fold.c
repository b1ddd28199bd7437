/* Folding: norms in a Sequential are merged into the Linear or convolution beside them. */
#include "nn/fold.h"
#include <math.h>
#include <normgrad/evaluate.h>
#include <string.h>

static const char fold_function[] = "ng_module_fold";

/* New numbers of a layer with weights: W diag(gamma) and b + W beta of a norm before it, g W and
 * g (b - mean) + beta of one behind it, g = gamma / sqrt(var + eps). */
typedef struct {
    ng_module *layer;
    ng_fold_part part;
    double *weight, *bias;
    bool added; /* its bias is new */
} folded;

static ng_status refuse_fold(const ng_module *net, const ng_module *norm, const char *why)
{
    const char *path = ng_module_path(net, norm);
    return ng_fail(NG_EVALUE, "%s: %s%s%s: %s", fold_function, path, *path ? ", a " : "a ",
                   norm->type->name, why);
}

static bool is_there(const ng_tensor *x) { return x && x != NG_NONE; }

static double number_or(const ng_tensor *x, int64_t i, double otherwise)
{
    return is_there(x) ? ng_tensor_load(x, i) : otherwise;
}

/* Whether another layer of the tree reads this parameter, or it reads another one. */
static bool is_fold_tied(const ng_module *net, const ng_tensor *x)
{
    for (ng_tree_walk w = ng_tree_begin(ng_module_root(net)); ng_tree_next(&w);)
        if (w.entry->kind == NG_ENTRY_TIED &&
            (w.entry->tensor == x || ng_untied(w.entry->tensor) == x))
            return true;
    return false;
}

static bool foldable_norm(ng_module *module, ng_fold_part *part)
{
    return ng_batch_norm_part(module, part) || ng_layer_norm_part(module, part) ||
           ng_rms_norm_part(module, part);
}

/* The neighbour in a Sequential into which a norm is folded, and its part; or why not. */
static const char *fold_target(const ng_module *norm, const ng_fold_part *of, ng_module **target,
                               ng_fold_part *part)
{
    const ng_module *parent = norm->registry->parent;
    if (of->never) return of->never;
    if (of->mean && norm->training) return "it is in training, expected ng_eval";
    if (!parent || !parent->type->forward_with || !ng_is_container(parent))
        return "expected one in a Sequential";
    const int place = norm->registry->place + (of->mean ? -1 : 1);
    *target = place >= 0 && place < parent->registry->count ? ng_module_child(parent, place) : NULL;
    const bool linear = *target && ng_linear_part(*target, part);
    if (of->mean ? !linear && !(*target && ng_conv_part(*target, part)) : !linear)
        return of->mean ? "expected a Linear or a convolution before it"
                        : "expected a Linear after it";
    const int64_t given = of->mean ? part->features : ng_dim(*part->weight, 1);
    return given == of->features ? NULL : "its neighbour has another number of features";
}

/* The entry of `target` in the list, which it joins with its present numbers; NULL on error. */
static folded *folded_of(folded *list, int *count, ng_module *target, const ng_fold_part *part)
{
    for (int i = 0; i < *count; i++)
        if (list[i].layer == target) return &list[i];
    const int64_t size = ng_size(*part->weight), out = part->features;
    folded *f = &list[*count];
    *f = (folded){target, *part, ng_calloc(fold_function, size, sizeof(double)),
                  ng_calloc(fold_function, out, sizeof(double)), false};
    ++*count;
    if (!f->weight || !f->bias) return NULL;
    for (int64_t i = 0; i < size; i++) f->weight[i] = ng_tensor_load(*part->weight, i);
    for (int64_t i = 0; i < out; i++) f->bias[i] = number_or(*part->bias, i, 0);
    return f;
}

static void fold_into(folded *f, const ng_fold_part *norm)
{
    const int64_t out = f->part.features, in = ng_size(*f->part.weight) / out;
    for (int64_t o = 0; o < out; o++) {
        double *row = f->weight + o * in;
        if (norm->mean) {
            const double g =
                number_or(*norm->weight, o, 1) / sqrt(ng_tensor_load(norm->var, o) + norm->eps);
            for (int64_t i = 0; i < in; i++) row[i] *= g;
            f->bias[o] =
                (f->bias[o] - ng_tensor_load(norm->mean, o)) * g + number_or(*norm->bias, o, 0);
        } else {
            for (int64_t i = 0; i < in; i++) f->bias[o] += row[i] * number_or(*norm->bias, i, 0);
            for (int64_t i = 0; i < in; i++) row[i] *= number_or(*norm->weight, i, 1);
        }
    }
}

/* Computes all new numbers and makes the biases that are missing; changes nothing else. */
static ng_status plan_folds(ng_module *net, folded *list, int *count, ng_module **norms,
                            int *norm_count)
{
    ng_module *module, *target = NULL;
    for (int i = 0; (module = (ng_module *)ng_module_layer(net, i)); i++) {
        ng_fold_part of, part;
        if (!foldable_norm(module, &of) ||
            (!of.mean && !is_there(*of.weight) && !is_there(*of.bias)))
            continue;
        const char *why = fold_target(module, &of, &target, &part);
        if (!why && (is_fold_tied(net, *part.weight) || is_fold_tied(net, *part.bias) ||
                     is_fold_tied(net, *of.weight) || is_fold_tied(net, *of.bias)))
            why = "a parameter is tied";
        if (why) return refuse_fold(net, module, why);
        folded *f = folded_of(list, count, target, &part);
        if (!f) return ng_newest_status();
        fold_into(f, &of);
        norms[(*norm_count)++] = module;
    }
    for (int i = 0; i < *count; i++) {
        folded *f = &list[i];
        if (is_there(*f->part.bias)) continue;
        ng_entry *entry =
            ng_module_add_tensor(fold_function, f->layer, "bias", NG_ENTRY_PARAMETER,
                                 (*f->part.weight)->dtype, NG_SHAPE(f->part.features));
        if (!entry) return ng_newest_status();
        entry->tensor->requires_grad = !f->layer->frozen;
        f->added = true;
    }
    return NG_OK;
}

static void write_folded(folded *f)
{
    ng_module *layer = f->layer;
    if (f->added) *f->part.bias = layer->registry->entries[layer->registry->count - 1].tensor;
    *f->part.left_out = false;
    for (int64_t i = 0; i < ng_size(*f->part.weight); i++)
        ng_tensor_store(*f->part.weight, i, f->weight[i]);
    for (int64_t i = 0; i < f->part.features; i++) ng_tensor_store(*f->part.bias, i, f->bias[i]);
    ng_touch(*f->part.weight), ng_touch(*f->part.bias);
}

static void empty_norm(ng_module *norm)
{
    ng_fold_part of;
    foldable_norm(norm, &of);
    *of.weight = *of.bias = NG_NONE;
    *of.left_out = true;
    while (norm->registry->count > 0) ng_module_drop_last(norm);
    if (of.mean) ng_become_none(norm);
}

ng_status ng_module_fold(ng_module *net)
{
    if (!ng_given(fold_function, "net", net) || !ng_module_ready(net)) return ng_newest_status();
    int layers = 0, count = 0, norm_count = 0;
    while (ng_module_layer(net, layers)) layers++;
    folded *list = ng_calloc(fold_function, layers, sizeof *list);
    ng_module **norms = ng_calloc(fold_function, layers, sizeof *norms);
    const ng_status status =
        list && norms ? plan_folds(net, list, &count, norms, &norm_count) : ng_newest_status();
    for (int i = 0; i < count; i++) {
        if (!status)
            write_folded(&list[i]);
        else if (list[i].added)
            ng_module_drop_last(list[i].layer);
        ng_free(list[i].weight), ng_free(list[i].bias);
    }
    for (int i = 0; !status && i < norm_count; i++) empty_norm(norms[i]);
    ng_free(list), ng_free(norms);
    return status;
}
