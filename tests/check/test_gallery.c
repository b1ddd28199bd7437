/* Faults that were reported of norms, rebuilt (examples/more/gallery.h): which checks find them. */
#include "../../examples/more/gallery.h"
#include "support/fixture.h"
#include "support/support.h"

START_TEST(each_check_finds_what_it_can)
{
    const gallery_bug *bug = &gallery[_i];
    for (int check = 0; check < GALLERY_CHECKS; check++) {
        const char verdict = gallery_verdict(bug, (gallery_check)check);
        ck_assert_msg(verdict == bug->found[check], "%s, check %d: %c, expected %c", bug->report,
                      check, verdict, bug->found[check]);
    }
}

Suite *gallery_suite(void)
{
    Suite *suite = suite_create("gallery");
    add_loops(add_case(suite, NULL, NULL), GALLERY_BUGS, each_check_finds_what_it_can);
    return suite;
}
