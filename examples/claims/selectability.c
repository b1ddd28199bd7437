/* The share of attention keys that no query can select, by norm. A key inside the convex hull of
 * the others never has the largest logit; norms put keys on a sphere, where none is inside. */
#include "lab.h"

enum { FEATURES, HEAD, MOST };
enum { MOST_HEAD = 64 };
static lab_size sizes[] = {
    [FEATURES] = {"features", "features of the model", .normal = 32, .quick = 16},
    [HEAD] = {"head", "features of a narrow head", .normal = 8, .quick = 4, .most = MOST_HEAD},
    [MOST] = {"most", "keys of a sequence", .normal = 256, .quick = 32, .least = 4},
    {0}};

static const lab_experiment experiment = {
    .id = "selectability",
    .source = "Brody, Alon & Yahav 2023, section 4",
    .claim = "without a norm some keys cannot be selected: no query gives them the largest logit; "
             "LayerNorm makes every key selectable",
    .method =
        "256 random keys. A key is unselectable if it lies in the convex hull of the others;\n"
        "this is decided by the point of the differences' hull nearest to 0 (Gilbert 1966). Keys\n"
        "k have 8 features, random and normalized; or k = W norm(h), for a head of 8 of a\n"
        "model's 32 features, as in a pre-norm block; or k = norm(W h), QK-norm. BatchNorm takes\n"
        "its statistics over the keys.\n",
    .rule =
        "the share of keys that no query selects is above 0.05 without a norm and with BatchNorm, "
        "and 0 (below 1e-9) with LayerNorm and RMSNorm",
    .dtype = "float64",
    .seeds = 12,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, PLACES = 3, ITERATIONS = 4000 };
static const struct {
    const char *name;
    ng_norm_maker *make;
} norms[NORMS] = {{"no norm", ng_norm_none},
                  {"BatchNorm", ng_norm_batch},
                  {"LayerNorm", ng_norm_layer},
                  {"RMSNorm", ng_norm_rms}};
static const char *const places[PLACES] = {"keys normalized", "before a narrow head",
                                           "QK-norm of a narrow head"};

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Returns whether a query q has q . (k_i - k_j) > 0 for all j. The point p of the differences' hull
 * nearest to 0 is such a q, unless it is 0. Gilbert's steps go towards the difference with the
 * smallest product with p. */
static bool is_selectable(const double *keys, int count, int width, int index, double *p,
                          double *way)
{
    const double *own = keys + (int64_t)index * width;
    for (int f = 0; f < width; f++) p[f] = own[f] - keys[(index == 0) * width + f];
    const double enough = 1e-5 * dot(own, own, width);
    for (int step = 0; step < ITERATIONS; step++) {
        double least = HUGE_VAL;
        int farthest = 0;
        for (int j = 0; j < count; j++) {
            if (j == index) continue;
            const double along = dot(p, own, width) - dot(p, keys + (int64_t)j * width, width);
            if (along < least) least = along, farthest = j;
        }
        if (least > 0) return true;
        for (int f = 0; f < width; f++)
            way[f] = own[f] - keys[(int64_t)farthest * width + f] - p[f];
        const double share = fmin(1, -dot(p, way, width) / dot(way, way, width));
        for (int f = 0; f < width; f++) p[f] += share * way[f];
        if (dot(p, p, width) < enough) return false;
    }
    return false;
}

/* Draws keys (count, width) on the tape. */
static ng_tensor *draw_keys(ng_tape *tape, int place, ng_norm_maker *make, int count, uint64_t seed)
{
    const int64_t head = lab_whole(HEAD), features = place == 0 ? head : lab_whole(FEATURES);
    ng_module *norm = make(place == 1 ? features : head);
    ng_module_to(norm, NG_F64);
    ng_tape_seed(tape, seed);
    ng_tensor *w = ng_normal(tape, NG_F64, NG_SHAPE(head, features), 0, 1 / sqrt((double)features));
    ng_tensor *h = ng_normal(tape, NG_F64, NG_SHAPE(count, features), 0, 1);
    ng_tensor *k = place == 1 ? ng_forward(norm, tape, h) : h;
    if (place > 0) k = ng_matmul(tape, k, w, .transpose_b = true);
    if (place != 1) k = ng_forward(norm, tape, k);
    ng_module_free(norm);
    return k;
}

static double unselectable(int place, int norm, int count, uint64_t seed)
{
    ng_tape *tape = ng_tape_new();
    ng_tape_set_recording(tape, false);
    ng_tensor *keys = draw_keys(tape, place, norms[norm].make, count, seed);
    const int width = lab_whole(HEAD);
    double p[MOST_HEAD], way[MOST_HEAD], share = 0;
    lab_goes_on();
    for (int i = 0; i < count; i++)
        share += !is_selectable(ng_data_f64(keys), count, width, i, p, way) / (double)count;
    ng_tape_free(tape);
    return share;
}

static void measure(int place, int norm)
{
    double *share = lab_numbers(lab_seeds());
    lab_curves *curves = lab_curves_new("keys", "%s, %s", norms[norm].name, places[place]);
    int most = 4;
    for (int count = most; count <= lab_whole(MOST); count *= 2) {
        lab_progress(place * NORMS + norm, PLACES * NORMS, "%s, %s, %d keys", norms[norm].name,
                     places[place], count);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            share[seed] = unselectable(place, norm, count, lab_seed(seed));
            lab_log(curves, seed, "share", count, share[seed]);
        }
        most = count;
    }
    const bool some = norm < 2;
    lab_judge((lab_part){norm == 0 ? NULL : norms[norm].name, share,
                         .side = some ? LAB_ABOVE : LAB_BELOW, .threshold = some ? 0.05 : 1e-9},
              "share of %d keys that no query selects, %s%s", most, norm == 0 ? "no norm, " : "",
              places[place]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("random keys of %d features, and of heads of %d out of %d", lab_whole(HEAD),
             lab_whole(HEAD), lab_whole(FEATURES));
    for (int place = 0; place < PLACES; place++)
        for (int norm = 0; norm < NORMS; norm++)
            if (place == 0 || norm > 0) measure(place, norm);
    return lab_end();
}
