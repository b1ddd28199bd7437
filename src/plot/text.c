/* Texts and axes of a figure as gnuplot's commands. */
#include "io/json.h"
#include "plot/plot.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------------------------ */

int64_t ng_line_bytes(const char *text, double most, int *letters)
{
    int64_t at = 0, blank = 0;
    int until_blank = 0;
    for (*letters = 0; text[at] && text[at] != '\n';) {
        const int bytes = ng_utf8_bytes(text + at), wide = bytes > 2 ? 2 : 1;
        if (at > 0 && *letters + wide > most) {
            if (blank == 0) return at;
            *letters = until_blank;
            return blank;
        }
        at += bytes > 0 ? bytes : 1, *letters += wide;
        if (text[at - 1] == ' ') blank = at, until_blank = *letters;
    }
    return at + (text[at] == '\n');
}

void ng_text_quote(ng_text *text, const char *from, int64_t bytes)
{
    static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD; XML has no U+FFFE and U+FFFF */
    ng_text_add(text, "'", 1);
    for (const char *end = from + bytes; from < end;) {
        const int length = ng_utf8_bytes(from);
        const bool control = *from > 0 && *from < ' ' && *from != '\t' && *from != '\n';
        if (*from == '\t')
            ng_text_add(text, " ", 1);
        else if (*from == '\'')
            ng_text_print(text, "'.\"'\".'"); /* gnuplot reads a first '' as an empty string */
        else if (length == 0 || control || *from == 127 || strncmp(from, "\xef\xbf\xbe", 3) == 0 ||
                 strncmp(from, "\xef\xbf\xbf", 3) == 0)
            ng_text_add(text, unknown, 3);
        else if (*from != '\n')
            ng_text_add(text, from, length);
        from += length > 0 ? length : 1;
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
    const double unit = pow(10, floor(log10(least))), share = least / unit * (1 - 1e-9);
    return unit * (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1);
}

/* Adds a tic; without a label it is a small one. */
static void add_tic(ng_text *text, double value, const char *label)
{
    const bool first = text->count > 0 && text->bytes[text->count - 1] == '(';
    ng_text_print(text, "%s'%s' %.17g%s", first ? "" : ", ", label, value, *label ? "" : " 1");
}

/* Adds a tic with enough digits to tell it from one at a distance of `apart`. */
static void add_number(ng_text *text, const ng_axis *a, double value, double apart)
{
    char label[40];
    const double largest = fmax(fabs(a->low), fabs(a->high));
    const double digits = floor(log10(largest)) - floor(log10(apart)) + 1;
    snprintf(label, sizeof label, "%.*g", (int)fmin(17, fmax(6, digits)), value);
    char *exponent = strchr(label, 'e');
    if (exponent) snprintf(exponent, 8, "e%d", atoi(exponent + 1)); /* 1e-7 for 1e-07 */
    add_tic(text, value, label);
}

/* Adds multiples of a round step, and a first value that is short, in place of one that is near. */
static void add_multiples(ng_text *text, const ng_axis *a, double step)
{
    const double parts = 100 * a->low / step, low = a->low;
    const bool is_short = fabs(parts - rint(parts)) < 1e-6 || (low == rint(low) && fabs(low) < 1e6);
    const bool with_first = a->tight && !a->log && is_short;
    if (with_first) add_number(text, a, low, step / 100);
    for (double k = ceil(a->low / step - 1e-9); k * step <= a->high + 1e-9 * step; k++)
        if (!with_first || k * step - a->low > 0.55 * step)
            add_number(text, a, k * step + 0.0, step); /* no -0 */
}

/* Adds powers of ten, or the numbers between them where there are fewer than three. */
static void add_log_tics(ng_text *text, const ng_axis *a, double step)
{
    const double low = log10(a->low), high = log10(a->high);
    const double first = ceil(low - 1e-9), decades = floor(high + 1e-9) - first;
    const double each = decades < 2 ? 1 : ceil(decades / a->most);
    int labelled = 0;
    for (int pass = decades < 2 ? 0 : 1; pass < 2; pass++) /* counts, and then adds */
        for (double power = floor(low); power <= high; power++)
            for (int digit = 1; digit < 10; digit++) {
                char label[16];
                const double value = digit * pow(10, power);
                const bool main = digit == 1 && fmod(power, each) == 0;
                const bool half = decades < 2 && (digit == 1 || digit == 2 || digit == 5);
                if (value < a->low * (1 - 1e-9) || value > a->high * (1 + 1e-9)) continue;
                snprintf(label, sizeof label, a->as_text ? "1e%d" : "10^{%d}", (int)power);
                if (pass == 0)
                    labelled += half;
                else if (half && labelled >= 3)
                    add_number(text, a, value, value);
                else if (!half && (main || each == 1))
                    add_tic(text, value, main ? label : "");
            }
    if (decades < 2 && labelled < 3) add_multiples(text, a, step);
}

void ng_text_axis(ng_text *text, ng_axis a)
{
    if (a.low > a.high) a.low = a.high = 1; /* nothing is drawn */
    if (!(a.high > a.low)) {                /* one value, and some room about it */
        const double room = a.low != 0 ? 0.1 * fabs(a.low) : 1;
        a.low -= room, a.high += room;
    }
    const double least = 1e-15 * fmax(fabs(a.low), fabs(a.high));
    const double step = round_above(fmax(a.high / a.most - a.low / a.most, least));
    if (!a.tight && a.log) {
        const double room = pow(a.high / a.low, 0.03);
        a.low /= room, a.high *= room;
    } else if (!a.tight) {
        a.low = step * floor(a.low / step + 1e-9), a.high = step * ceil(a.high / step - 1e-9);
    }
    ng_text_print(text, "set %srange [%.17g:%.17g]\nset %stics (", a.name, a.low, a.high, a.name);
    if (a.log)
        add_log_tics(text, &a, step);
    else
        add_multiples(text, &a, step);
    ng_text_print(text, ")\n");
}
