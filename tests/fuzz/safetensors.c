/* ng_module_load: whole, .partial and .rename. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ng_module *net;
    if (!net) net = ng_sequential_new(ng_linear_new(2, 3), ng_batch_norm_new(3));
    const char *path = fuzz_file(data, size);
    ng_load_report report;
    fuzz_check(ng_module_load(net, path) == NG_OK);
    fuzz_check(ng_module_load(net, path, .partial = true, .verify = true, .report = &report) ==
               NG_OK);
    fuzz_check(ng_module_load(net, path, .partial = true, .report = &report,
                              .rename = NG_RENAME("i64", "0.b", "0", "1", "f16", "")) == NG_OK);
    return 0;
}
