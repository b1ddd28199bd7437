/* JSON (RFC 8259), as far as the headers of safetensors files need it: objects, strings, counts. */
#include "io/json.h"
#include <string.h>

bool ng_json_expected(const ng_json *json, const char *what)
{
    return ng_refuse(json->origin, NG_EPARSE, "byte %lld of the header: expected %s",
                     (long long)(json->at - json->begin), what);
}

void ng_json_skip_blanks(ng_json *json)
{
    while (json->at < json->end && *json->at && strchr(" \t\n\r", *json->at)) json->at++;
}

bool ng_json_take(ng_json *json, char c)
{
    ng_json_skip_blanks(json);
    if (json->at == json->end || *json->at != c) return false;
    json->at++;
    return true;
}

bool ng_json_need(ng_json *json, char c)
{
    const char text[] = {'\'', c, '\'', '\0'};
    return ng_json_take(json, c) || ng_json_expected(json, text);
}

/* ---- Strings ------------------------------------------------------------------------------- */

/* The length of the UTF-8 character at `at`; 0 if there is none. Surrogates, overlong forms and
 * codes beyond U+10FFFF are none. */
static int utf8_length(const char *text, const char *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    if (*at < 0x80) return 1;
    const int count = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    if (*at < 0xc0 || *at > 0xf4 || end - text < count) return 0;
    uint32_t code = *at & (0x7fu >> count);
    for (int i = 1; i < count; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[count] || code > 0x10ffff || surrogate ? 0 : count;
}

bool ng_is_utf8(const char *text)
{
    const char *const end = text + strlen(text);
    for (int count; text < end; text += count)
        if ((count = utf8_length(text, end)) == 0) return false;
    return true;
}

/* Four hexadecimal digits; -1 if there are none. */
static int32_t json_hex(ng_json *json)
{
    static const char digits[] = "0123456789abcdef";
    if (json->end - json->at < 4) return -1;
    int32_t code = 0;
    for (int i = 0; i < 4; i++, json->at++) {
        const char c = (char)(*json->at >= 'A' && *json->at <= 'F' ? *json->at + 32 : *json->at);
        const char *found = c ? strchr(digits, c) : NULL;
        if (!found) return -1;
        code = code << 4 | (int32_t)(found - digits);
    }
    return code;
}

/* What follows "\u": one code, or two surrogates. The character is no longer in UTF-8. */
static bool json_unicode(ng_json *json, char **to)
{
    int32_t code = json_hex(json);
    if (code >= 0xd800 && code < 0xdc00) {
        int32_t low = -1;
        if (json->end - json->at >= 2 && memcmp(json->at, "\\u", 2) == 0)
            json->at += 2, low = json_hex(json);
        if (low < 0xdc00 || low > 0xdfff)
            return ng_json_expected(json, "the other half of a character");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) {
        return ng_json_expected(json, "a character's four digits");
    }
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const int marks[] = {0, 0xc0, 0xe0, 0xf0};
    *(*to)++ = (char)(marks[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *(*to)++ = (char)(0x80 | (code >> 6 * i & 0x3f));
    return true;
}

static const char json_letters[] = "btnfr\"\\/", json_escaped[] = "\b\t\n\f\r\"\\/";

static bool json_escape(ng_json *json, char **to)
{
    const char c = json->at < json->end ? *json->at : '\0';
    const char *found = c ? strchr(json_letters, c) : NULL;
    if (!found && c != 'u') return ng_json_expected(json, "a character after '\\'");
    json->at++;
    if (!found) return json_unicode(json, to);
    *(*to)++ = json_escaped[found - json_letters];
    return true;
}

bool ng_json_string(ng_json *json, const char **text)
{
    if (!ng_json_need(json, '"')) return false;
    char *to = json->at;
    *text = to;
    while (json->at < json->end && *json->at != '"') {
        if ((unsigned char)*json->at < 0x20)
            return ng_json_expected(json, "no control character in a string");
        if (*json->at == '\\') {
            json->at++;
            if (!json_escape(json, &to)) return false;
            continue;
        }
        const int count = utf8_length(json->at, json->end);
        if (count == 0) return ng_json_expected(json, "UTF-8");
        for (int i = 0; i < count; i++) *to++ = *json->at++;
    }
    if (json->at == json->end) return ng_json_expected(json, "the end of a string");
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

/* ---- Numbers and objects ------------------------------------------------------------------- */

bool ng_json_count(ng_json *json, int64_t *value)
{
    ng_json_skip_blanks(json);
    const char *first = json->at;
    *value = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *json->at - '0', value))
            return ng_json_expected(json, "a number below 2^63");
    if (json->at == first || (*first == '0' && json->at - first > 1))
        return ng_json_expected(json, "a whole number");
    return true;
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
