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

/* Writes the character of four hexadecimal digits to `out` in UTF-8, which takes at most three
 * bytes. Returns where it ends, or NULL. */
static char *json_unicode(ng_json *json, char *out)
{
    char digits[5] = "";
    if (json->end - json->at >= 4) memcpy(digits, json->at, 4);
    const unsigned long code = strtoul(digits, NULL, 16);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (strspn(digits, "0123456789abcdefABCDEF") < 4 || code == 0 || surrogate)
        return ng_json_expected(json, "four digits of a character, and no surrogate"), NULL;
    json->at += 4;
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
    } else {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (code & 0x3f));
    return out;
}

bool ng_json_string(ng_json *json, const char **text)
{
    if (!ng_json_need(json, '"')) return false;
    char *out = json->at;
    *text = out;
    while (json->at < json->end && *json->at != '"') {
        const char c = *json->at++;
        const char *found = c == '\\' && *json->at ? strchr(json_letters, *json->at) : NULL;
        if (c != '\\') {
            *out++ = c;
        } else if (found) {
            *out++ = json_escaped[found - json_letters];
            json->at++;
        } else if (*json->at++ != 'u') {
            return ng_json_expected(json, "a character after '\\'");
        } else if (!(out = json_unicode(json, out))) {
            return false;
        }
    }
    if (json->at >= json->end) return ng_json_expected(json, "the end of a string");
    *out = '\0';
    json->at++;
    return true;
}

void ng_json_print_string(ng_text *text, const char *string)
{
    ng_text_add(text, "\"", 1);
    for (const char *c = string; *c; c++) {
        const char *found = *c == '/' ? NULL : strchr(json_escaped, *c);
        if (found)
            ng_text_print(text, "\\%c", json_letters[found - json_escaped]);
        else if ((unsigned char)*c < 0x20)
            ng_text_print(text, "\\u%04x", (unsigned)*c);
        else
            ng_text_add(text, c, 1);
    }
    ng_text_add(text, "\"", 1);
}

int ng_utf8_bytes(const char *text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)text;
    const int more = *byte < 0x80 ? 0 : *byte < 0xe0 ? 1 : *byte < 0xf0 ? 2 : 3;
    if (*byte == 0 || (more > 0 && (*byte < 0xc0 || *byte > 0xf4))) return 0;
    uint32_t code = *byte & (more > 0 ? 0x3fu >> more : 0x7fu);
    for (int i = 1; i <= more; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[more] || code > 0x10ffff || surrogate ? 0 : more + 1;
}

bool ng_is_utf8(const char *text)
{
    for (int bytes; (bytes = ng_utf8_bytes(text)) > 0;) text += bytes;
    return *text == '\0';
}
