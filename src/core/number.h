/* Numbers as text: with all their digits, and with a point. */
#ifndef NG_CORE_NUMBER_H
#define NG_CORE_NUMBER_H

#include <locale.h>
#include <stdbool.h>

/* "1e-05", "0.30000000000000004": what reads back as the same number, and no longer than that
 * takes, in a struct so that it can be written inline; -0 is "0". */
typedef struct {
    char text[32];
} ng_number_text;
ng_number_text ng_number_print(double value);

/* Until the matching leave, this thread reads and writes numbers as the C locale does, whatever
 * the program has chosen. false with NG_ENOMEM in the name of `function`. */
typedef struct {
    locale_t c, before;
} ng_c_locale;
bool ng_c_locale_enter(const char *function, ng_c_locale *locale);
void ng_c_locale_leave(ng_c_locale *locale);

#endif
