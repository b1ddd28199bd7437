/* The graph of a computation as Graphviz text. */
#include "core/error.h"
#include "io/file.h"
#include "tape/tape.h"

/* Marks the nodes that lead to the root. */
static void mark_graph(const ng_tensor *root, bool *leads)
{
    leads[root->node->index] = true;
    for (const ng_node *node = root->node; node; node = node->previous)
        for (int i = 0; i < node->n_inputs && leads[node->index]; i++)
            if (node->inputs[i]->node) leads[node->inputs[i]->node->index] = true;
}

/* A leaf that has several uses is written with each of them: Graphviz draws it once. */
static void write_leaf(ng_text *text, const ng_tensor *x)
{
    ng_text_print(text, "    leaf_%p [shape=ellipse, label=\"%s%s\\n%s\"];\n", (const void *)x,
                  x->module_owned ? "parameter " : "", ng_shape_print(x->shape).text,
                  ng_dtype_name(x->dtype));
}

static void write_node(ng_text *text, const ng_node *node)
{
    ng_text_print(text, "    op_%lld [shape=box, label=\"%s\\n%s\"];\n", (long long)node->index,
                  node->op->name, ng_shape_print(node->output->shape).text);
    for (int i = 0; i < node->n_inputs; i++) {
        const ng_tensor *x = node->inputs[i];
        if (ng_is_none(x)) continue;
        if (!x->node) write_leaf(text, x);
        if (x->node)
            ng_text_print(text, "    op_%lld -> op_%lld;\n", (long long)x->node->index,
                          (long long)node->index);
        else
            ng_text_print(text, "    leaf_%p -> op_%lld;\n", (const void *)x,
                          (long long)node->index);
    }
}

ng_status ng_tape_write_dot(const ng_tape *tape, const ng_tensor *root, const char *path)
{
    static const char function[] = "ng_tape_write_dot";
    if (!ng_given(function, "tape", tape) || !ng_given(function, "root", root) ||
        !ng_given(function, "path", path))
        return ng_newest_status();
    if (!root->node)
        return ng_fail(NG_EGRAD, "%s: the tensor was not computed by a recorded op", function);
    if (root->tape != tape)
        return ng_fail(NG_ESTATE, "%s: the tensor lives on another tape", function);
    bool *leads = ng_calloc(function, root->node->index + 1, sizeof *leads);
    if (!leads) return NG_ENOMEM;
    mark_graph(root, leads);
    ng_text text = {.function = function};
    ng_text_print(&text, "digraph normgrad {\n    rankdir=BT;\n"
                         "    node [fontname=\"sans-serif\"];\n");
    for (const ng_node *node = root->node; node; node = node->previous)
        if (leads[node->index]) write_node(&text, node);
    ng_free(leads);
    ng_text_print(&text, "}\n");
    return ng_text_save(&text, path);
}
