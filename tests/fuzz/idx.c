/* ng_dataset_read_idx, plain and compressed: images, and the same bytes as labels. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    ng_dataset *read = ng_dataset_read_idx(fuzz_file(data, size), NULL);
    fuzz_check(read);
    ng_dataset_free(read);

    char labels[64];
    const int fd = memfd_create("labels", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(labels, sizeof labels, "/proc/self/fd/%d", fd);
    read = ng_dataset_read_idx(fuzz_file(images, sizeof images), labels);
    fuzz_check(read);
    ng_dataset_free(read);
    close(fd);
    return 0;
}
