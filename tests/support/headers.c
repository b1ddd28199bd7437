#include "headers.h"
#include "support.h"
#include <ctype.h>
#include <dirent.h>

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void read_header(const char *header, char *text, size_t room)
{
    char path[300];
    snprintf(path, sizeof path, "include/normgrad/%s", header);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is read from the project's folder", path);
    const size_t length = fread(text, 1, room - 1, file);
    fclose(file);
    ck_assert_uint_lt(length, room - 1);
    text[length] = '\0';
}

static int count_in(const char *header, bool (*are)(const declaration *d))
{
    static char text[1 << 18];
    int count = 0;
    read_header(header, text, sizeof text);
    for (const char *at = text; (at = strstr(at, "\nNG_API ")); at++) {
        declaration d = {.header = header, .open = strchr(at, '('), .end = strchr(at, ';')};
        if (!d.open || !d.end || d.open > d.end) continue;
        const char *name = d.open;
        while (is_word(name[-1])) name--;
        snprintf(d.name, sizeof d.name, "%.*s", (int)(d.open - name), name);
        count += are(&d);
    }
    return count;
}

int declarations_that(bool (*are)(const declaration *d))
{
    int count = 0;
    DIR *list = opendir("include/normgrad");
    ck_assert_msg(list != NULL, "the headers are read from the project's folder");
    for (struct dirent *entry; (entry = readdir(list));)
        if (strstr(entry->d_name, ".h")) count += count_in(entry->d_name, are);
    closedir(list);
    return count;
}

bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}
