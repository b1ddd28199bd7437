/* ng_dataset_read_csv, plain and compressed. The first byte chooses the options. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    ng_dataset *read = ng_dataset_read_csv(
        fuzz_file(data + 1, size - 1), .header = data[0] & 1, .no_label = data[0] & 2,
        .label_column = data[0] & 4 ? data[0] >> 5 : 0, .delimiter = data[0] & 8 ? ';' : 0,
        .dtype = data[0] & 16 ? NG_F64 : NG_F32);
    fuzz_check(read);
    ng_dataset_free(read);
    return 0;
}
