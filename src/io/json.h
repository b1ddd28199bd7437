/* Reads the headers of safetensors and .npy files from the front, and writes JSON strings. */
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

/* Whether only blanks are left; else an error. */
bool ng_json_end(ng_json *json);

/* A string, ended with a zero byte. An escaped character beyond U+FFFF, and \u0000, is an error. */
bool ng_json_string(ng_json *json, const char **text);

/* A whole number from 0 to 2^63 - 1. */
bool ng_json_count(ng_json *json, int64_t *value);

/* Calls `member` with the key of each member of an object, after the colon. */
bool ng_json_object(ng_json *json, bool (*member)(ng_json *json, const char *key, void *data),
                    void *data);

void ng_json_print_string(ng_text *text, const char *string);

/* Whether Python decodes a text as UTF-8: without surrogates and overlong forms. */
bool ng_is_utf8(const char *text);

#endif
