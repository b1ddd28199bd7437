/* How settings, shapes and lists in a call become C. No reader of the other headers need know it.
 * Your own functions may have settings too:
 *
 *     typedef struct {
 *         double eps;
 *         int64_t dim;
 *     } my_norm_options;
 *     #define my_norm_new(...) my_norm_new_with(NG_NAMED(my_norm_options, dim, __VA_ARGS__))
 *     ng_module *my_norm_new_with(my_norm_options options);
 *
 *     NG_NAMED(type, member, x, .setting = 1)   (type){.member = x, .setting = 1}
 *     NG_SHAPE(2, 3), NG_AXES(0, -1)            a shape, axes (tensor.h)
 *     NG_VALUES(1, 2), NG_TENSORS(a, b)         two arguments, a list and its length
 *     NG_NAMES("a", "b")                        names, ended by NULL
 *     NG_LIST(type, a, b)                       an array
 */
#ifndef NORMGRAD_SETTINGS_H
#define NORMGRAD_SETTINGS_H

#include <normgrad/core.h>

#ifdef __cplusplus
#pragma GCC system_header
#include <initializer_list>
#include <type_traits>
#endif

/* Make the struct of settings, whose last member is the last required argument; with _TWO the last
 * two, of which `before` has the value. NG_STRUCT makes a struct that is itself a setting. Each
 * checks that the settings have names. */
#define NG_NAMED(type, member, ...)                                                                \
    (NG_EACH_NAMED(type, __VA_ARGS__), NG_MADE(type, member, __VA_ARGS__))
#define NG_NAMED_TWO(type, before, value, member, ...)                                             \
    (NG_EACH_NAMED(type, __VA_ARGS__), NG_MADE_TWO(type, before, value, member, __VA_ARGS__))
#define NG_STRUCT(type, ...) (NG_EACH_NAMED(type, 0, __VA_ARGS__), NG_PLAIN(type, __VA_ARGS__))
#ifdef __cplusplus
#define NG_PLAIN(type, ...)                                                                        \
    __extension__ type { __VA_ARGS__ }
#define NG_MADE(type, member, ...) NG_MADE_LAST(type, member, __VA_ARGS__, )
#define NG_MADE_LAST(type, member, first, ...) NG_PLAIN(type, __VA_ARGS__.member = first)
#define NG_MADE_TWO(type, before, value, member, ...)                                              \
    NG_MADE_TWO_LAST(type, before, value, member, __VA_ARGS__, )
#define NG_MADE_TWO_LAST(type, before, value, member, first, ...)                                  \
    NG_PLAIN(type, __VA_ARGS__.before = value, .member = first)
#define NG_ONE(type, setting) (void)sizeof(ng_some<type>() setting)
template <typename type> type &ng_some(); /* not defined */
#else
#define NG_PLAIN(type, ...) ((type){__VA_ARGS__})
#define NG_MADE(type, member, ...)                                                                 \
    ((type){.member = __VA_ARGS__}) /* an error here: an argument is missing or of another type */
#define NG_MADE_TWO(type, before, value, member, ...)                                              \
    NG_MADE(type, before, (value), .member = __VA_ARGS__)
#define NG_ONE(type, setting)                                                                      \
    (void)(((type){0})setting) /* an error here: a setting without a name, or of another type */
#endif

/* Checks that each setting has a name: code that never runs assigns it to a member. At most 20. */
#define NG_EACH_NAMED(type, ...)                                                                   \
    (void)(0 ? (NG_NTH(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4,  \
                       3, 2, 1, 0, )(type, __VA_ARGS__),                                           \
                0)                                                                                 \
             : 0)
#define NG_NTH(first, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, count, ...)      \
    NG_EACH_##count
#define NG_EACH_0(t, x) (void)0
#define NG_EACH_1(t, x, s) NG_ONE(t, s)
#define NG_EACH_2(t, x, s, ...) NG_ONE(t, s), NG_EACH_1(t, x, __VA_ARGS__)
#define NG_EACH_3(t, x, s, ...) NG_ONE(t, s), NG_EACH_2(t, x, __VA_ARGS__)
#define NG_EACH_4(t, x, s, ...) NG_ONE(t, s), NG_EACH_3(t, x, __VA_ARGS__)
#define NG_EACH_5(t, x, s, ...) NG_ONE(t, s), NG_EACH_4(t, x, __VA_ARGS__)
#define NG_EACH_6(t, x, s, ...) NG_ONE(t, s), NG_EACH_5(t, x, __VA_ARGS__)
#define NG_EACH_7(t, x, s, ...) NG_ONE(t, s), NG_EACH_6(t, x, __VA_ARGS__)
#define NG_EACH_8(t, x, s, ...) NG_ONE(t, s), NG_EACH_7(t, x, __VA_ARGS__)
#define NG_EACH_9(t, x, s, ...) NG_ONE(t, s), NG_EACH_8(t, x, __VA_ARGS__)
#define NG_EACH_10(t, x, s, ...) NG_ONE(t, s), NG_EACH_9(t, x, __VA_ARGS__)
#define NG_EACH_11(t, x, s, ...) NG_ONE(t, s), NG_EACH_10(t, x, __VA_ARGS__)
#define NG_EACH_12(t, x, s, ...) NG_ONE(t, s), NG_EACH_11(t, x, __VA_ARGS__)
#define NG_EACH_13(t, x, s, ...) NG_ONE(t, s), NG_EACH_12(t, x, __VA_ARGS__)
#define NG_EACH_14(t, x, s, ...) NG_ONE(t, s), NG_EACH_13(t, x, __VA_ARGS__)
#define NG_EACH_15(t, x, s, ...) NG_ONE(t, s), NG_EACH_14(t, x, __VA_ARGS__)
#define NG_EACH_16(t, x, s, ...) NG_ONE(t, s), NG_EACH_15(t, x, __VA_ARGS__)
#define NG_EACH_17(t, x, s, ...) NG_ONE(t, s), NG_EACH_16(t, x, __VA_ARGS__)
#define NG_EACH_18(t, x, s, ...) NG_ONE(t, s), NG_EACH_17(t, x, __VA_ARGS__)
#define NG_EACH_19(t, x, s, ...) NG_ONE(t, s), NG_EACH_18(t, x, __VA_ARGS__)
#define NG_EACH_20(t, x, s, ...) NG_ONE(t, s), NG_EACH_19(t, x, __VA_ARGS__)

/* Lists, shapes and axes in a call. NG_ELEMENT is the size in bytes of an array's elements,
 * negative for whole numbers; 0 for a void pointer. */
#ifndef __cplusplus
#define NG_LIST(type, ...) ((type const[]){__VA_ARGS__})
#define NG_LENGTH(type, ...) (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define NG_SHAPE(...)                                                                              \
    ((ng_shape){.rank = (int)NG_LENGTH(int64_t, __VA_ARGS__), .dim = {__VA_ARGS__}})
#define NG_SCALAR ((ng_shape){0, {0}})
#define NG_AXES(...) ((ng_axes){.count = (int)NG_LENGTH(int, __VA_ARGS__), .axis = {__VA_ARGS__}})
#define NG_AXES_IN_CXX
#else
template <typename... T> std::integral_constant<int64_t, sizeof...(T)> ng_count_of(T...);
template <typename shape> static inline shape ng_shape_from(std::initializer_list<int64_t> lengths)
{
    shape made = {(int)lengths.size(), {0}};
    int axis = 0;
    for (int64_t length : lengths)
        if (axis < (int)(sizeof made.dim / sizeof *made.dim)) made.dim[axis++] = length;
    return made;
}
#define NG_LIST(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#define NG_LENGTH(type, ...) (decltype(ng_count_of(__VA_ARGS__))::value)
#define NG_SHAPE(...) ng_shape_from<ng_shape>({__VA_ARGS__})
#define NG_SCALAR (ng_shape{0, {0}})
#define NG_AXES(...) (ng_axes{__VA_ARGS__})
/* A constructor, so that .axes = 1 is an error. */
#define NG_AXES_IN_CXX                                                                             \
    ng_axes() = default;                                                                           \
    explicit ng_axes(std::initializer_list<int> axes) : count((int)axes.size()), axis()            \
    {                                                                                              \
        int at = 0;                                                                                \
        for (int a : axes)                                                                         \
            if (at < (int)(sizeof axis / sizeof *axis)) axis[at++] = a;                            \
    }
#endif
#define NG_VALUES(...) NG_LIST(double, __VA_ARGS__), (int64_t)NG_LENGTH(double, __VA_ARGS__)
#define NG_TENSORS(...) NG_LIST(ng_tensor *, __VA_ARGS__), (int)NG_LENGTH(ng_tensor *, __VA_ARGS__)
#define NG_NAMES(...) NG_LIST(const char *, __VA_ARGS__, NULL)

/* The size in bytes of an array's elements, also of an array of arrays up to four deep: negative
 * for whole numbers, 0 for a void pointer. The size in bytes of a true array; 0 for a pointer. */
#ifndef __cplusplus
typedef struct {
    int unused;
} ng_expected_an_array_of_float_double_int_long_or_long_long;
#define NG_ELEMENT(array)                                                                          \
    (_Generic((array),                                                                             \
        void *: 0,                                                                                 \
        const void *: 0,                                                                           \
        default: _Generic(NG_ROW(NG_ROW(NG_ROW(NG_NOT_VOID(array)))),                              \
            float *: 4,                                                                            \
            double *: 8,                                                                           \
            int *: -4,                                                                             \
            long *: -(int)sizeof(long),                                                            \
            long long *: -8,                                                                       \
            default: (ng_expected_an_array_of_float_double_int_long_or_long_long){0})) +           \
     0)
/* clang-format off */
#define NG_NOT_VOID(array)                                                                         \
    _Generic((array), void *: (bool *)0, const void *: (bool *)0, default: (array))
/* A row of an array of arrays; of an array of numbers, a pointer to a number. */
#define NG_ROW(array)                                                                              \
    _Generic(&(array)[0], NG_ROW_OF(float), NG_ROW_OF(double), NG_ROW_OF(int), NG_ROW_OF(long),    \
        NG_ROW_OF(long long), NG_NO_ROW(bool), NG_NO_ROW(char), NG_NO_ROW(signed char),            \
        NG_NO_ROW(unsigned char), NG_NO_ROW(short), NG_NO_ROW(unsigned short),                     \
        NG_NO_ROW(unsigned), NG_NO_ROW(unsigned long), NG_NO_ROW(unsigned long long),              \
        NG_NO_ROW(long double), default: (array)[0])
#define NG_ROW_OF(type)                                                                            \
    type *: (type *)0, const type *: (type *)0, type **: (bool *)0, const type **: (bool *)0,      \
    type *const *: (bool *)0, const type *const *: (bool *)0
#define NG_NO_ROW(type) type *: (bool *)0, const type *: (bool *)0
/* clang-format on */
#ifdef __GNUC__
#define NG_BYTES(array)                                                                            \
    (__builtin_types_compatible_p(__typeof__(array), __typeof__(1 ? (array) : (array)))            \
         ? 0                                                                                       \
         : (int64_t)sizeof(__typeof__(array)))
#else
#define NG_BYTES(array) 0
#endif
#else
template <typename A> static inline int ng_element_of(const A &)
{
    typedef std::remove_pointer_t<std::decay_t<A>> row;
    typedef std::remove_cv_t<std::remove_all_extents_t<row>> type;
    constexpr bool none = std::is_void<type>::value;
    static_assert(none || std::is_same<type, float>::value || std::is_same<type, double>::value ||
                      std::is_same<type, int>::value || std::is_same<type, long>::value ||
                      std::is_same<type, long long>::value,
                  "expected an array of float, double, int, long or long long");
    const int bytes = (int)sizeof(std::conditional_t<none, char, type>);
    return none ? 0 : std::is_floating_point<type>::value ? bytes : -bytes;
}
template <typename A> static inline int64_t ng_bytes_of(const A &)
{
    return std::is_array<A>::value ? (int64_t)sizeof(A) : 0;
}
#define NG_ELEMENT(array) ng_element_of(array)
#define NG_BYTES(array) ng_bytes_of(array)
#endif

#endif
