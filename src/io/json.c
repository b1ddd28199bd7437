/* Tokens of a header: characters, strings, counts and objects. */
#include "io/json.h"
#include <stdlib.h>
#include <string.h>

bool ng_json_expected(const ng_json *json, const char *what)
{
    return ng_refuse(json->origin, NG_EPARSE, "byte %lld of the header: expected %s",
                     (long long)(json->at - json->begin), what);
}

static void skip_blanks(ng_json *json)
{
    while (json->at < json->end && *json->at && strchr(" \t\n\r", *json->at)) json->at++;
}

bool ng_json_take(ng_json *json, char c)
{
    skip_blanks(json);
    if (json->at == json->end || *json->at != c) return false;
    json->at++;
    return true;
}

bool ng_json_need(ng_json *json, char c)
{
    const char text[] = {'\'', c, '\'', '\0'};
    return ng_json_take(json, c) || ng_json_expected(json, text);
}

bool ng_json_end(ng_json *json)
{
    skip_blanks(json);
    return json->at == json->end || ng_json_expected(json, "the end");
}

bool ng_json_count(ng_json *json, int64_t *value)
{
    skip_blanks(json);
    const char *first = json->at;
    *value = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *json->at - '0', value))
            return ng_json_expected(json, "a number below 2^63");
    return json->at > first || ng_json_expected(json, "a whole number");
}

bool ng_json_object(ng_json *json, bool (*member)(ng_json *json, const char *key, void *data),
                    void *data)
{
    const char *key;
    if (!ng_json_need(json, '{')) return false;
    if (ng_json_take(json, '}')) return true;
    do {
        if (!ng_json_string(json, &key) || !ng_json_need(json, ':') || !member(json, key, data))
            return false;
    } while (ng_json_take(json, ','));
    return ng_json_need(json, '}');
}

/* ---- Strings ------------------------------------------------------------------------------- */

static const char json_letters[] = "btnfr\"\\/", json_escaped[] = "\b\t\n\f\r\"\\/";

/* Writes the character of four hexadecimal digits to `to` in UTF-8, which takes at most three
 * bytes. Returns where it ends, or NULL. */
static char *json_unicode(ng_json *json, char *to)
{
    char digits[5] = "";
    if (json->end - json->at >= 4) memcpy(digits, json->at, 4);
    const unsigned long code = strtoul(digits, NULL, 16);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (strspn(digits, "0123456789abcdefABCDEF") < 4 || code == 0 || surrogate)
        return ng_json_expected(json, "four digits of a character, and no surrogate"), NULL;
    json->at += 4;
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

bool ng_json_string(ng_json *json, const char **text)
{
    if (!ng_json_need(json, '"')) return false;
    char *to = json->at;
    *text = to;
    while (json->at < json->end && *json->at != '"') {
        const char c = *json->at++;
        const char *found = c == '\\' && *json->at ? strchr(json_letters, *json->at) : NULL;
        if (c != '\\') {
            *to++ = c;
        } else if (found) {
            *to++ = json_escaped[found - json_letters];
            json->at++;
        } else if (*json->at++ != 'u') {
            return ng_json_expected(json, "a character after '\\'");
        } else if (!(to = json_unicode(json, to))) {
            return false;
        }
    }
    if (json->at >= json->end) return ng_json_expected(json, "the end of a string");
    *to = '\0';
    json->at++;
    return true;
}

void ng_json_print_string(ng_text *text, const char *string)
{
    ng_text_add(text, "\"", 1);
    for (const char *at = string; *at; at++) {
        const char *found = *at == '/' ? NULL : strchr(json_escaped, *at);
        if (found)
            ng_text_print(text, "\\%c", json_letters[found - json_escaped]);
        else if ((unsigned char)*at < 0x20)
            ng_text_print(text, "\\u%04x", (unsigned)*at);
        else
            ng_text_add(text, at, 1);
    }
    ng_text_add(text, "\"", 1);
}

int ng_utf8_bytes(const char *text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    const int more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
    if (*at == 0 || (more > 0 && (*at < 0xc0 || *at > 0xf4))) return 0;
    uint32_t code = *at & (more > 0 ? 0x3fu >> more : 0x7fu);
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[more] || code > 0x10ffff || surrogate ? 0 : more + 1;
}

bool ng_is_utf8(const char *text)
{
    for (int bytes; (bytes = ng_utf8_bytes(text)) > 0;) text += bytes;
    return *text == '\0';
}
