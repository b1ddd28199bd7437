/* Texts and axes of a figure as gnuplot's commands. */
#include "io/json.h"
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------------------------ */

int64_t ng_line_bytes(const char *text, double most, int *letters)
{
    int64_t end = 0, blank = 0;
    int until_blank = 0;
    for (*letters = 0; text[end] && text[end] != '\n';) {
        const int bytes = ng_utf8_bytes(text + end), wide = bytes > 2 ? 2 : 1;
        if (end > 0 && *letters + wide > most) {
            if (blank == 0) return end;
            *letters = until_blank;
            return blank;
        }
        end += bytes > 0 ? bytes : 1, *letters += wide;
        if (text[end - 1] == ' ') blank = end, until_blank = *letters;
    }
    return end + (text[end] == '\n');
}

void ng_text_quote(ng_text *text, const char *letters, int64_t bytes)
{
    ng_text_add(text, "'", 1);
    for (const char *end = letters + bytes; letters < end;) {
        const int length = ng_utf8_bytes(letters);
        const bool control = (*letters > 0 && *letters < ' ') || *letters == 127;
        if (*letters == '\t')
            ng_text_add(text, " ", 1);
        else if (*letters == '\'')
            ng_text_print(text, "'.\"'\".'"); /* gnuplot reads a first '' as an empty string */
        else if (length == 0 || (control && *letters != '\n'))
            ng_text_print(text, "\xef\xbf\xbd"); /* U+FFFD */
        else if (*letters != '\n')
            ng_text_add(text, letters, length);
        letters += length > 0 ? length : 1;
    }
    ng_text_add(text, "'", 1);
}

void ng_text_label(ng_text *text, const char *command, const char *label, double most)
{
    int letters;
    ng_text_print(text, "%s ", command);
    do {
        const int64_t bytes = ng_line_bytes(label, most, &letters);
        ng_text_quote(text, label, bytes);
        label += bytes;
        if (*label) ng_text_print(text, ".\"\\n\".");
    } while (*label);
    ng_text_print(text, " noenhanced");
}

/* ---- Axes ------------------------------------------------------------------------------------ */

void ng_text_format(ng_text *text, const char *axis, bool log, bool as_text)
{
    const char *format = log ? (as_text ? "1e%T" : "10^{%T}") : (as_text ? "%.10g" : "%.11h");
    ng_text_print(text, "set format %s '%s'\n", axis, format);
}

/* The round number (1, 2 or 5 times a power of ten) that is `least` or the next above it. */
static double round_above(double least)
{
    const double unit = pow(10, floor(log10(least))), multiple = least / unit * (1 - 1e-9);
    return unit * (multiple > 5 ? 10 : multiple > 2 ? 5 : multiple > 1 ? 2 : 1);
}

void ng_text_x_tics(ng_text *text, double low, double high, bool whole, double most)
{
    const double range = high - low;
    const bool wide = range > 1e-9 * fmax(fabs(low), fabs(high)) && range < 1e301;
    const double step = wide ? fmax(round_above(range / most), whole) : 0;
    ng_text_print(text, "set xtics ");
    if (step > 0)
        ng_text_print(text, "%.17g\n", step);
    else
        ng_text_print(text, "auto\n");
}
