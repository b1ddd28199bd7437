/* Runs every suite: NAME of each test_NAME.c. */
#include <check.h>
#include <stdlib.h>

/* clang-format off */
#define SUITES(X)                                                                                  \
    X(adaptive_layer_norm) X(batch_norm) X(batch_renorm) X(batches) X(check) X(conditions)         \
    X(conv) X(core) X(derf) X(derivatives) X(detach_norm) X(dynamic_tanh) X(evaluate) X(evo_norm)  \
    X(files) X(film) X(filter_response_norm) X(functions) X(gallery) X(gated_rms_norm)             \
    X(global_response_norm) X(golden) X(group) X(group_norm) X(hard_norms) X(instance_norm)        \
    X(invariances) X(io) X(kernels) X(l2_norm) X(layer_norm) X(local_response_norm) X(losses)      \
    X(memory) X(networks) X(nn) X(norm_masks) X(norm_ops) X(norm_settings) X(nulls) X(numbers)     \
    X(numpy) X(operands) X(ops) X(optim) X(orders) X(parallel) X(plot) X(random_networks)          \
    X(recompute) X(recurrent) X(reparameterized) X(rms_norm) X(rows) X(scale_norm) X(settings)     \
    X(spectral_norm) X(statistics) X(tape) X(threads) X(training) X(transformer)                   \
    X(user_functions) X(weight_norm) X(weight_standardization)                                     \
    X(bhyt) X(fold) X(poly_norm) X(seed_norm) X(sinkhorn)
/* clang-format on */

#define X(name) Suite *name##_suite(void);
SUITES(X)
#undef X

int main(void)
{
    /* Check's own limit of 4 seconds a test is too short under valgrind and the sanitizers. */
    setenv("CK_DEFAULT_TIMEOUT", "300", 0);

    SRunner *runner = srunner_create(NULL);
#define X(name) srunner_add_suite(runner, name##_suite());
    SUITES(X)
#undef X
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
