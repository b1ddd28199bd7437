/* Reads JSON from the front, and writes its strings. */
#ifndef NG_IO_JSON_H
#define NG_IO_JSON_H

#include "io/file.h"

/* A text that is read, and where. Strings are decoded in place, so the text is changed. */
typedef struct {
    ng_origin origin;
    char *begin, *at, *end;
} ng_json;

/* NG_EPARSE at the present place; false. */
bool ng_json_expected(const ng_json *json, const char *what);

void ng_json_skip_blanks(ng_json *json);

/* Skips blanks and takes one character, if it is the next. ng_json_need: else it is an error. */
bool ng_json_take(ng_json *json, char c);
bool ng_json_need(ng_json *json, char c);

/* A string, in UTF-8 and ended with a zero byte; \u0000 in it is an error. */
bool ng_json_string(ng_json *json, const char **text);

/* A whole number from 0 to 2^63 - 1. */
bool ng_json_count(ng_json *json, int64_t *value);

/* Calls `member` with the key of each member of an object, after the colon. */
bool ng_json_object(ng_json *json, bool (*member)(ng_json *json, const char *key, void *data),
                    void *data);

void ng_json_print_string(ng_text *text, const char *string);
bool ng_is_utf8(const char *text);

#endif
