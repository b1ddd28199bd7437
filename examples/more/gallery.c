/* Which checks find which faults: reported errors of norms, rebuilt in gallery.h. */
#include "gallery.h"
#include "harness.h"

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: gallery\n\n"
        "Runs the gradient checker on faults that were reported of norms in "
        "other libraries, and\nprints which checks find them.\n";
    static const char *const checks[GALLERY_CHECKS] = {"gamma 1", "order 1",     "order 2",
                                                       "order 3", "independent", "shapes"};
    begin_program(argc, argv, usage, NULL, NULL);
    printf("%-30s", "");
    for (int check = 0; check < GALLERY_CHECKS; check++) printf(" %s", checks[check]);
    puts("");
    int found = 0, as_expected = 0;
    for (int i = 0; i < GALLERY_BUGS; i++) {
        char verdicts[GALLERY_CHECKS + 1] = "";
        printf("%-30s", gallery[i].report);
        for (int check = 0; check < GALLERY_CHECKS; check++) {
            verdicts[check] = gallery_verdict(&gallery[i], (gallery_check)check);
            printf(" %*c", (int)strlen(checks[check]), verdicts[check]);
        }
        puts("");
        printf("    %s\n", gallery[i].fault);
        found += strchr(verdicts, 'x') != NULL;
        as_expected += strcmp(verdicts, gallery[i].found) == 0;
    }
    printf("%d of %d faults are found\n", found, GALLERY_BUGS);
    return end_program(as_expected == GALLERY_BUGS ? EXIT_SUCCESS : EXIT_FAILURE);
}
