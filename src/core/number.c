/* Numbers as text, with a point in any locale. */
#include "core/number.h"
#include <stdio.h>
#include <stdlib.h>

ng_number_text ng_number_print(double value)
{
    ng_number_text printed;
    const locale_t before = ng_c_locale_begin();
    value += 0; /* -0, a zero that was given as NG_ZERO, becomes 0 */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(printed.text, sizeof printed.text, "%.*g", digits, value);
        if (strtod(printed.text, NULL) == value) break;
    }
    ng_c_locale_end(before);
    return printed;
}

#ifdef _WIN32
locale_t ng_c_locale_begin(void) { return ng_windows_locale_begin(); }
void ng_c_locale_end(locale_t before) { ng_windows_locale_end(before); }
#else
/* Glibc and musl need no memory for the locale "C". If another C library has none, the program's
 * locale stays. */
locale_t ng_c_locale_begin(void)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c ? uselocale(c) : (locale_t)0;
}

void ng_c_locale_end(locale_t before)
{
    if (before) freelocale(uselocale(before));
}
#endif

void ng_c_print(char *text, size_t bytes, const char *format, va_list arguments)
{
    const locale_t before = ng_c_locale_begin();
    vsnprintf(text, bytes, format, arguments);
    ng_c_locale_end(before);
}
