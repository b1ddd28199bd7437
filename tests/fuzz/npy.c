/* ng_tensor_read_npy. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ng_tensor *x = ng_tensor_read_npy(fuzz_file(data, size));
    fuzz_check(x);
    ng_tensor_free(x);
    return 0;
}
