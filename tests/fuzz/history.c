/* ng_history_read. A history that was read is written and read again. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ng_history *read = ng_history_read(fuzz_file(data, size));
    fuzz_check(read);
    if (!read) return 0;
    char path[64];
    snprintf(path, sizeof path, "/tmp/fuzz-history-%ld", (long)getpid());
    if (ng_history_write(read, path) != NG_OK) abort();
    ng_history *again = ng_history_read(path);
    if (!again) abort();
    ng_history_free(read), ng_history_free(again);
    unlink(path);
    return 0;
}
