/* Numbers as text: with all their digits, and with a point in any locale. */
#ifndef NG_CORE_NUMBER_H
#define NG_CORE_NUMBER_H

#include "core/windows.h"
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#ifdef __APPLE__
#include <xlocale.h> /* locale_t */
#endif

/* "1e-05", "0.30000000000000004": the shortest text of at least six digits that reads back as the
 * same number, in a struct so that it can be written inline; -0 is "0". */
typedef struct {
    char text[32];
} ng_number_text;
ng_number_text ng_number_print(double value);

/* From begin to end this thread reads and writes numbers as the C locale does, whatever locale the
 * program has chosen. Pass to end what begin returned. */
locale_t ng_c_locale_begin(void);
void ng_c_locale_end(locale_t before);

/* As vsnprintf in the C locale. */
void ng_c_print(char *text, size_t bytes, const char *format, va_list arguments);

#endif
