/* Texts and axes of a figure as gnuplot's commands. */
#include "io/json.h"
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD; XML has no U+FFFE and U+FFFF */
    ng_text_add(text, "'", 1);
    for (const char *end = letters + bytes; letters < end;) {
        const int length = ng_utf8_bytes(letters);
        const bool control = *letters > 0 && *letters < ' ' && *letters != '\t' && *letters != '\n';
        if (*letters == '\t')
            ng_text_add(text, " ", 1);
        else if (*letters == '\'')
            ng_text_print(text, "'.\"'\".'"); /* gnuplot reads a first '' as an empty string */
        else if (length == 0 || control || *letters == 127 ||
                 strncmp(letters, "\xef\xbf\xbe", 3) == 0 ||
                 strncmp(letters, "\xef\xbf\xbf", 3) == 0)
            ng_text_add(text, unknown, 3);
        else if (*letters != '\n')
            ng_text_add(text, letters, length);
        letters += length > 0 ? length : 1;
    }
    ng_text_add(text, "'", 1);
}

/* "./" keeps gnuplot from reading a first '|', '<' or '$'. */
void ng_text_quote_file(ng_text *text, const char *name)
{
    ng_text_print(text, "'./");
    for (; *name; name++)
        if ((*name > 0 && *name < ' ') || *name == 127 || *name == '\'')
            ng_text_print(text, "'.\"\\%03o\".'", *name);
        else
            ng_text_add(text, name, 1);
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

/* The round number (1, 2 or 5 times a power of ten) that is `least` or the next above it. */
static double round_above(double least)
{
    const double unit = pow(10, floor(log10(least))), multiple = least / unit * (1 - 1e-9);
    return unit * (multiple > 5 ? 10 : multiple > 2 ? 5 : multiple > 1 ? 2 : 1);
}

/* Of less than two decades gnuplot labels the powers of ten only, which may be none. These are 1, 2
 * and 5 times a power, or multiples of a round step. */
static void print_log_tics(ng_text *text, double low, double high)
{
    const double step = high < 5 * low ? round_above(high / 5 - low / 5) : 0;
    double tic = step > 0 ? step * ceil(low / step) : pow(10, floor(log10(low)));
    const char *between = "(";
    for (int k = 0; k < 12 && tic <= high; k++) {
        if (tic >= low) ng_text_print(text, "%s'%.12g' %.17g", between, tic, tic), between = ", ";
        tic = step > 0 ? tic + step : tic * (k % 3 == 1 ? 2.5 : 2);
    }
    ng_text_print(text, "); ");
}

void ng_text_axis(ng_text *text, ng_axis a)
{
    const char *name = a.name, kind = a.as_text ? 'g' : 'h';
    if (!(a.low <= a.high)) { /* nothing is drawn */
        ng_text_print(text, "set format %s ''; ", name);
    } else if (a.log) {
        const double room = a.low == a.high ? 1.1 : *name == 'y' ? pow(a.high / a.low, 0.03) : 1;
        a.low /= fmin(room, 1e3), a.high *= fmin(room, 1e3);
        ng_text_print(text, "set %srange [%.17g:%.17g]; set %stics ", name, a.low, a.high, name);
        if (a.high / a.low >= 100)
            ng_text_print(text, "auto; set format %s '%s'; ", name, a.as_text ? "1e%T" : "10^{%T}");
        else
            print_log_tics(text, a.low, a.high);
    } else {
        const double most = fmax(fabs(a.low), fabs(a.high)), range = a.high - a.low;
        const double digits = range > 0 ? fmin(15, fmax(6, log10(most / range) + 3)) : 6;
        double step = a.most > 0 && range > 0 ? round_above(range / a.most) : 0;
        if (a.whole) step = fmax(step, 1);
        ng_text_print(text, "set format %s '%%.%d%c'; set %stics ", name, (int)digits, kind, name);
        if (step > 0)
            ng_text_print(text, "%.17g; ", step);
        else
            ng_text_print(text, "auto; ");
    }
}
