/* Files and figures on another system: names that are not ASCII, a file replaced by another of its
 * name, every byte read as it was written, a history, and a figure or the error without gnuplot.
 *
 *     files FOLDER [gnuplot]       the folder with a slash at its end; gnuplot: it is there */
#include <normgrad.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;
static char path[600];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s%s", folder, name);
    return path;
}

/* Saves a network over another one, and loads it. */
static bool network_returns(void)
{
    ng_module *net = ng_linear_new(3, 2), *other = ng_linear_new(3, 2);
    ng_module_init(net, 1), ng_module_init(other, 2);
    const char *file = in_folder("n\xc3\xa4h \xe7\xb6\xb2.safetensors");
    bool well =
        !ng_module_save(other, file) && !ng_module_save(net, file) && !ng_module_load(other, file);
    ng_tensor *a = ng_module_find(net, "weight"), *b = ng_module_find(other, "weight");
    for (int i = 0; well && i < 6; i++) well = ng_get(a, i) == ng_get(b, i);
    ng_module_free(net), ng_module_free(other);
    return well;
}

/* All 256 bytes, among them those that text files change: 10, 13, 26. */
static bool bytes_return(void)
{
    ng_tensor *x = ng_zeros_new(NG_I64, NG_SHAPE(256));
    for (int i = 0; i < 256; i++) ng_set(x, i, i * 0x0101010101);
    bool well = !ng_tensor_save_npy(x, in_folder("bytes.npy"));
    ng_tensor *y = ng_tensor_read_npy(in_folder("bytes.npy"));
    for (int i = 0; well && i < 256; i++) well = y && ng_get(x, i) == ng_get(y, i);
    ng_tensor_free(x), ng_tensor_free(y);
    return well;
}

static bool history_returns(ng_history *history)
{
    if (ng_history_write(history, in_folder("history.dat"))) return false;
    ng_history *read = ng_history_read(in_folder("history.dat"));
    ng_history_free(read);
    return read && !ng_failed();
}

/* A path that does not exist is an error, not a crash. */
static bool missing_is_reported(void)
{
    ng_tensor *none = ng_tensor_read_npy(in_folder("missing.npy"));
    const bool well = !none && ng_error_status() == NG_EIO;
    ng_clear_error();
    return well;
}

static bool figure_is_drawn(ng_history *history, bool has_gnuplot)
{
    const ng_status status = ng_plot(history, in_folder("figure.svg"));
    const bool well = has_gnuplot ? status == NG_OK : status == NG_EIO;
    if (!has_gnuplot) printf("%s\n", ng_error_text());
    ng_clear_error();
    return well;
}

int main(int count, char **arguments)
{
    folder = count > 1 ? arguments[1] : "";
    ng_history *history = ng_history_new("a test");
    for (int step = 0; step < 5; step++) ng_history_log(history, "loss", step, 1.0 / (step + 1));
    const bool well[] = {network_returns(), bytes_return(), history_returns(history),
                         missing_is_reported(), figure_is_drawn(history, count > 2)};
    int wrong = 0;
    for (int i = 0; i < 5; i++)
        if (!well[i]) wrong++, fprintf(stderr, "files: test %d is wrong: %s\n", i, ng_error_text());
    ng_history_free(history);
    return wrong;
}
