/* Arrays in NumPy's files, and compressed ones. */
#include "support/folder.h"
#include "support/support.h"

#include "core/alloc.h"
#include "io/unpack.h"
#include <unistd.h>

/* ---- Tools --------------------------------------------------------------------------------- */

/* Element i of the arrays of make_numpy.py. */
static double value_at(char kind, int64_t i)
{
    switch (kind) {
    case 'f': return (double)(3 * i - 7) / 2;
    case 'i': return (double)(3 * i - 7);
    case 'u': return (double)(3 * i);
    default: return (double)(i % 2);
    }
}

static void assert_is(ng_tensor *x, ng_dtype dtype, ng_shape shape, char kind)
{
    assert_ok(x);
    ck_assert_int_eq(ng_dtype_of(x), dtype);
    ck_assert_int_eq(ng_rank(x), shape.rank);
    for (int i = 0; i < shape.rank; i++) ck_assert_int_eq(ng_dim(x, i), shape.dim[i]);
    for (int64_t i = 0; i < ng_size(x); i++) ck_assert(ng_get(x, i) == value_at(kind, i));
    ng_tensor_free(x);
}

/* Adds the lowest `bytes` bytes of a number, little-endian. */
static void print_bytes(ng_text *text, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) ng_text_print(text, "%c", (int)(value >> 8 * i & 0xff));
}

/* The fields that a local header and the directory's entry share, of an array that is stored. */
static void print_fields(ng_text *zip, const char *content, size_t size)
{
    print_bytes(zip, 20, 2);
    print_bytes(zip, 0, 8);
    print_bytes(zip, ng_crc32(0, content, (int64_t)size), 4);
    print_bytes(zip, size, 4);
    print_bytes(zip, size, 4);
    print_bytes(zip, strlen("x.npy"), 4);
}

/* Writes it.npz, in which x has each letter of `names` as a name, and returns its path. */
static const char *put_archive(const ng_tensor *x, const char *names)
{
    size_t size;
    assert_ok(ng_tensor_save_npy(x, in_folder("entry.npy")));
    char *content = get_file(in_folder("entry.npy"), &size);
    ng_text zip = {.function = "put_archive"}, directory = zip;
    for (const char *name = names; *name; name++) {
        ng_text_print(&directory, "PK\1\2%c%c", 20, 0);
        print_fields(&directory, content, size);
        print_bytes(&directory, 0, 8);
        print_bytes(&directory, 0, 2);
        print_bytes(&directory, (uint64_t)zip.count, 4);
        ng_text_print(&directory, "%c.npy", *name);
        ng_text_print(&zip, "PK\3\4");
        print_fields(&zip, content, size);
        ng_text_print(&zip, "%c.npy", *name);
        ng_text_add(&zip, content, (int64_t)size);
    }
    const uint64_t begin = (uint64_t)zip.count;
    ng_text_add(&zip, directory.bytes, directory.count);
    ng_text_print(&zip, "PK\5\6");
    print_bytes(&zip, 0, 4);
    print_bytes(&zip, strlen(names), 2);
    print_bytes(&zip, strlen(names), 2);
    print_bytes(&zip, (uint64_t)directory.count, 4);
    print_bytes(&zip, begin, 4);
    print_bytes(&zip, 0, 2);
    const char *path = put_file("it.npz", zip.bytes, (size_t)zip.count);
    free(content), ng_free(zip.bytes), ng_free(directory.bytes);
    return path;
}

/* ---- Read ---------------------------------------------------------------------------------- */

#ifdef NG_WITH_ZLIB
enum { ARCHIVES = 2 };
#else
enum { ARCHIVES = 1 };
#endif
enum { COMPRESSED = 1 };
static const char *const archives[] = {"tests/golden/numpy.npz",
                                       "tests/golden/numpy_compressed.npz"};

START_TEST(arrays_of_every_dtype_are_read)
{
    static const struct {
        const char *name;
        ng_dtype dtype;
        char kind;
    } all[] = {{"f2", NG_F32, 'f'}, {"f4", NG_F32, 'f'}, {"f8", NG_F64, 'f'}, {"i1", NG_I64, 'i'},
               {"i2", NG_I64, 'i'}, {"i4", NG_I64, 'i'}, {"i8", NG_I64, 'i'}, {"u1", NG_I64, 'u'},
               {"u2", NG_I64, 'u'}, {"u4", NG_I64, 'u'}, {"u8", NG_I64, 'u'}, {"b1", NG_I64, 'b'},
               {"big", NG_I64, 'i'}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_is(ng_tensor_read_npz(archives[_i], all[i].name), all[i].dtype, NG_SHAPE(3, 4),
                  all[i].kind);
    assert_is(ng_tensor_read_npz(archives[_i], "fortran"), NG_F32, NG_SHAPE(2, 3, 5), 'f');
    assert_is(ng_tensor_read_npz(archives[_i], "scalar"), NG_F64, NG_SCALAR, 'f');
    assert_is(ng_tensor_read_npz(archives[_i], "row"), NG_F32, NG_SHAPE(5), 'f');
    assert_is(ng_tensor_read_npz(archives[_i], "none"), NG_F32, NG_SHAPE(0, 3), 'f');
    assert_refused(ng_tensor_read_npz(archives[_i], "f16"));
}

START_TEST(every_version_of_the_header_is_read)
{
    for (int version = 1; version <= 3; version++) {
        char path[64];
        snprintf(path, sizeof path, "tests/golden/numpy%d.npy", version);
        assert_is(ng_tensor_read_npy(path), NG_F64, NG_SHAPE(2, 3, 4), 'f');
        size_t size;
        char *bytes = get_file(path, &size);
        assert_fails(ng_tensor_read_npy(put_file("it.npy", bytes, 100)), NG_EPARSE);
        free(bytes);
    }
}

START_TEST(a_data_set_is_read_from_an_archive)
{
    ng_dataset *data = ng_dataset_read_npz(archives[_i], .scale = 0.5);
    assert_ok(data);
    const ng_tensor *x = ng_dataset_x(data), *y = ng_dataset_y(data);
    ck_assert_int_eq(ng_dataset_count(data), 6);
    ck_assert_int_eq(ng_rank(x), 3);
    for (int i = 0; i < 24; i++) ck_assert(ng_get(x, i) == 1.5 * i);
    ck_assert_int_eq(ng_dtype_of(y), NG_I64);
    for (int i = 0; i < 6; i++) ck_assert(ng_get(y, i) == 3 * i);
    ng_dataset_free(data);

    data = ng_dataset_read_npz(archives[_i], .x = "f8", .y = "f4", .dtype = NG_F64);
    assert_ok(data);
    ck_assert_int_eq(ng_dtype_of(ng_dataset_x(data)), NG_F64);
    ck_assert_int_eq(ng_dtype_of(ng_dataset_y(data)), NG_F64);
    ng_dataset_free(data);
    data = ng_dataset_read_npz(archives[_i], .x = "u8", .no_label = true);
    ck_assert_ptr_eq(ng_dataset_y(data), NG_NONE);
    ng_dataset_free(data);

    assert_fails(ng_dataset_read_npz(archives[_i], .y = "row"), NG_ESHAPE);
    assert_fails(ng_dataset_read_npz(archives[_i], .x = "none", .y = "none"), NG_ESHAPE);
    assert_refused(ng_dataset_read_npz(archives[_i], .scale = 1e300));
    assert_fails(ng_dataset_read_npz(archives[_i], .dtype = NG_I64), NG_EDTYPE);
    assert_refused(ng_dataset_read_npz(archives[_i], .no_label = true, .y = "y"));
}

/* ---- Write --------------------------------------------------------------------------------- */

static ng_tensor *sample(ng_dtype dtype, ng_shape shape)
{
    ng_tensor *x = ng_zeros_new(dtype, shape);
    for (int64_t i = 0; i < ng_size(x); i++) ng_set(x, i, value_at(dtype == NG_I64 ? 'i' : 'f', i));
    return x;
}

START_TEST(a_saved_array_has_the_bytes_that_numpy_writes)
{
    ng_tensor *x = sample(NG_F32, NG_SHAPE(3, 4));
    const char *path = in_folder("it.npy");
    assert_ok(ng_tensor_save_npy(x, path));
    assert_same_files(path, "tests/golden/numpy.npy");
    ng_tensor_free(x);
}

START_TEST(what_is_saved_is_read_again)
{
    static const ng_dtype dtypes[] = {NG_F32, NG_F64, NG_I64};
    const ng_shape shapes[] = {NG_SCALAR,      NG_SHAPE(1),       NG_SHAPE(1000, 3),
                               NG_SHAPE(0, 2), NG_SHAPE(2, 3, 4), NG_SHAPE(1, 1, 1, 1, 1, 1, 1, 2)};
    for (int i = 0; i < 18; i++) {
        ng_tensor *x = own(sample(dtypes[i % 3], shapes[i / 3]));
        assert_ok(ng_tensor_save_npy(x, in_folder("it.npy")));
        assert_same_bits(x, own(ng_tensor_read_npy(in_folder("it.npy"))));
    }
}

START_TEST(saving_and_loading_without_memory_is_an_error)
{
    ng_tensor *x = sample(NG_F32, NG_SHAPE(3, 4));
    for (int64_t n = 0, refused = 1; refused; n++) {
        allocations_fail_after(n);
        refused = out_of_memory(ng_tensor_save_npy(x, in_folder("a.npy")));
    }
    for (int64_t n = 0, refused = 1; refused; n++) {
        allocations_fail_after(n);
        ng_tensor *a = ng_tensor_read_npy("tests/golden/numpy1.npy");
        ng_tensor *b = a ? ng_tensor_read_npz(archives[ARCHIVES - 1], "fortran") : NULL;
        ng_dataset *c = b ? ng_dataset_read_npz(archives[ARCHIVES - 1]) : NULL;
        refused = out_of_memory(!c);
        ng_tensor_free(a), ng_tensor_free(b), ng_dataset_free(c);
    }
    ng_tensor_free(x);
    ck_assert_int_eq(allocations_live(), 0);
}

/* Reading takes the memory of the file, of the arrays that are read, and small buffers. */
enum { ARRAY = 4 << 20, SMALL = 1 << 17 };

static int64_t peak_of_reading(const char *path, const char *x, const char *y)
{
    const int64_t before = (allocations_peak(), allocations_peak());
    ng_tensor *array = ng_tensor_read_npz(path, x);
    assert_ok(array);
    ng_tensor_free(array);
    const int64_t alone = allocations_peak() - before;
    ng_dataset *data = ng_dataset_read_npz(path, .x = x, .y = y, .no_label = !y);
    assert_ok(data);
    ng_dataset_free(data);
    const int64_t peak = allocations_peak() - before, second = y ? ARRAY : 0;
    return peak - second > alone ? peak - second : alone;
}

START_TEST(an_archive_is_read_without_a_second_copy_of_its_arrays)
{
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(16, ARRAY / 64)));
    put_archive(x, "xy");
    const int64_t peak = peak_of_reading(in_folder("it.npz"), "x", "y");
    ck_assert_int_ge(peak, 3 * ARRAY);
    ck_assert_int_le(peak, 3 * ARRAY + SMALL);
}

/* ---- What is refused ----------------------------------------------------------------------- */

static const struct {
    const char *header;
    size_t bytes;
    bool is_read;
} headers[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8, true},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }\n", 8, true}, /* Python 2 */
    {"{'shape':(2,),'fortran_order':True,'descr':'=f4'}", 8, true},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 7, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 9, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", 8, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': [2], }", 8, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }", 0, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4), }", 0, false},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 4, 0), }", 0, false},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, false},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, false},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, false},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", 8, false},
    {"{'descr': '<f4', 'shape': (2,), }", 8, false},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", 8, false},
    {"{'descr': '<f4', 'fortran_order': False, ", 8, false},
    {"", 8, false},
};
enum { HEADERS = sizeof headers / sizeof headers[0] };

START_TEST(a_header_is_read_strictly)
{
    char bytes[512] = "\x93NUMPY\1";
    const size_t length = strlen(headers[_i].header);
    bytes[8] = (char)length;
    memcpy(bytes + 10, headers[_i].header, length);
    ng_tensor *x = ng_tensor_read_npy(put_file("it.npy", bytes, 10 + length + headers[_i].bytes));
    if (!headers[_i].is_read) {
        assert_fails(x, ng_error_status(), "ng_tensor_read_npy");
    } else {
        assert_values(x, 0, 0, 0);
        ng_tensor_free(x);
    }
}

static void read_npy(const char *path, bool is_cut)
{
    ng_tensor_free(ng_tensor_read_npy(path));
    ck_assert(!is_cut || ng_failed());
}

static void read_npz(const char *path, bool is_cut)
{
    ng_tensor_free(ng_tensor_read_npz(path, "fortran"));
    ck_assert(!is_cut || ng_failed());
}

START_TEST(damaged_files_are_refused_without_harm)
{
    read_damaged("tests/golden/numpy3.npy", "it.npy", 1, read_npy);
    for (int i = 0; i < ARCHIVES; i++) read_damaged(archives[i], "it.npz", 17, read_npz);
    ck_assert_int_eq(allocations_live(), 0);
}

enum { END = -22, ENTRY = END - 46 - 5 }; /* of the last array, from the file's end */

/* Damages the entry of the last array, and the end of the archive. */
START_TEST(a_damaged_directory_is_refused)
{
    static const struct {
        int at, bytes;
        uint64_t value;
    } faults[] = {{END, 1, 0},
                  {END + 16, 4, UINT32_MAX},
                  {END + 16, 4, 5810},
                  {ENTRY + 8, 2, 1},
                  {ENTRY + 10, 2, 12},
                  {ENTRY + 20, 4, 1},
                  {ENTRY + 20, 4, INT32_MAX},
                  {ENTRY + 24, 4, 1},
                  {ENTRY + 24, 4, UINT32_MAX},
                  {ENTRY + 30, 2, 0xffff},
                  {ENTRY + 42, 4, 1},
                  {ENTRY + 42, 4, INT32_MAX}};
    size_t size;
    char *bytes = get_file(archives[0], &size);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char *place = bytes + (int64_t)size + faults[i].at, was[8];
        memcpy(was, place, 4);
        for (int k = 0; k < faults[i].bytes; k++) place[k] = (char)(faults[i].value >> 8 * k);
        assert_fails(ng_tensor_read_npz(put_file("it.npz", bytes, size), "y"), NG_EPARSE);
        memcpy(place, was, 4);
    }
    free(bytes);
}

/* The last bytes before the directory belong to the last array. Some of the very last bits of a
 * compressed one have no meaning. */
START_TEST(a_flipped_bit_fails_the_checksum)
{
    for (int i = 0; i < ARCHIVES; i++) {
        size_t size, at = 0;
        char *bytes = get_file(archives[i], &size);
        while (memcmp(bytes + at, "PK\1\2", 4) != 0) at++;
        bytes[at - (i == COMPRESSED ? 4 : 1)] ^= 0x40;
        ck_assert_ptr_null(ng_tensor_read_npz(put_file("it.npz", bytes, size), "y"));
        /* In a compressed array zlib may have found it. */
        assert_error(NG_EPARSE, "");
        free(bytes);
    }
}

START_TEST(what_does_not_fit_int64_is_refused)
{
    char bytes[128] = "\x93NUMPY\1";
    static const char header[] = "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }";
    bytes[8] = (char)strlen(header);
    memcpy(bytes + 10, header, strlen(header));
    memset(bytes + 10 + strlen(header), 0xff, 8);
    assert_refused(ng_tensor_read_npy(put_file("it.npy", bytes, 18 + strlen(header))));
}

/* ---- gzip ---------------------------------------------------------------------------------- */

#ifdef NG_WITH_ZLIB

/* Compresses a file of the folder and returns the path of the new one. */
static const char *gzipped(const char *name)
{
    char command[512], result[200];
    snprintf(command, sizeof command, "gzip -nkf '%s'", in_folder(name));
    ck_assert_int_eq(system(command), 0);
    snprintf(result, sizeof result, "%s.gz", name);
    return in_folder(result);
}

static const char *packed(const char *name, const char *content)
{
    put_text(name, content);
    return gzipped(name);
}

START_TEST(compressed_csv_and_idx_are_read)
{
    const char *path = packed("it.csv", "1,2,0\n3,4,1\n");
    ng_dataset *data = ng_dataset_read_csv(path);
    assert_ok(data);
    assert_values(ng_dataset_x(data), 0, 1, 2, 3, 4);
    ng_dataset_free(data);

    size_t size;
    char *bytes = get_file(path, &size);
    char twice[512];
    memcpy(twice, bytes, size), memcpy(twice + size, bytes, size);
    data = ng_dataset_read_csv(put_file("twice", twice, 2 * size));
    ck_assert_int_eq(ng_dataset_count(data), 4);
    ng_dataset_free(data);

    assert_fails(ng_dataset_read_csv(put_file("cut", twice, 2 * size - 1)), NG_EPARSE);
    memset(twice + 2 * size, 0, 100); /* as tar and tapes pad */
    data = ng_dataset_read_csv(put_file("padded", twice, 2 * size + 100));
    assert_ok(data);
    ck_assert_int_eq(ng_dataset_count(data), 4);
    ng_dataset_free(data);
    twice[2 * size] = 'x';
    assert_fails(ng_dataset_read_csv(put_file("more", twice, 2 * size + 1)), NG_EPARSE);
    free(bytes);

    static const char images[] = "\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\2\0\377\377\0";
    put_file("images", images, 20);
    data = ng_dataset_read_idx(gzipped("images"), NULL);
    assert_ok(data);
    assert_values(ng_dataset_x(data), 0, 0, 1, 1, 0);
    ng_dataset_free(data);
}

START_TEST(a_long_compressed_file_is_read)
{
    static char content[300000];
    ng_rng rng = ng_rng_seeded(1);
    for (size_t row = 0, used = 0; row < 20000; row++)
        used += (size_t)snprintf(content + used, sizeof content - used, "%lld,%zu\n",
                                 (long long)ng_rng_below(&rng, 99999999), row % 10);
    ng_dataset *b = own(ng_dataset_read_csv(packed("it.csv", content)));
    ng_dataset *a = own(ng_dataset_read_csv(in_folder("it.csv")));
    assert_same_bits(ng_dataset_x(a), ng_dataset_x(b));
    assert_same_bits(ng_dataset_y(a), ng_dataset_y(b));
}

START_TEST(a_compressed_array_is_unpacked_into_the_tensor)
{
    ck_assert_int_le(peak_of_reading("tests/golden/numpy_steps.npz", "x", NULL), ARRAY + SMALL);
}

/* zlib gets a megabyte at a time. */
START_TEST(a_compressed_array_is_put_together_from_its_pieces)
{
    ng_tensor *x = own(ng_tensor_read_npz("tests/golden/numpy_steps.npz", "x"));
    ck_assert_int_eq(ng_size(x), 16 * 65536);
    for (int64_t i = 0; i < ng_size(x); i += 4095) ck_assert(ng_get(x, i) == (double)(i / 4096));
}

/* The directory promises a byte less than the array has, or counts one that stands after it. */
START_TEST(a_compressed_array_of_another_length_is_refused)
{
    size_t size;
    assert_fails(ng_tensor_read_npz("tests/golden/numpy_longer.npz", "x"), NG_EPARSE);
    char *counted = get_file(archives[COMPRESSED], &size);
    (counted + size)[ENTRY + 20]++;
    assert_fails(ng_tensor_read_npz(put_file("it.npz", counted, size), "y"), NG_EPARSE);
    free(counted);
}

#else

START_TEST(without_zlib_a_compressed_file_says_how_to_read_it)
{
    static const char says[] = "compressed, and normgrad was built without zlib";
    assert_fails(ng_tensor_read_npz(archives[COMPRESSED], "x"), NG_EPARSE, says);
    assert_fails(ng_dataset_read_csv(put_file("it.csv.gz", "\x1f\x8b\x08\0gzip", 8)), NG_EPARSE,
                 says);
}

#endif

Suite *numpy_suite(void)
{
    Suite *suite = suite_create("numpy");
    TCase *tests = add_case(suite, make_test_folder, remove_test_folder);
    add_tests(tests, every_version_of_the_header_is_read,
              a_saved_array_has_the_bytes_that_numpy_writes, what_is_saved_is_read_again,
              saving_and_loading_without_memory_is_an_error,
              an_archive_is_read_without_a_second_copy_of_its_arrays,
              damaged_files_are_refused_without_harm, a_damaged_directory_is_refused,
              a_flipped_bit_fails_the_checksum, what_does_not_fit_int64_is_refused);
    add_loops(tests, ARCHIVES, arrays_of_every_dtype_are_read, a_data_set_is_read_from_an_archive);
    add_loops(tests, HEADERS, a_header_is_read_strictly);
#ifdef NG_WITH_ZLIB
    add_tests(tests, compressed_csv_and_idx_are_read, a_long_compressed_file_is_read,
              a_compressed_array_is_unpacked_into_the_tensor,
              a_compressed_array_is_put_together_from_its_pieces,
              a_compressed_array_of_another_length_is_refused);
#endif
#ifndef NG_WITH_ZLIB
    add_tests(tests, without_zlib_a_compressed_file_says_how_to_read_it);
#endif
    return suite;
}
