/* The settings of a class as a table. From it come the defaults, the refusals with their texts, and
 * the description in a summary, by which ng_training_resume and ng_parallel_new compare layers.
 *
 *     static const ng_setting l2_norm_settings[] = {
 *         {NG_OPTION(l2_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
 *         {NG_OPTION(l2_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-10},
 *         {NG_OPTION(l2_norm, scale), NG_IS_FINITE, .standard = 1, .quiet = true},
 *         {NG_OPTION(l2_norm, no_affine), NG_IS_FLAG, .excludes = "scale"},
 *         {0}};
 *
 *     l2_norm *self = ng_layer_new("ng_l2_norm_new", &l2_norm_class, l2_norm_settings,
 *                                  &(l2_norm){.options = options});
 *
 * L2Norm(128, eps=1e-10, no affine); ng_l2_norm_new: both .no_affine and .scale, expected one of
 * them. */
#ifndef NG_NN_SETTINGS_H
#define NG_NN_SETTINGS_H

#include <normgrad/custom.h>
#include <normgrad/nn.h>

/* What a setting is: the type of its member, and the values that it may have. */
typedef enum {
    NG_IS_COUNT,        /* int64_t: positive */
    NG_IS_CHOICE,       /* an enumeration from 0 on */
    NG_IS_COUNT_OR_0,   /* int64_t: positive, or 0 for none */
    NG_IS_SHAPE,        /* ng_shape: positive dimensions, or none */
    NG_IS_OTHER,        /* written by .print; what is not written is none */
    NG_IS_FLAG,         /* bool */
    NG_IS_POINTER,      /* or NULL for none */
    NG_IS_FINITE,       /* double, as are the rest */
    NG_IS_POSITIVE,     /* above 0 */
    NG_IS_NOT_NEGATIVE, /* at least 0 */
    NG_IS_FACTOR,       /* at least 1 */
    NG_IS_FRACTION,     /* 0 to 1 */
    NG_IS_PROBABILITY,  /* at least 0 and below 1 */
    NG_IS_PART          /* above 0 and at most 1 */
} ng_setting_kind;

typedef struct {
    const char *name; /* "eps", as a caller writes it; NULL, in {0}, ends the table */
    size_t place;     /* of the member in the layer's struct */
    ng_setting_kind kind;
    double standard;            /* what 0 selects; 0: 0 is a value like others (or missing) */
    int64_t most;               /* of a count; 0: no limit */
    const char *unit;           /* what a count counts, "features"; the type of a choice */
    const char *divides;        /* other counts */
    const char *const *choices; /* the names of the values */
    const char *excludes;       /* settings that are refused beside it, "momentum group" */
    const char *needs;          /* the setting without which it has no effect */
    unsigned when;              /* ... with values of these bits; 0: if it is given */

    void (*print)(const void *member, char *text, size_t bytes);
    const char *label;        /* in place of its name in the description */
    bool bare, quiet, hidden; /* there without its name; only if not standard; never */
} ng_setting;

/* The name and the place of a member of .options of a layer; of a member of the layer itself. */
#define NG_OPTION(type, member) NG_PLACE(#member, type, options.member)
#define NG_MEMBER(type, member) NG_PLACE(#member, type, member)
#define NG_PLACE(label, type, member) .name = label, .place = offsetof(type, member)

/* Fills in the defaults in `layer`, a layer's struct without its base, and returns a module of this
 * class with its members. NULL with an error of `function`: a setting is refused. */
void *ng_layer_new(const char *function, const ng_module_class *type, const ng_setting *settings,
                   void *layer);

/* The settings of a module as text, by its class's describe or its table. */
void ng_module_describe(const ng_module *module, char *text, size_t bytes);

#endif
