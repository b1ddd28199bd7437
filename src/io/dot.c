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

/* The text and its leaves. A leaf is named by its place among these: an address would differ from
 * run to run. */
typedef struct {
    ng_text text;
    const ng_tensor **leaves;
    int64_t count, room;
} dot_graph;

/* Returns the place of a leaf, which is written when it is new. */
static int64_t leaf_place(dot_graph *graph, const ng_tensor *x)
{
    int64_t place = 0;
    while (place < graph->count && graph->leaves[place] != x) place++;
    if (place < graph->count) return place;
    graph->text.failed = graph->text.failed || !NG_RESERVE(graph->text.function, graph->leaves,
                                                           graph->count, graph->room);
    if (graph->text.failed) return 0;
    graph->leaves[graph->count++] = x;
    ng_text_print(&graph->text, "    leaf_%lld [shape=ellipse, label=\"%s%s\\n%s\"];\n",
                  (long long)place, x->module_owned ? "parameter " : "",
                  ng_shape_print(x->shape).text, ng_dtype_name(x->dtype));
    return place;
}

/* A name of the user's, inside quotation marks. */
static void write_escaped(ng_text *text, const char *name)
{
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') ng_text_add(text, "\\", 1);
        ng_text_add(text, *name == '\n' ? " " : name, 1);
    }
}

static void write_node(dot_graph *graph, const ng_node *node)
{
    ng_text *text = &graph->text;
    const long long index = node->index;
    ng_text_print(text, "    op_%lld [shape=box, label=\"", index);
    write_escaped(text, node->op->name);
    ng_text_print(text, "\\n%s\"];\n", ng_shape_print(node->output->shape).text);
    for (int i = 0; i < node->n_inputs; i++) {
        const ng_tensor *x = node->inputs[i];
        if (ng_is_none(x)) continue;
        const long long from = x->node ? x->node->index : leaf_place(graph, x);
        ng_text_print(text, "    %s_%lld -> op_%lld;\n", x->node ? "op" : "leaf", from, index);
    }
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
    dot_graph graph = {.text.function = function};
    ng_text_print(&graph.text, "digraph normgrad {\n    rankdir=BT;\n"
                               "    node [fontname=\"sans-serif\"];\n");
    for (const ng_node *node = root->node; node; node = node->previous)
        if (leads[node->index]) write_node(&graph, node);
    ng_text_print(&graph.text, "}\n");
    ng_free(leads), ng_free(graph.leaves);
    return ng_text_save(&graph.text, path);
}
