/* The graph of a computation as Graphviz text. */
#include "core/error.h"
#include "io/file.h"
#include "tape/tape.h"
#include <stdlib.h>

/* Marks the nodes that lead to the root. */
static void mark_graph(const ng_tensor *root, bool *leads)
{
    leads[root->node->index] = true;
    for (const ng_node *node = root->node; node; node = node->previous)
        for (int i = 0; i < node->n_inputs && leads[node->index]; i++)
            if (node->inputs[i]->node) leads[node->inputs[i]->node->index] = true;
}

/* An operand that is a leaf. Its first place among these names the leaf: an address would differ
 * from run to run. */
typedef struct {
    const ng_tensor *leaf;
    int64_t place, first;
} leaf_use;

static int by_leaf(const void *a, const void *b)
{
    const leaf_use *left = a, *right = b;
    const uintptr_t x = (uintptr_t)left->leaf, y = (uintptr_t)right->leaf;
    if (x != y) return x < y ? -1 : 1;
    return left->place < right->place ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    return ((const leaf_use *)a)->place < ((const leaf_use *)b)->place ? -1 : 1;
}

static bool is_leaf(const ng_tensor *x) { return !ng_is_none(x) && !x->node; }

/* Fills the uses in the order in which they are written, and returns how many there are; counts
 * them for NULL. */
static int64_t find_leaves(const ng_tensor *root, const bool *leads, leaf_use *uses)
{
    int64_t count = 0;
    for (const ng_node *node = root->node; node; node = node->previous)
        for (int i = 0; i < node->n_inputs && leads[node->index]; i++) {
            if (!is_leaf(node->inputs[i])) continue;
            if (uses) uses[count] = (leaf_use){.leaf = node->inputs[i], .place = count};
            count++;
        }
    if (!uses || count == 0) return count;
    qsort(uses, (size_t)count, sizeof *uses, by_leaf);
    for (int64_t i = 0; i < count; i++) {
        const bool again = i > 0 && uses[i].leaf == uses[i - 1].leaf;
        uses[i].first = again ? uses[i - 1].first : uses[i].place;
    }
    qsort(uses, (size_t)count, sizeof *uses, by_place);
    return count;
}

/* A leaf that has several uses is written with each of them: Graphviz draws it once. */
static void write_leaf(ng_text *text, const leaf_use *use)
{
    const ng_tensor *x = use->leaf;
    ng_text_print(text, "    leaf_%lld [shape=ellipse, label=\"%s%s\\n%s\"];\n",
                  (long long)use->first, x->module_owned ? "parameter " : "",
                  ng_shape_print(x->shape).text, ng_dtype_name(x->dtype));
}

/* A name of the user's, inside quotation marks. */
static void write_escaped(ng_text *text, const char *name)
{
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') ng_text_add(text, "\\", 1);
        ng_text_add(text, *name == '\n' ? " " : name, 1);
    }
}

/* Writes a node and the leaves among its operands, whose uses come next. */
static void write_node(ng_text *text, const ng_node *node, const leaf_use **uses)
{
    const long long index = node->index;
    ng_text_print(text, "    op_%lld [shape=box, label=\"", index);
    write_escaped(text, node->op->name);
    ng_text_print(text, "\\n%s\"];\n", ng_shape_print(node->output->shape).text);
    for (int i = 0; i < node->n_inputs; i++) {
        const ng_tensor *x = node->inputs[i];
        if (is_leaf(x)) {
            write_leaf(text, *uses);
            ng_text_print(text, "    leaf_%lld -> op_%lld;\n", (long long)(*uses)++->first, index);
        } else if (!ng_is_none(x)) {
            ng_text_print(text, "    op_%lld -> op_%lld;\n", (long long)x->node->index, index);
        }
    }
}

static ng_status write_graph(const char *function, const ng_tensor *root, const bool *leads,
                             const leaf_use *uses, const char *path)
{
    ng_text text = {.function = function};
    ng_text_print(&text, "digraph normgrad {\n    rankdir=BT;\n"
                         "    node [fontname=\"sans-serif\"];\n");
    for (const ng_node *node = root->node; node; node = node->previous)
        if (leads[node->index]) write_node(&text, node, &uses);
    ng_text_print(&text, "}\n");
    return ng_text_save(&text, path);
}

ng_status ng_tape_write_dot(const ng_tape *tape, const ng_tensor *root, const char *path)
{
    static const char function[] = "ng_tape_write_dot";
    if (!ng_given(function, "tape", tape) || !ng_given(function, "root", root) ||
        !ng_given(function, "path", path))
        return ng_newest_status();
    if (!ng_usable(function, "the tensor", 0, tape, root)) return ng_newest_status();
    if (!root->node)
        return ng_fail(NG_EGRAD, "%s: the tensor was not computed by a recorded op", function);
    bool *leads = ng_calloc(function, root->node->index + 1, sizeof *leads);
    if (!leads) return NG_ENOMEM;
    mark_graph(root, leads);
    leaf_use *uses = ng_calloc(function, find_leaves(root, leads, NULL) + 1, sizeof *uses);
    if (uses) find_leaves(root, leads, uses);
    const ng_status status = uses ? write_graph(function, root, leads, uses, path) : NG_ENOMEM;
    ng_free(leads), ng_free(uses);
    return status;
}
