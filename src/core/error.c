#include "core/error.h"
#include <stdarg.h>
#include <stdio.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

static _Thread_local ng_status last_status = NG_OK;
static _Thread_local char last_error[512] = "";
static _Thread_local uint64_t error_count = 0;

const char *ng_version(void)
{
    return VERSION_TEXT(NG_VERSION_MAJOR, NG_VERSION_MINOR, NG_VERSION_PATCH);
}

uint64_t ng_error_count(void) { return error_count; }

bool ng_failed(void) { return last_status != NG_OK; }

ng_status ng_last_status(void) { return last_status; }

const char *ng_last_error(void) { return last_error; }

void ng_clear_error(void)
{
    last_status = NG_OK;
    last_error[0] = '\0';
}

ng_status ng_fail(ng_status code, const char *format, ...)
{
    /* The arguments may point into the text that is about to be replaced. */
    char text[sizeof last_error];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(last_error, sizeof last_error, "%s", text);
    last_status = code;
    error_count++;
    return code;
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
