/* A folder for one test, and files in it. */
#ifndef NG_TESTS_FOLDER_H
#define NG_TESTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Fixture: makes the folder, in $TMPDIR if it is set; removes it with all that is in it. */
void make_test_folder(void);
void remove_test_folder(void);

/* Returns the path of a name in it, valid for the next fifteen calls. */
const char *in_folder(const char *name);

/* Writes a file in the folder and returns its path. */
const char *put_file(const char *name, const void *bytes, size_t size);
const char *put_text(const char *name, const char *text);

/* Returns all bytes of a file, followed by a zero byte; free them. */
char *get_file(const char *path, size_t *size);

/* Two files have the same bytes. */
#define assert_same_files(a, b) expect_same_files(__FILE__, __LINE__, a, b)
void expect_same_files(const char *file, int line, const char *a, const char *b);

/* Calls `read` with damaged copies of a file, of the given name: each `step`-th byte is set to
 * other values, and the file is cut before it. */
void read_damaged(const char *from, const char *name, size_t step,
                  void (*read)(const char *path, bool is_cut));

/* Returns how many files in the folder, or in another one, have names that contain `part`. */
int files_named(const char *part);
int files_in(const char *path, const char *part);

#endif
