#include "folder.h"
#include "support.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128];

void make_test_folder(void)
{
    /* In memory if possible, because each of thousands of files is synced. */
    const char *wanted = getenv("TMPDIR");
    const char *usual = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    const char *above = wanted && strlen(wanted) < 64 ? wanted : usual;
    snprintf(folder, sizeof folder, "%s/normgrad-test-XXXXXX", above);
    if (!mkdtemp(folder)) abort();
}

/* Removes a file, or a folder with all that is in it. */
static void remove_tree(const char *path)
{
    DIR *list = remove(path) == 0 ? NULL : opendir(path);
    if (!list) return;
    for (struct dirent *entry; (entry = readdir(list));) {
        char inner[1024];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        remove_tree(inner);
    }
    closedir(list);
    remove(path);
}

void remove_test_folder(void)
{
    remove_tree(folder);
    folder[0] = '\0';
}

const char *in_folder(const char *name)
{
    static char paths[16][256];
    static int next;
    ck_assert_msg(folder[0] != '\0', "the test has no folder: FIXTURE(make_test_folder, ...)");
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *put_file(const char *name, const void *bytes, size_t size)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

const char *put_text(const char *name, const char *text)
{
    return put_file(name, text, strlen(text));
}

char *get_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(*size + 1, 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

void expect_same_files(const char *file, int line, const char *a, const char *b)
{
    size_t size, other;
    char *left = get_file(a, &size), *right = get_file(b, &other);
    _mark_point(file, line);
    ck_assert_msg(left && right && size == other, "%s has %zu bytes, %s %zu", a, size, b, other);
    for (size_t i = 0; i < size; i++)
        ck_assert_msg(left[i] == right[i], "byte %zu of %s and %s: %d, %d", i, a, b, left[i],
                      right[i]);
    free(left), free(right);
}

void read_damaged(const char *from, const char *name, size_t step,
                  void (*read)(const char *path, bool is_cut))
{
    static const char values[] = {0, 1, ' ', '"', '}', '9', (char)0x80, (char)0xff};
    size_t size;
    char *bytes = get_file(from, &size);
    for (size_t i = 0; i < size; i += step) {
        const char was = bytes[i];
        for (size_t k = 0; k < sizeof values; k++) {
            bytes[i] = values[k];
            if (bytes[i] != was) read(put_file(name, bytes, size), false);
            ng_clear_error();
        }
        bytes[i] = was;
        read(put_file(name, bytes, i), true);
        ng_clear_error();
    }
    free(bytes);
}

int files_in(const char *path, const char *part)
{
    int count = 0;
    DIR *list = opendir(path);
    ck_assert_ptr_nonnull(list);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    closedir(list);
    return count;
}

int files_named(const char *part) { return files_in(folder, part); }
