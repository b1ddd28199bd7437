/* ng_summary: a table of a network's layers, their settings, shapes and numbers of parameters. */
#include "nn/module.h"
#include <string.h>

enum { SUMMARY_CELL = 256 };

/* One line of the table, and how wide its columns are. */
typedef struct {
    char path[SUMMARY_CELL], layer[SUMMARY_CELL], shapes[SUMMARY_CELL], count[32];
    char settings[SUMMARY_CELL - 3]; /* of the layer */
} row;
typedef struct {
    int path, layer, shapes, count;
} widths;

/* 1234567 as "1,234,567". */
static void print_count(char *text, size_t bytes, int64_t count)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < bytes; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
}

/* Appends to a cell and cuts what does not fit. */
static void summary_append(char *cell, const char *first, const char *second, const char *third)
{
    const size_t used = strlen(cell);
    snprintf(cell + used, SUMMARY_CELL - used, "%s%s%s", first, second, third);
}

static void write_row(row *line, const ng_module *root, const ng_module *module)
{
    memset(line, 0, sizeof *line);
    summary_append(line->path, ng_module_path(root, module), "", "");
    summary_append(line->layer, module->type->name, "", "");
    ng_module_describe(module, line->settings, sizeof line->settings);
    if (*line->settings) summary_append(line->layer, "(", line->settings, ")");

    int64_t count = 0;
    for (int i = 0; i < module->registry->count; i++) {
        const ng_entry *entry = &module->registry->entries[i];
        if (entry->kind != NG_ENTRY_PARAMETER && entry->kind != NG_ENTRY_TIED) continue;
        summary_append(line->shapes, *line->shapes ? ", " : "", ng_entry_path(module, entry), " ");
        if (entry->kind == NG_ENTRY_TIED) {
            summary_append(line->shapes, "tied", "", "");
            continue;
        }
        summary_append(line->shapes, ng_shape_print(entry->tensor->shape).text, "", "");
        count += entry->tensor->size;
    }
    if (*line->shapes) print_count(line->count, sizeof line->count, count);
    if (*line->shapes && module->frozen) summary_append(line->shapes, ", frozen", "", "");
}

static int summary_wider(int width, const char *cell)
{
    const int length = (int)strlen(cell);
    return length > width ? length : width;
}

/* The next module below the root; NULL after the last. */
static const ng_module *next_module(ng_tree_walk *w)
{
    while (ng_tree_next(w))
        if (w->entry->child) return w->entry->child;
    return NULL;
}

static void summary_measure(widths *width, row *line, const ng_module *root)
{
    ng_tree_walk w = ng_tree_begin(root);
    for (const ng_module *module = root; module; module = next_module(&w)) {
        write_row(line, root, module);
        width->path = summary_wider(width->path, line->path);
        width->layer = summary_wider(width->layer, line->layer);
        width->shapes = summary_wider(width->shapes, line->shapes);
        width->count = summary_wider(width->count, line->count);
    }
}

static void print_row(FILE *stream, const widths *width, const row *line)
{
    fprintf(stream, "%-*s  ", width->path, line->path);
    if (*line->count)
        fprintf(stream, "%-*s  %-*s  %*s\n", width->layer, line->layer, width->shapes, line->shapes,
                width->count, line->count);
    else
        fprintf(stream, "%s\n", line->layer);
}

static void summary_print_rows(FILE *stream, const widths *width, row *line, const ng_module *root)
{
    ng_tree_walk w = ng_tree_begin(root);
    for (const ng_module *module = root; module; module = next_module(&w)) {
        write_row(line, root, module);
        print_row(stream, width, line);
    }
}

static void print_rule(FILE *stream, const widths *width)
{
    const int length = width->path + width->layer + width->shapes + width->count + 6;
    for (int i = 0; i < length; i++) fputc('-', stream);
    fputc('\n', stream);
}

static int64_t trainable_count(const ng_module *module)
{
    int64_t count = 0;
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->kind == NG_ENTRY_PARAMETER && w.entry->tensor->requires_grad)
            count += w.entry->tensor->size;
    return count;
}

static void print_total(FILE *stream, const widths *width, const char *label, int64_t count)
{
    char text[32];
    print_count(text, sizeof text, count);
    const int before = width->path + width->layer + width->shapes + 4;
    fprintf(stream, "%-*s  %*s\n", before, label, width->count, text);
}

void ng_fprint_summary(FILE *stream, const ng_module *module)
{
    if (!ng_given("ng_fprint_summary", "stream", stream) ||
        !ng_given("ng_fprint_summary", "module", module))
        return;
    const row head = {"path", "layer", "parameters", "count", ""};
    row line;
    widths width = {4, 5, 10, 5};
    char total[32];
    const int64_t count = ng_parameter_count(module), trainable = trainable_count(module);
    print_count(total, sizeof total, count);
    width.count = summary_wider(width.count, total);
    summary_measure(&width, &line, module);

    print_row(stream, &width, &head);
    print_rule(stream, &width);
    summary_print_rows(stream, &width, &line, module);
    print_rule(stream, &width);
    print_total(stream, &width, "total", count);
    if (trainable == count) return;
    print_total(stream, &width, "trainable", trainable);
    print_total(stream, &width, "frozen", count - trainable);
}

void ng_summary(const ng_module *module)
{
    if (ng_given("ng_summary", "module", module)) ng_fprint_summary(stdout, module);
}
