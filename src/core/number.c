#include "core/number.h"
#include "core/error.h"
#include <stdio.h>
#include <stdlib.h>

ng_number_text ng_number_print(double value)
{
    ng_number_text printed;
    value += 0; /* -0, a zero that is meant, becomes 0 */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(printed.text, sizeof printed.text, "%.*g", digits, value);
        if (strtod(printed.text, NULL) == value) break;
    }
    return printed;
}

bool ng_c_locale_enter(const char *function, ng_c_locale *locale)
{
    locale->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale->c) return ng_fail(NG_ENOMEM, "%s: out of memory for a locale", function), false;
    locale->before = uselocale(locale->c);
    return true;
}

void ng_c_locale_leave(ng_c_locale *locale)
{
    uselocale(locale->before);
    freelocale(locale->c);
}
