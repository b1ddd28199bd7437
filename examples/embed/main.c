/* Checks the gradient of a layer, at both orders. */
#include "normgrad.h"

int main(void)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(8, 4), 0, 1, &rng);
    ng_module *norm = ng_rms_norm_new(4);
    ng_check_report report = ng_check_module(norm, &x, 1, .order = 2);
    ng_check_print(stdout, "RMSNorm", &report);
    if (ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
    ng_module_free(norm), ng_tensor_free(x);
    return !report.passed;
}
