/* Runs every suite: one per tests/test_NAME.c, listed by the Makefile in suites.h. */
#include "support.h"

#define SUITE(name) Suite *name##_suite(void);
#include "suites.h"
#undef SUITE

int main(void)
{
    /* Check's own limit of 4 seconds a test is too short under valgrind and the sanitizers. */
    setenv("CK_DEFAULT_TIMEOUT", "300", 0);

    Suite *suites[] = {
#define SUITE(name) name##_suite(),
#include "suites.h"
#undef SUITE
    };

    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        srunner_add_suite(runner, suites[i]);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
