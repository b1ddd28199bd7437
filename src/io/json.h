/* Reads headers of files and the state of a training from the front; writes JSON strings. */
#ifndef NG_IO_JSON_H
#define NG_IO_JSON_H

#include "io/file.h"

/* A header that is being read. A zero byte follows it. Strings are decoded in place, which changes
 * the text. */
typedef struct {
    ng_origin origin;
    char *begin, *at, *end;
} ng_json;

/* Records "byte N of the header: expected WHAT" as NG_EPARSE and returns false. */
bool ng_json_expected(const ng_json *json, const char *what);

/* Skips blanks and takes the character if it is the next one. For ng_json_need it is an error if it
 * is not. */
bool ng_json_take(ng_json *json, char c);
bool ng_json_need(ng_json *json, char c);

/* An error if more than blanks is left. */
bool ng_json_end(ng_json *json);

/* Reads a string and ends it with a zero byte. \u0000 and escaped surrogates are errors. */
bool ng_json_string(ng_json *json, const char **text);

/* Reads a whole number from 0 to 2^63 - 1. */
bool ng_json_count(ng_json *json, int64_t *value);

/* Calls `member` with the key of each member of an object, after the colon. */
bool ng_json_object(ng_json *json, bool (*member)(ng_json *json, const char *key, void *data),
                    void *data);

void ng_json_print_string(ng_text *text, const char *string);

/* The bytes of the text's first character in UTF-8 as Python decodes it, without surrogates and
 * overlong forms; 0 at the end of the text, and if it is not UTF-8. */
int ng_utf8_bytes(const char *text);

/* Whether a whole text is such UTF-8. */
bool ng_is_utf8(const char *text);

#endif
