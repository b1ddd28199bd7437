/* The report: its messages, and how it is printed. */
#include "check/check.h"
#include "core/error.h"
#include "core/number.h"
#include <math.h>
#include <string.h>

bool ng_check_say(ng_check_report *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!report->message[0]) ng_c_print(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
    return false;
}

void ng_check_place(ng_check_report *report, const char *place)
{
    char message[sizeof report->message];
    snprintf(message, sizeof message, "%.80s: %.170s", place, report->message);
    memcpy(report->message, message, sizeof message);
}

const char *ng_check_reason(void)
{
    return ng_failed() ? ng_error_text() : "NULL was returned without an error";
}

bool ng_check_stop(ng_check_report *report)
{
    return ng_check_say(report, "the check could not go on: %s", ng_check_reason());
}

/* "x: 15 of 15 wrong; gamma, beta: right": those that are right in a row share the word. */
void ng_check_count(ng_check_report *report, const char *name, int64_t wrong, int64_t compared)
{
    static const char right[] = ": right";
    char *text = report->counts;
    const size_t space = sizeof report->counts, word = strlen(right);
    size_t used = strlen(text);
    const bool after_right = used > word && strcmp(text + used - word, right) == 0;
    const char *separator = used == 0 ? "" : "; ";
    if (compared == 0) return;
    if (wrong == 0 && after_right) {
        separator = ", ";
        used -= word;
    }
    if (wrong > 0)
        snprintf(text + used, space - used, "%s%s: %lld of %lld wrong", separator, name,
                 (long long)wrong, (long long)compared);
    else
        snprintf(text + used, space - used, "%s%s%s", separator, name, right);
}

/* ---- Print --------------------------------------------------------------------------------- */

static void print_verdict(FILE *stream, const ng_check_report *report)
{
    if (!report->passed) {
        fputs("FAILED", stream);
        if (report->failed > 0) fprintf(stream, ": %lld wrong", (long long)report->failed);
        return;
    }
    fputs("ok", stream);
    if (report->kinks > 0) fprintf(stream, ", %lld at kinks", (long long)report->kinks);
    if (report->constants > 0) fprintf(stream, ", %d constant by definition", report->constants);
    if (report->detached > 0)
        fprintf(stream, ", with %d detached value%s held fixed (%s%s)", report->detached,
                report->detached == 1 ? "" : "s", report->detached_value,
                report->detached == 1 ? "" : ", ...");
}

void ng_check_print_head(FILE *stream)
{
    if (!ng_given("ng_check_print_head", "stream", stream)) return;
    fprintf(stream, "%-46s %5s %8s  %9s  %-22s %s\n", "", "order", "compared", "error", "at",
            "verdict");
}

void ng_check_print(FILE *stream, const char *name, const ng_check_report *report)
{
    if (!ng_given("ng_check_print", "stream", stream) ||
        !ng_given("ng_check_print", "report", report))
        return;
    static const char *const orders[] = {"1", "1, 2", "1-3", "1-4"};
    const locale_t locale = ng_c_locale_begin();
    const bool zero = report->analytic == 0; /* then the absolute error */
    char error[24] = "", place[96] = "";
    if (report->compared > 0)
        snprintf(error, sizeof error, zero ? "%.0e abs" : "%.1e",
                 zero ? report->absolute_error : report->relative_error);
    if (report->worst_name[0])
        snprintf(place, sizeof place,
                 report->mode == NG_CHECK_ELEMENTS ? "%s[%lld]" : "%s, direction %lld",
                 report->worst_name, (long long)report->worst_index);
    fprintf(stream, "%-46s %5s %8lld  %9s  %-22s ", name ? name : "", orders[report->order - 1],
            (long long)report->compared, error, place);
    print_verdict(stream, report);
    fputc('\n', stream);
    if (!report->passed)
        fprintf(stream, "    %s%s%s\n", report->message, report->hint[0] ? "; " : "", report->hint);
    if (!report->passed && report->failed > 0) {
        fprintf(stream, "    analytic %.12g, numeric %.12g, which is known to %.1e\n",
                report->analytic, report->numeric, report->error_estimate);
        if (strchr(report->counts, ';')) fprintf(stream, "    %s\n", report->counts);
    }
    ng_c_locale_end(locale);
}
