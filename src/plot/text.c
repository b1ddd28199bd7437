/* Texts and axes of a figure as gnuplot's commands. */
#include "io/json.h"
#include "plot/plot.h"
#include <math.h>
#include <string.h>

int ng_text_letters(const char *text)
{
    int letters = 0;
    for (; text && *text; text++) letters += (*text & 0xc0) != 0x80;
    return letters;
}

void ng_text_quote(ng_text *text, const char *letters)
{
    ng_text_add(text, "\"", 1);
    for (int length; letters && *letters; letters += length > 0 ? length : 1) {
        length = ng_utf8_bytes(letters);
        const bool control = (*letters > 0 && *letters < ' ') || *letters == 127;
        if (length == 0 || (control && *letters != '\n' && *letters != '\t'))
            ng_text_print(text, "\xef\xbf\xbd"); /* U+FFFD */
        else if (control)
            ng_text_print(text, *letters == '\n' ? "\\n" : " ");
        else if (strchr("\"\\`", *letters))
            ng_text_print(text, "\\%c", *letters);
        else
            ng_text_add(text, letters, length);
    }
    ng_text_add(text, "\"", 1);
}

void ng_text_label(ng_text *text, const char *command, const char *label)
{
    ng_text_print(text, "%s ", command);
    ng_text_quote(text, label);
    ng_text_print(text, " noenhanced");
}

void ng_text_format(ng_text *text, const char *axis, bool log, bool as_text)
{
    const char *format = log ? (as_text ? "1e%T" : "10^{%T}") : (as_text ? "%.10g" : "%.11h");
    ng_text_print(text, "set format %s '%s'\n", axis, format);
}

void ng_text_x_tics(ng_figure *f, double low, double high, bool whole)
{
    const double most = fmax(2, fmin(8, f->width / f->columns / f->letter / 9 - 1));
    const double least = (high - low) / most, unit = pow(10, floor(log10(least)));
    const double multiple = least / unit * (1 - 1e-9);
    const double step = unit * (multiple > 5 ? 10 : multiple > 2 ? 5 : multiple > 1 ? 2 : 1);
    if (step > 1e-9 * fmax(fabs(low), fabs(high)) && step < 1e300)
        ng_text_print(&f->script, "set xtics %.17g\n", fmax(step, whole));
    else
        ng_text_print(&f->script, "set xtics auto\n");
}
