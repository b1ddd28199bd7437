/* Runs every test: a suite for each file, with its tests in the order of the file. */
#include "norms/norm.h"
#include "support.h"

Suite *random_networks_suite(void);
Suite *user_functions_suite(void);
Suite *settings_suite(void);
Suite *evaluate_suite(void);

static test_entry entries[2000];
static size_t entered;

void enter_test(test_entry entry)
{
    if (entered == sizeof entries / sizeof *entries) abort();
    entries[entered++] = entry;
}

static int by_place(const void *a, const void *b)
{
    const test_entry *left = a, *right = b;
    const int order = strcmp(left->file, right->file);
    return order ? order : left->line - right->line;
}

static TCase *add_case(Suite *suite, const char *name, const test_fixture *fixture)
{
    TCase *tests = tcase_create(name);
    add_fresh_start(tests);
    tcase_add_checked_fixture(tests, fixture->begin, fixture->end);
    if (fixture->tags) tcase_set_tags(tests, fixture->tags);
    if (fixture->timeout > 0) tcase_set_timeout(tests, fixture->timeout);
    suite_add_tcase(suite, tests);
    return tests;
}

/* NAME of .../test_NAME.c; Check keeps the pointer. */
static const char *suite_name(const char *file)
{
    static char names[64][32];
    static size_t count;
    const char *name = strstr(file, "test_") + strlen("test_");
    const size_t length = strlen(name) - strlen(".c");
    if (count == sizeof names / sizeof *names || length >= sizeof *names) abort();
    return memcpy(names[count++], name, length);
}

int main(void)
{
    /* Check's own limit of 4 seconds a test is too short under valgrind and the sanitizers. */
    setenv("CK_DEFAULT_TIMEOUT", "300", 0);

    SRunner *runner = srunner_create(NULL);
    Suite *suite = NULL;
    TCase *tests = NULL;
    const char *file = "", *name = "";
    qsort(entries, entered, sizeof *entries, by_place);
    for (size_t i = 0; i < entered; i++) {
        const test_entry *entry = &entries[i];
        if (strcmp(file, entry->file)) {
            file = entry->file;
            name = suite_name(file);
            suite = suite_create(name);
            srunner_add_suite(runner, suite);
            tests = NULL;
        }
        if (!tests || !entry->add) tests = add_case(suite, name, &entry->fixture);
        if (entry->add) entry->add(tests);
    }
#define X(name) srunner_add_suite(runner, name##_suite());
    NORM_SUITES(X)
#undef X
    srunner_add_suite(runner, evaluate_suite());
    srunner_add_suite(runner, random_networks_suite());
    srunner_add_suite(runner, user_functions_suite());
    srunner_add_suite(runner, settings_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
