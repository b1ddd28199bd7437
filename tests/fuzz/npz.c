/* ng_tensor_read_npz and ng_dataset_read_npz. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    ng_tensor *x = ng_tensor_read_npz(path, "x");
    fuzz_check(x);
    ng_tensor_free(x);
    ng_dataset *read = ng_dataset_read_npz(path);
    fuzz_check(read);
    ng_dataset_free(read);
    return 0;
}
