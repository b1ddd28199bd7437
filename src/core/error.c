/* The error record of each thread. */
#include "core/error.h"
#include "core/number.h"
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

static _Thread_local ng_error_record record;
static _Thread_local ng_status newest;
static _Thread_local int64_t failures_ever;

const char *ng_version(void)
{
    return VERSION_TEXT(NG_VERSION_MAJOR, NG_VERSION_MINOR, NG_VERSION_PATCH);
}

bool ng_failed(void) { return record.failures > 0; }

int64_t ng_failures(void) { return record.failures; }

ng_status ng_error_status(void) { return record.status; }

const char *ng_error_text(void) { return record.text; }

ng_status ng_newest_status(void) { return newest; }

int64_t ng_failures_ever(void) { return failures_ever; }

void ng_clear_error(void)
{
    record = (ng_error_record){0};
    newest = NG_OK;
}

ng_status ng_fail(ng_status code, const char *format, ...)
{
    newest = code;
    failures_ever++;
    if (record.failures++ > 0) return code;
    char text[NG_ERROR_BYTES]; /* the arguments may point into the record's */
    va_list arguments;
    va_start(arguments, format);
    ng_c_print(text, sizeof text, format ? format : "no text", arguments);
    va_end(arguments);
    strcpy(record.text, text);
    record.status = code;
    return code;
}

ng_status ng_fail_unrecorded(int64_t before, ng_status code, const char *format, ...)
{
    if (failures_ever > before && ng_failed()) return newest;
    char text[NG_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    ng_c_print(text, sizeof text, format, arguments);
    va_end(arguments);
    return ng_fail(code, "%s", text);
}

void ng_note_null(const char *function, const char *operand)
{
    if (!ng_failed()) ng_fail(NG_ENULL, "%s: %s is NULL", function, operand);
}

void ng_locate_error(const char *path, const char *type)
{
    if (!ng_failed() || record.located) return;
    record.located = true;
    const size_t named = strlen(type);
    const bool names_type = strncmp(record.text, type, named) == 0 && record.text[named] == ':';
    const char *what = names_type ? record.text + named + 1 : record.text;
    while (*what == ' ') what++;
    char text[2 * NG_ERROR_BYTES];
    if (*path)
        snprintf(text, sizeof text, "%s (%s): %s", path, type, what);
    else
        snprintf(text, sizeof text, "%s: %s", type, what);
    text[NG_ERROR_BYTES - 1] = '\0';
    strcpy(record.text, text);
}

ng_error_record ng_error_take(void)
{
    const ng_error_record earlier = record;
    record = (ng_error_record){0};
    return earlier;
}

void ng_error_restore(const ng_error_record *earlier)
{
    if (earlier->failures == 0) return;
    const int64_t later = record.failures;
    record = *earlier;
    record.failures += later;
}

const char *ng_status_name(ng_status status)
{
    static const char *const names[] = {
        [NG_OK] = "NG_OK",         [NG_ENOMEM] = "NG_ENOMEM", [NG_ESHAPE] = "NG_ESHAPE",
        [NG_EDTYPE] = "NG_EDTYPE", [NG_EVALUE] = "NG_EVALUE", [NG_EGRAD] = "NG_EGRAD",
        [NG_ESTATE] = "NG_ESTATE", [NG_EIO] = "NG_EIO",       [NG_EPARSE] = "NG_EPARSE",
        [NG_ENULL] = "NG_ENULL"};
    const size_t count = sizeof names / sizeof names[0];
    return (size_t)status < count ? names[status] : "unknown status";
}

#undef TEXT_OF
#undef VERSION_TEXT
