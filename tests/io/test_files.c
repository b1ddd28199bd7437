/* Networks in files: the safetensors format, from and for other programs. */
#include "support/folder.h"
#include "support/golden.h"
#include "support/support.h"

/* ---- Tools --------------------------------------------------------------------------------- */

static void set_up(void)
{
    make_test_folder();
    golden_load("tests/golden/exchange.txt");
}

static void tear_down(void)
{
    golden_unload();
    remove_test_folder();
}

/* Writes a file with this header and `bytes` zero bytes after it. */
static const char *file_of(const char *header, size_t bytes)
{
    static char content[4096];
    const size_t length = strlen(header);
    memset(content, 0, sizeof content);
    for (int i = 0; i < 8; i++) content[i] = (char)((uint64_t)length >> 8 * i);
    memcpy(content + 8, header, length);
    return put_file("it.safetensors", content, 8 + length + bytes);
}

static ng_module *in_double(ng_module *module)
{
    assert_ok(ng_module_to(module, NG_F64));
    return module;
}

static const char *of_pytorch(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "tests/golden/%s.safetensors", name);
    return path;
}

/* ---- PyTorch's networks -------------------------------------------------------------------- */

static ng_module *mlp(void)
{
    return ng_sequential_new(ng_linear_new(5, 7), ng_batch_norm_new(7), ng_relu_new(),
                             ng_linear_new(7, 3));
}

static ng_module *conv(void)
{
    return ng_sequential_new(ng_conv2d_new(2, 4, 3, .padding = 1), ng_batch_norm_new(4),
                             ng_relu_new(), ng_max_pool2d_new(2),
                             ng_conv2d_new(4, 4, 2, .groups = 2), ng_flatten_new(),
                             ng_linear_new(16, 3));
}

static ng_module *transformer(void)
{
    return ng_transformer_new(11, .dim = 8, .heads = 2, .layers = 2, .length = 6, .hidden = 16);
}

/* weight_ih_l0, bias_hh_l1_reverse... as PyTorch names them. */
static ng_module *lstm(void) { return ng_lstm_new(4, 3, .layers = 2, .bidirectional = true); }
static ng_module *gru(void) { return ng_gru_new(4, 3, .bidirectional = true); }

static const struct {
    const char *name;
    ng_module *(*make)(void);
    const char *const *rename;
} networks[] = {
    {"mlp", mlp, NULL},
    {"conv", conv, NULL},
    {"transformer", transformer,
     NG_RENAME("embed", "embedding", "positions", "positions.weight", "layers", "blocks", "norm1",
               "attention_norm", "norm2", "feed_forward_norm", "self_attn.in_proj_weight",
               "attention.in_weight", "self_attn.in_proj_bias", "attention.in_bias",
               "self_attn.out_proj.weight", "attention.out_weight", "self_attn.out_proj.bias",
               "attention.out_bias", "linear1.weight", "feed_forward.in_weight", "linear1.bias",
               "feed_forward.in_bias", "linear2.weight", "feed_forward.out_weight", "linear2.bias",
               "feed_forward.out_bias")},
    {"lstm", lstm, NULL},
    {"gru", gru, NULL},
};
enum { NETWORKS = sizeof networks / sizeof networks[0] };

static void assert_computes_the_same(ng_module *net, const char *name)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = golden("%s/x", name), *y = golden("%s/y", name);
    ng_tensor *ids = ng_copy_new(x, strcmp(name, "transformer") == 0 ? NG_I64 : NG_F64);
    ng_eval(net);
    ng_tensor *own = ng_forward(net, tape, ids);
    assert_ok(own);
    assert_tensors_close(own, y, 1e-12);
    ng_tape_free(tape), ng_tensor_free(ids);
}

START_TEST(pytorchs_networks_give_pytorchs_outputs)
{
    ng_module *net = own(in_double(networks[_i].make()));
    assert_ok(ng_module_load(net, of_pytorch(networks[_i].name), .verify = true,
                             .rename = networks[_i].rename));
    assert_computes_the_same(net, networks[_i].name);

    /* So does the network after saving and loading. */
    const char *path = in_folder("again.safetensors");
    ng_module *again = own(in_double(networks[_i].make()));
    assert_ok(ng_module_save(net, path));
    assert_ok(ng_module_load(again, path, .verify = true));
    assert_computes_the_same(again, networks[_i].name);
}

START_TEST(a_saved_network_has_the_bytes_that_python_writes)
{
    ng_module *net = in_double(networks[_i].make());
    const char *path = in_folder("it.safetensors");
    assert_ok(ng_module_load(net, of_pytorch(networks[_i].name)));
    assert_ok(ng_module_save(net, path));
    assert_same_files(path, of_pytorch(networks[_i].name));
    ng_module_free(net);
}

/* ---- Other dtypes -------------------------------------------------------------------------- */

/* A module with one buffer of a given name. */
typedef struct {
    ng_module base;
} keeper;
static const ng_module_class keeper_class = {.name = "Keeper", .size = sizeof(keeper)};

static ng_module *keeper_new(const char *name, ng_shape shape)
{
    ng_module *self = ng_module_new(&keeper_class);
    ng_module_add_buffer(self, name, shape, 7);
    return ng_module_built(self);
}

static const char *const kind_names[] = {"f16", "bf16", "bool", "u8", "i8", "i16", "i32", "i64"};

START_TEST(every_dtype_is_read_as_what_pytorch_reads)
{
    const char *name = kind_names[_i];
    ng_tensor *expected = golden("kinds/%s", name);
    ng_module *into = own(in_double(keeper_new(name, ng_shape_of(expected))));
    ng_load_report report;
    assert_ok(ng_module_load(into, of_pytorch("kinds"), .partial = true, .report = &report));
    ck_assert_int_eq(report.loaded, 1);
    ck_assert_int_eq(report.kept, 0);
    ck_assert_int_eq(report.unused, 8);
    assert_same_bits(ng_module_find(into, name), expected);
}

START_TEST(a_name_may_be_any_text)
{
    ng_module *net = keeper_new("größe \"\\\t", NG_SCALAR);
    assert_ok(ng_module_load(net, of_pytorch("kinds"), .partial = true));
    assert_values(ng_module_find(net, "größe \"\\\t"), 0, 1.5);
    ng_fill(ng_module_find(net, "größe \"\\\t"), 3);
    assert_ok(ng_module_save(net, in_folder("it")));
    ng_module *again = keeper_new("größe \"\\\t", NG_SCALAR);
    assert_ok(ng_module_load(again, in_folder("it")));
    assert_values(ng_module_find(again, "größe \"\\\t"), 0, 3);
    ng_module_free(net), ng_module_free(again);

    const char *escaped = file_of("{\"\\u0061\\/\\u00e9\\u20AC\":"
                                  "{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
                                  4);
    net = keeper_new("a/é€", NG_SCALAR);
    assert_ok(ng_module_load(net, escaped));
    assert_values(ng_module_find(net, "a/é€"), 0, 0);
    ng_module_free(net);

    net = keeper_new("\xff", NG_SCALAR);
    assert_refused(ng_module_save(net, in_folder("it")));
    ng_module_free(net);
    net = keeper_new("__metadata__", NG_SCALAR);
    assert_refused(ng_module_save(net, in_folder("it")));
    ng_module_free(net);
}

START_TEST(what_a_dtype_cannot_hold_is_refused)
{
    /* -2^31 is exact in float32, 2^31 - 1 is not. */
    ng_module *net = keeper_new("i32", NG_SHAPE(2));
    assert_refused(ng_module_load(net, of_pytorch("kinds"), .partial = true));
    assert_values(ng_module_find(net, "i32"), 0, 7, 7);
    ng_module_free(net);

    ng_module *wide = in_double(keeper_new("x", NG_SHAPE(3))),
              *narrow = keeper_new("x", NG_SHAPE(3));
    ng_tensor *x = ng_module_find(wide, "x");
    const double values[] = {(double)INFINITY, 3.4e38, 1e300};
    for (int i = 0; i < 3; i++) ng_set(x, i, values[i]);
    assert_ok(ng_module_save(wide, in_folder("it")));
    assert_refused(ng_module_load(narrow, in_folder("it")));
    assert_values(ng_module_find(narrow, "x"), 0, 7, 7, 7);
    ng_set(x, 2, (double)NAN);
    assert_ok(ng_module_save(wide, in_folder("it")));
    assert_ok(ng_module_load(narrow, in_folder("it")));
    ck_assert(isinf(ng_get(ng_module_find(narrow, "x"), 0)));
    ck_assert(isnan(ng_get(ng_module_find(narrow, "x"), 2)));
    ng_module_free(wide), ng_module_free(narrow);

    /* A count is a whole number. */
    ng_module *norm = own(ng_batch_norm_new(1, .no_affine = true));
    const char *half = file_of("{\"num_batches_tracked\":{\"dtype\":\"F16\",\"shape\":[],"
                               "\"data_offsets\":[0,2]}}",
                               2);
    assert_ok(ng_module_load(norm, half, .partial = true));
    size_t size;
    char *bytes = get_file(half, &size);
    bytes[size - 1] = 0x38; /* 0.5 */
    half = put_file("it.safetensors", bytes, size);
    free(bytes);
    assert_refused(ng_module_load(norm, half, .partial = true));
}

/* ---- Parts of networks --------------------------------------------------------------------- */

START_TEST(a_part_is_read_where_it_is_wanted_and_the_rest_is_named)
{
    ng_module *saved = own(mlp());
    const char *path = in_folder("it.safetensors");
    assert_ok(ng_module_init(saved, 3));
    assert_ok(ng_module_save(saved, path));

    ng_module *other = ng_sequential_new(ng_linear_new(5, 7), ng_batch_norm_new(7), ng_relu_new(),
                                         ng_dropout_new(0.5), ng_linear_new(7, 2));
    ng_tensor *kept = own(ng_copy_new(ng_module_find(other, "4.weight"), NG_F32));
    assert_refused(ng_module_load(other, path));
    ng_load_report report;
    assert_ok(ng_module_load(other, path, .partial = true, .report = &report));
    ck_assert_int_eq(report.loaded, 7);
    ck_assert_int_eq(report.kept, 2);
    ck_assert_int_eq(report.unused, 2);
    ck_assert_str_eq(report.names, "kept: 4.weight, 4.bias; unused: 3.bias, 3.weight");
    assert_same_bits(ng_module_find(other, "4.weight"), kept);
    assert_same_bits(ng_module_find(other, "0.weight"), ng_module_find(saved, "0.weight"));

    /* A tensor of another shape is not a missing one. */
    assert_fails(ng_module_load(other, path, .partial = true, .rename = NG_RENAME("3", "4")),
                 NG_ESHAPE);
    assert_same_bits(ng_module_find(other, "4.weight"), kept);

    /* Also not with the same number of elements. */
    ng_module *turned = keeper_new("x", NG_SHAPE(3, 2));
    assert_fails(ng_module_load(turned, file_of("{\"x\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                                                "\"data_offsets\":[0,24]}}",
                                                24)),
                 NG_ESHAPE);
    ng_module_free(turned);
    assert_ok(ng_module_save(saved, path));

    /* A file with nothing for the module is an error, and one that is not there. */
    assert_fails(ng_module_load(other, in_folder("none")), NG_EIO);
    ng_module *stranger = own(ng_sequential_new(ng_residual_new(ng_linear_new(2, 2))));
    assert_refused(ng_module_load(stranger, path, .partial = true));
    ng_module *bare = own(ng_relu_new());
    assert_refused(ng_module_load(bare, path, .partial = true));
    ng_module_free(other);
}

/* "Load if there is a file, else train": nothing is left on record that would end the training. */
START_TEST(a_network_is_kept_where_there_is_no_file)
{
    ng_module *net = own(mlp());
    ng_tensor *kept = own(ng_copy_new(ng_module_find(net, "0.weight"), NG_F32));
    const char *path = in_folder("not_yet.safetensors");
    ng_load_report report;
    assert_ok(ng_module_load(net, path, .or_keep = true, .report = &report));
    ck_assert(!ng_failed());
    assert_same_bits(ng_module_find(net, "0.weight"), kept);
    ck_assert_int_eq(report.loaded, 0);
    ck_assert_int_eq(report.kept, 9);
    ck_assert_int_eq(report.unused, 0);

    /* A file that is there is read, and one that cannot be read is an error. */
    assert_ok(ng_module_init(net, 5));
    ng_tensor *saved = own(ng_copy_new(ng_module_find(net, "0.weight"), NG_F32));
    assert_ok(ng_module_save(net, path));
    assert_ok(ng_module_init(net, 6));
    assert_ok(ng_module_load(net, path, .or_keep = true));
    assert_same_bits(ng_module_find(net, "0.weight"), saved);
    assert_fails(ng_module_load(net, file_of("{}", 3), .or_keep = true), NG_EPARSE);
    assert_fails(ng_module_load(net, in_folder("."), .or_keep = true), NG_EIO);
}

/* Tensors of dtypes that the library does not read are ignored with .partial. */
START_TEST(an_unused_tensor_may_have_any_dtype)
{
    static const char *const dtypes[] = {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "C64", "new"};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                 "\"scale\":{\"dtype\":\"%s\",\"shape\":[5],\"data_offsets\":[4,7]}}",
                 dtypes[i]);
        const char *path = file_of(header, 7);
        ng_module *net = keeper_new("x", NG_SHAPE(1)), *other = keeper_new("scale", NG_SHAPE(5));
        ng_load_report report;
        assert_ok(ng_module_load(net, path, .partial = true, .report = &report));
        ck_assert_str_eq(report.names, "unused: scale");
        assert_values(ng_module_find(net, "x"), 0, 0);
        assert_fails(ng_module_load(other, path, .partial = true), NG_EPARSE);
        ng_module_free(net), ng_module_free(other);
    }
}

START_TEST(names_change_by_whole_parts)
{
    static const struct {
        const char *from, *to, *name, *expected;
    } cases[] = {
        {"a", "b", "a.weight", "b.weight"},     {"a", "b", "aa.weight", NULL},
        {"a", "b", "x.a.weight", "x.b.weight"}, {"a.weight", "b", "x.a.weight", "x.b"},
        {"a.w", "b", "x.a.weight", NULL},       {"module", "", "module.weight", "weight"},
        {"a", "", "x.a.weight", "x.weight"},    {"weight", "", "x.weight", "x"},
        {"a", "b", "a.a.a", "b.b.b"},           {"a", "a.a", "x.a", "x.a.a"},
        {"10", "1", "10.100.10", "1.100.1"},    {"x", "net.x", "x", "net.x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{\"%s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", cases[i].name);
        ng_module *net = ng_sequential_new(ng_relu_new());
        const char *const rename[] = {cases[i].from, cases[i].to, NULL};
        char expected[64];
        if (cases[i].expected)
            snprintf(expected, sizeof expected, "has \"%s\", which", cases[i].expected);
        else
            snprintf(expected, sizeof expected, "no name with \"%s\"", cases[i].from);
        assert_refused(ng_module_load(net, file_of(header, 4), .rename = rename), expected);
        ng_module_free(net);
    }
    ng_module *net = own(mlp());
    assert_refused(ng_module_load(net, of_pytorch("mlp"), .rename = NG_RENAME("0", "3")));
    assert_refused(ng_module_load(net, of_pytorch("mlp"), .rename = NG_RENAME("0")));
    assert_refused(ng_module_load(net, of_pytorch("mlp"), .rename = NG_RENAME("", "3")));
}

/* A pair may rename the result of an earlier one. A pair that renames nothing is an error. */
START_TEST(a_pair_that_renames_nothing_is_refused)
{
    ng_module *net = own(keeper_new("y", NG_SHAPE(12)));
    assert_ok(ng_module_load(net, of_pytorch("kinds"), .partial = true,
                             .rename = NG_RENAME("f16", "x", "x", "y")));
    ng_fill(ng_module_find(net, "y"), 7);
    assert_refused(ng_module_load(net, of_pytorch("kinds"), .partial = true,
                                  .rename = NG_RENAME("f16", "y", "f1", "x")));
    assert_refused(ng_module_load(net, of_pytorch("kinds"), .partial = true,
                                  .rename = NG_RENAME("x", "y", "f16", "x")));
    ck_assert(ng_get(ng_module_find(net, "y"), 0) == 7);
}

/* ---- A strict reader ----------------------------------------------------------------------- */

#define F32(name, at, end)                                                                         \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" at "," end "]}"

static const struct {
    const char *header;
    size_t bytes;
    bool is_read;
} headers[] = {
    {"{" F32("x", "0", "4") "}", 4, true},
    {"{" F32("x", "0", "4") "}   ", 4, true},
    {"{ \"x\" :\n{\"shape\":[ 1 ],\"data_offsets\":[0 , 4],\t\"dtype\":\"F32\" } }", 4, true},
    {"{\"__metadata__\":{}," F32("x", "0", "4") "}", 4, true},
    {"{\"__metadata__\":{\"a\":\"b\",\"c\":\"\"}," F32("x", "0", "4") "}", 4, true},
    {"{" F32("x", "0", "4") ",\"__metadata__\":{\"a\":\"b\"}}", 4, true},
    {"{" F32("x", "4", "8") ",\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}," F32(
         "y", "0", "4") "}",
     8, false},
    {"{" F32("x", "0", "4") "," F32("y", "0", "4") "}", 4, false},
    {"{" F32("x", "0", "4") "," F32("y", "2", "6") "}", 6, false},
    {"{" F32("x", "0", "4") "," F32("y", "8", "12") "}", 12, false},
    {"{" F32("x", "4", "8") "}", 8, false},
    {"{" F32("x", "0", "4") "}", 6, false},
    {"{}", 1, false},
    {"", 0, false},
    {"[]", 0, false},
    {"{}x", 0, false},
    {"{" F32("x", "0", "4") "}\0", 4, true},
    {"{" F32("x", "0", "4"), 4, false},
    {"{" F32("x", "0", "4") ",}", 4, false},
    {"{" F32("x", "0", "4") "}", 3, false},
    {"{" F32("x", "0", "8") "}", 8, false},
    {"{" F32("x", "4", "0") "}", 4, false},
    {"{" F32("x", "0", "9223372036854775807") "}", 4, false},
    {"{" F32("x", "0", "9223372036854775808") "}", 4, false},
    {"{" F32("x", "-0", "4") "}", 4, false},
    {"{" F32("x", "0", "4.0") "}", 4, false},
    {"{" F32("x", "0,0", "4") "}", 4, false},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, false},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, false},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":\"\"}}", 4, false},
    {"{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, false},
    {"{\"x\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, false},
    {"{\"x\":[]}", 0, false},
    {"{\"x\":{}}", 0, false},
    {"{\"x\":{\"shape\":[[1]],\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, false},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, false},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,4],\"data_offsets\":[0,0]}}", 0,
     false},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,8],\"data_offsets\":[0,0]}}", 0,
     false},
    {"{\"__metadata__\":{\"a\":{}}}", 0, false},
    {"{\"__metadata__\":{\"a\":1}}", 0, false},
    {"{\"__metadata__\":{\"digest\":\"fnv1a:0000000000000000\"}," F32("x", "0", "4") "}", 4, false},
    {"{\"\\x\":1}", 0, false},
    {"{\"\\u0000\":1}", 0, false},
    {"{\"\\u12g4\":1}", 0, false},
    {"{\"\\ud800\":1}", 0, false},
    {"{\"\\udc00\":1}", 0, false},
    {"{\"x", 0, false},
    {"{\"x\\", 0, false},
};
enum { HEADERS = sizeof headers / sizeof headers[0] };

START_TEST(a_header_is_read_strictly)
{
    ng_module *net = own(keeper_new("x", NG_SHAPE(1)));
    const char *path = file_of(headers[_i].header, headers[_i].bytes);
    const ng_status status = ng_module_load(net, path);
    assert_error(status, headers[_i].is_read ? "" : path);
    ck_assert((status == NG_OK) == headers[_i].is_read);
    assert_values(ng_module_find(net, "x"), 0, status ? 7 : 0);
}

/* The digest and a strict header leave no byte that may differ. */
static void load_damaged(const char *path, bool is_cut)
{
    ng_module *net = ng_batch_norm_new(1);
    const ng_status status = ng_module_load(net, path, .verify = !is_cut);
    assert_fails(status, is_cut ? NG_EPARSE : status, path);
    assert_values(ng_module_find(net, "weight"), 0, 1);
    assert_values(ng_module_find(net, "running_var"), 0, 1);
    ng_module_free(net);
}

START_TEST(a_damaged_network_is_refused_without_harm)
{
    ng_module *net = own(ng_batch_norm_new(1));
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) ng_fill(p.tensor, 7);
    for (int i = 0; ng_module_buffer(net, i, &p); i++) ng_fill(p.tensor, 7);
    assert_ok(ng_module_save(net, in_folder("it.safetensors")));
    read_damaged(in_folder("it.safetensors"), "damaged", 1, load_damaged);
}

START_TEST(a_digest_is_wanted_where_it_is_asked_for)
{
    ng_module *net = own(in_double(keeper_new("f16", NG_SHAPE(12))));
    assert_ok(ng_module_load(net, of_pytorch("kinds"), .partial = true));
    assert_fails(ng_module_load(net, of_pytorch("kinds"), .partial = true, .verify = true),
                 NG_EPARSE);
}

START_TEST(loading_without_memory_changes_nothing)
{
    const int64_t before = allocations_live();
    for (int64_t n = 0, refused = 1; refused; n++) {
        ng_module *net = keeper_new("y", NG_SHAPE(12));
        allocations_fail_after(n);
        refused = out_of_memory(ng_module_load(net, of_pytorch("kinds"), .partial = true,
                                               .rename = NG_RENAME("f16", "x", "x", "y")) != NG_OK);
        ck_assert_int_eq(ng_get(ng_module_find(net, "y"), 0) == 7, refused);
        ng_module_free(net);
        ck_assert_int_eq(allocations_live(), before);
    }
}

Suite *files_suite(void)
{
    Suite *suite = suite_create("files");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, a_name_may_be_any_text, what_a_dtype_cannot_hold_is_refused,
              a_part_is_read_where_it_is_wanted_and_the_rest_is_named,
              a_network_is_kept_where_there_is_no_file, an_unused_tensor_may_have_any_dtype,
              names_change_by_whole_parts, a_pair_that_renames_nothing_is_refused,
              loading_without_memory_changes_nothing);
    add_loops(tests, NETWORKS, pytorchs_networks_give_pytorchs_outputs);
    add_loops(tests, 2, a_saved_network_has_the_bytes_that_python_writes);
    add_loops(tests, sizeof kind_names / sizeof kind_names[0],
              every_dtype_is_read_as_what_pytorch_reads);
    tests = add_case(suite, make_test_folder, remove_test_folder);
    add_tests(tests, a_damaged_network_is_refused_without_harm,
              a_digest_is_wanted_where_it_is_asked_for);
    add_loops(tests, HEADERS, a_header_is_read_strictly);
    return suite;
}
