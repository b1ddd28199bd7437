/* Trainings that are stopped, killed and resumed end with the same bits as one that was not. */
#include "support/folder.h"
#include "support/optimizers.h"
#include "support/support.h"
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- A training with everything in it ------------------------------------------------------ */

/* PROJECTED: the first optimizer, with a projection. */
enum { EPOCHS = 3, SAMPLES = 22, SIZE = 4, PROJECTED = OPTIMIZERS };

/* Halves what is beyond 0.5. */
static ng_status draw_in(void *context, const char *name, ng_tensor *weight)
{
    (void)context, (void)name;
    for (int64_t i = 0; i < ng_size(weight); i++)
        if (fabs(ng_get(weight, i)) > 0.5) ng_set(weight, i, 0.5 * ng_get(weight, i));
    return NG_OK;
}

typedef struct {
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_dataset *data;
    ng_history *history;
    ng_training *training;
    ng_rng noise;
    double loss_sum;
    int64_t drawn;
    ng_tensor *average; /* of the first weight */
} run;

static ng_dataset *make_data(void)
{
    ng_rng rng = ng_rng_seeded(11);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(SAMPLES, 5), 0, 1, &rng);
    ng_tensor *y = ng_zeros_new(NG_I64, NG_SHAPE(SAMPLES));
    for (int i = 0; i < SAMPLES; i++) ng_set(y, i, (double)ng_rng_below(&rng, 3));
    ng_dataset *data = ng_dataset_from(x, y);
    ng_tensor_free(x), ng_tensor_free(y);
    return data;
}

static ng_module *make_net(void)
{
    return ng_sequential_new(ng_linear_new(5, 6), ng_batch_norm_new(6), ng_relu_new(),
                             ng_dropout_new(0.3), ng_weight_norm_new(ng_linear_new(6, 6)),
                             ng_layer_norm_new(6), ng_linear_new(6, 3));
}

/* Makes everything, as a new process does. */
static void begin(run *r, int optimizer, const char *path, int64_t every, int64_t keep)
{
    *r = (run){.net = make_net(), .tape = ng_tape_new(), .data = make_data()};
    r->optimizer = optimizers[optimizer % OPTIMIZERS].make(r->net);
    if (optimizer == PROJECTED) assert_ok(ng_optimizer_set_projection(r->optimizer, draw_in, NULL));
    r->history = ng_history_new("a training");
    r->noise = ng_rng_seeded(3);
    r->average = ng_zeros_new(NG_F64, NG_SHAPE(6, 5));
    ng_tape_seed(r->tape, 9);
    ng_history_block(r->history, "a block");
    r->training =
        ng_training_new(r->optimizer, .tape = r->tape, .data = r->data, .history = r->history,
                        .path = path, .every = every, .keep = keep, .seed = 5);
    assert_ok(ng_training_keep_number(r->training, "loss", &r->loss_sum));
    assert_ok(ng_training_keep_count(r->training, "drawn", &r->drawn));
    assert_ok(ng_training_keep_rng(r->training, "noise", &r->noise));
    assert_ok(ng_training_keep_tensor(r->training, "average", r->average));
}

static void end(run *r)
{
    ng_training_free(r->training), ng_history_free(r->history), ng_dataset_free(r->data);
    ng_tape_free(r->tape), ng_optimizer_free(r->optimizer), ng_module_free(r->net);
    ng_tensor_free(r->average);
}

/* Trains one batch. The optimizer steps after every second one, so that gradients wait in
 * between. */
static bool work(run *r, const ng_batch *batch)
{
    ng_tensor *noise = ng_normal_new(NG_F32, ng_shape_of(batch->x), 0, 0.1, &r->noise);
    ng_tensor *x = ng_add(r->tape, batch->x, ng_tape_own(r->tape, noise));
    ng_tensor *loss = ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, x), batch->y);
    if (ng_backward(r->tape, loss)) return false;
    r->loss_sum += ng_item(loss);
    if (++r->drawn % 2 == 0) {
        ng_clip_grad_norm(r->net, 0.5);
        if (ng_optimizer_step(r->optimizer)) return false;
        const ng_tensor *weight = ng_module_find(r->net, "0.weight");
        for (int64_t i = 0; i < ng_size(weight); i++)
            ng_set(r->average, i, 0.9 * ng_get(r->average, i) + 0.1 * ng_get(weight, i));
    }
    ng_tape_reset(r->tape);
    return true;
}

static int64_t stop_at = -1; /* the step after which the training is stopped */

/* Trains to the end, or for `steps` more steps. */
static void train(run *r, int64_t steps)
{
    ng_batch batch;
    while (ng_training_epoch(r->training, EPOCHS)) {
        const ng_position at = ng_training_at(r->training);
        if (at.batch == 0) r->loss_sum = 0;
        if (at.epoch == 1 && at.batch == 0) assert_ok(ng_optimizer_set_lr(r->optimizer, 0.008));
        if (at.epoch == 2 && at.batch == 0) ng_freeze(ng_module_child(r->net, 1));
        while (ng_training_batch(r->training, SIZE, &batch)) {
            if (steps-- == 0 || !work(r, &batch)) return;
            if (ng_training_at(r->training).step + 1 == stop_at) ng_training_stop(r->training);
        }
        if (ng_training_stopped(r->training)) return;
        ng_history_log(r->history, "loss", at.epoch, r->loss_sum);
    }
}

/* The last file of a training that is not interrupted. */
static char undisturbed[PATH_MAX];

static void leave_undisturbed(int optimizer)
{
    run r;
    snprintf(undisturbed, sizeof undisturbed, "%s", in_folder("undisturbed"));
    begin(&r, optimizer, undisturbed, 1000, 1);
    train(&r, 1000);
    ck_assert_msg(!ng_failed(), "%s", ng_error_text());
    end(&r);
}

/* Resumes and trains to the end. The last file must be that of the undisturbed training. */
static void finish(int optimizer, const char *path, int64_t step)
{
    run r;
    begin(&r, optimizer, path, 1000, 1);
    assert_ok(ng_training_resume(r.training, .or_begin = step == 0));
    ck_assert_int_ge(ng_training_at(r.training).step, step);
    train(&r, 1000);
    ck_assert_msg(!ng_failed(), "%s", ng_error_text());
    end(&r);
    assert_same_files(path, undisturbed);
}

/* ---- Left at each step --------------------------------------------------------------------- */

START_TEST(left_at_any_step_it_ends_with_the_same_bits)
{
    leave_undisturbed(_i);
    const char *path = in_folder("left");
    const int batches = (SAMPLES + SIZE - 1) / SIZE;
    for (int64_t left = 0; left < EPOCHS * batches; left++) {
        run r;
        begin(&r, _i, path, 1, 1);
        train(&r, left); /* the work of a batch that was begun is lost */
        end(&r);
        finish(_i, path, left);
        unlink(path);
    }
}

START_TEST(resuming_in_the_same_process_replaces_its_state)
{
    leave_undisturbed(_i);
    const char *path = in_folder("again");
    run r;
    begin(&r, _i, path, 5, 1);
    train(&r, 8);
    assert_ok(ng_training_resume(r.training));
    ck_assert_int_eq(ng_training_at(r.training).step, 5);
    train(&r, 1000);
    ck_assert_msg(!ng_failed(), "%s", ng_error_text());
    end(&r);
    assert_same_files(path, undisturbed);
}

START_TEST(a_stopped_training_saves_and_resumes)
{
    leave_undisturbed(_i);
    const char *path = in_folder("stopped");
    run r;
    begin(&r, _i, path, 1000, 1);
    ng_training_stop(r.training);
    train(&r, 1000);
    ck_assert(ng_training_stopped(r.training));
    ck_assert_int_eq(ng_training_at(r.training).step, 0);
    end(&r);
    for (int64_t step = 3; step < 18; step += 5) {
        begin(&r, _i, path, 1000, 1);
        assert_ok(ng_training_resume(r.training));
        stop_at = step;
        train(&r, 1000);
        ck_assert_int_eq(ng_training_at(r.training).step, step);
        ck_assert(!ng_training_epoch(r.training, EPOCHS));
        end(&r);
    }
    stop_at = -1;
    finish(_i, path, 13);
}

/* ---- Killed -------------------------------------------------------------------------------- */

static int64_t kills_wanted(void)
{
    const char *text = getenv("NORMGRAD_KILLS");
    return text ? atoll(text) : 25;
}

/* Trains in another process, which is killed after `seconds`. Whether it came to its end. */
static bool survives(int optimizer, const char *path, double seconds)
{
    fflush(NULL);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        run r;
        begin(&r, optimizer, path, 1, 3);
        if (ng_training_resume(r.training, .or_begin = true) == NG_OK) train(&r, 1000);
        _exit(ng_failed() ? 1 : 0);
    }
    sleep_for(seconds);
    kill(child, SIGKILL);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
}

START_TEST(killed_at_random_moments_it_ends_with_the_same_bits)
{
    leave_undisturbed(_i);
    const char *path = in_folder("killed");
    ng_rng rng = ng_rng_seeded((uint64_t)time(NULL) + (uint64_t)_i);
    int64_t kills = 0;
    double longest = 0.02;
    while (kills < kills_wanted()) {
        unlink(path);
        while (!survives(_i, path, longest * ng_rng_uniform(&rng))) {
            kills++;
            longest *= 1.01; /* so that the loop ends on a slow machine */
            ng_module *net = make_net();
            ng_load_report report;
            if (access(path, F_OK) == 0)
                assert_ok(ng_module_load(net, path, .partial = true, .verify = true,
                                         .rename = NG_RENAME("module", ""), .report = &report));
            ng_module_free(net);
        }
        longest = fmax(0.01, 0.7 * longest);
        assert_same_files(path, undisturbed);
    }
}

/* ---- The files of the past ----------------------------------------------------------------- */

START_TEST(the_last_files_are_kept_and_no_more)
{
    const char *path = in_folder("state");
    run r;
    begin(&r, OF_adam, path, 4, 3);
    train(&r, 1000); /* saves at 4, 8, 12, 16, and at the end */
    end(&r);
    ck_assert_int_eq(files_named("state"), 3);
    const int64_t steps[] = {18, 16, 12};
    for (int i = 0; i < 3; i++) {
        char name[32] = "state";
        if (i > 0) snprintf(name, sizeof name, "state.%d", i);
        begin(&r, OF_adam, in_folder(name), 4, 3);
        assert_ok(ng_training_resume(r.training));
        ck_assert_int_eq(ng_training_at(r.training).step, steps[i]);
        end(&r);
    }
}

static void save_at(const char *path, int64_t step)
{
    run r;
    begin(&r, OF_adam, path, 1, 3);
    train(&r, step);
    end(&r);
}

/* Each system call fails in turn. The training ends with an error, and the file is whole. */
START_TEST(whatever_fails_leaves_a_file_to_resume_from)
{
    leave_undisturbed(OF_adam);
    const char *path = in_folder("state");
    bool refused = true;
    for (int64_t i = 0; refused; i++) {
        save_at(path, 4);
        run r;
        begin(&r, OF_adam, path, 1, 3);
        assert_ok(ng_training_resume(r.training));
        file_calls_fail_once_after(i, EIO);
        train(&r, 1); /* and saves before the next */
        refused = file_call_refused();
        file_calls_succeed();
        if (!refused) ck_assert(!ng_failed());
        ng_clear_error();
        end(&r);
        ck_assert_int_eq(files_named(".tmp"), 0);
        ck_assert_int_eq(files_named("state.0"), 0);

        finish(OF_adam, path, 4);
        for (int k = 0; k < 4; k++) {
            char name[32];
            snprintf(name, sizeof name, k ? "state.%d" : "state", k);
            unlink(in_folder(name));
        }
    }
}

START_TEST(every_allocation_may_fail)
{
    const char *path = in_folder("state");
    run r;
    begin(&r, OF_adam, path, 1000, 2);
    train(&r, 5);
    for (int64_t n = 0, refused = 1; refused; n++) {
        allocations_fail_after(n);
        refused = out_of_memory(ng_training_save(r.training) != NG_OK);
    }
    end(&r);
    begin(&r, OF_adam, path, 1000, 2);
    for (int64_t n = 0, refused = 1; refused; n++) {
        allocations_fail_after(n);
        refused = out_of_memory(ng_training_resume(r.training) != NG_OK);
        ck_assert_int_eq(ng_training_at(r.training).step, refused ? 0 : 6);
        ck_assert_int_eq(ng_optimizer_steps(r.optimizer), refused ? 0 : 2);
    }
    end(&r);
    ck_assert_int_eq(allocations_live(), 0);
}

/* ---- What does not fit --------------------------------------------------------------------- */

START_TEST(another_training_is_refused_with_the_difference)
{
    const char *path = in_folder("state");
    save_at(path, 4);
    run r;
    begin(&r, OF_adamw, path, 1, 1);
    assert_refused(ng_training_resume(r.training));
    end(&r);

    begin(&r, OF_adam, path, 1, 1);
    int64_t more = 0;
    assert_ok(ng_training_keep_count(r.training, "more", &more));
    assert_refused(ng_training_resume(r.training));
    assert_refused(ng_training_keep_count(r.training, "more", &more));
    assert_refused(ng_training_keep_count(r.training, "z\xe4hlt",
                                          &more)); /* and not only when the training is saved */
    end(&r);

    begin(&r, OF_adam, path, 1, 1);
    ng_training *less =
        ng_training_new(r.optimizer, .tape = r.tape, .data = r.data, .path = path, .seed = 5);
    assert_refused(ng_training_resume(less));
    ng_training_free(less);
    assert_ok(ng_module_to(r.net, NG_F64));
    assert_fails(ng_training_resume(r.training), NG_EDTYPE);
    end(&r);

    begin(&r, OF_adam, path, 1, 1);
    ng_optimizer *other = ng_adam_new(r.net, .lr = 0.01, .beta1 = 0.8);
    ng_training *changed = ng_training_new(other, .tape = r.tape, .data = r.data,
                                           .history = r.history, .path = path, .seed = 5);
    ng_training_keep_number(changed, "loss", &r.loss_sum);
    ng_training_keep_count(changed, "drawn", &r.drawn);
    ng_training_keep_rng(changed, "noise", &r.noise);
    ng_training_keep_tensor(changed, "average", r.average);
    assert_refused(ng_training_resume(changed));
    ck_assert_int_eq(ng_optimizer_steps(other), 0);
    assert_ok(ng_training_resume(changed, .changed = true));
    ck_assert_int_eq(ng_optimizer_steps(other), 2);
    ng_training_free(changed), ng_optimizer_free(other);
    end(&r);

    begin(&r, OF_adam, path, 1, 1);
    assert_ok(ng_module_save(r.net, path)); /* no training's file */
    assert_refused(ng_training_resume(r.training));
    end(&r);

    begin(&r, OF_adam, in_folder("nowhere"), 1, 1);
    assert_fails(ng_training_resume(r.training), NG_EIO);
    assert_ok(ng_training_resume(r.training, .or_begin = true));
    end(&r);
}

/* Also those that no number in JSON is, and in a locale with commas. */
START_TEST(kept_numbers_have_the_same_bits)
{
    const double given[] = {0.1, -0.0, 0x1p-1074, (double)NAN, HUGE_VAL, -HUGE_VAL, 1e300};
    enum { NUMBERS = sizeof given / sizeof given[0] };
    double numbers[NUMBERS];
    int64_t least = INT64_MIN;
    ng_rng rng = ng_rng_seeded(1), before = rng;
    ng_module *net = own(ng_linear_new(1, 1));
    ng_optimizer *sgd = own(ng_sgd_new(net));
    ng_training *training = own(ng_training_new(sgd, .path = in_folder("state")));
    memcpy(numbers, given, sizeof given);
    for (int i = 0; i < NUMBERS; i++) {
        const char name[] = {(char)('a' + i), '"', '\0'};
        assert_ok(ng_training_keep_number(training, name, &numbers[i]));
    }
    assert_ok(ng_training_keep_count(training, "least", &least));
    assert_ok(ng_training_keep_rng(training, "rng", &rng));
    assert_refused(ng_training_keep_count(training, "rng", &least));
    write_commas();
    assert_ok(ng_training_save(training));
    memset(numbers, 0, sizeof numbers);
    least = 0, rng = ng_rng_seeded(2);
    assert_ok(ng_training_resume(training));
    setlocale(LC_NUMERIC, "C");
    ck_assert_mem_eq(numbers, given, sizeof given);
    ck_assert_mem_eq(&rng, &before, sizeof rng);
    ck_assert(least == INT64_MIN);
}

/* `before` saves and resumes. `after`, which differs in one setting, is refused; with .changed it
 * resumes if `may_change`. Frees both. */
static void expect_refused(bool may_change, ng_training *before, ng_training *after)
{
    assert_ok(ng_training_save(before));
    assert_ok(ng_training_resume(before));
    assert_refused(ng_training_resume(after));
    const ng_status status = ng_training_resume(after, .changed = true);
    assert_error(status, may_change ? "" : "ng_training_resume");
    ck_assert_int_eq(status, may_change ? NG_OK : NG_EVALUE);
    ng_training_free(before), ng_training_free(after);
}

/* The same for trainings with these optimizers, which it frees. */
static void expect_compared(bool may_change, ng_optimizer *saved, ng_optimizer *other)
{
    expect_refused(may_change, ng_training_new(saved, .path = in_folder("state")),
                   ng_training_new(other, .path = in_folder("state")));
    ng_optimizer_free(saved), ng_optimizer_free(other);
}

static ng_optimizer *with_group(ng_module *net, const char *pattern, double lr_scale, double decay)
{
    ng_optimizer *sgd = ng_sgd_new(net);
    if (lr_scale >= 0) assert_ok(ng_optimizer_scale_lr(sgd, pattern, lr_scale));
    if (decay >= 0) assert_ok(ng_optimizer_set_decay(sgd, pattern, decay));
    return sgd;
}

START_TEST(every_setting_of_an_optimizer_is_compared)
{
    ng_module *net = own(ng_linear_new(2, 2));
#define SCHEDULED(...) ng_sgd_new(net, .schedule = NG_SCHEDULE(__VA_ARGS__))
#define OPTIMIZER(...)
#define SETTING(name, setting, other, refused)                                                     \
    expect_compared(true, CALLED(ng_##name##_new, net REQUIRED_##name),                            \
                    CALLED(ng_##name##_new, net REQUIRED_##name, .setting = other));
#define FLAG(name, setting) SETTING(name, setting, true, )
#include "support/optimizers.def"
    expect_compared(true, ng_sgd_new(net, .momentum = 0.9), ng_sgd_new(net, .momentum = 0.8));
    expect_compared(true, ng_sgd_new(net, .momentum = 0.9, .dampening = 0.1),
                    ng_sgd_new(net, .momentum = 0.9));
    expect_compared(true, ng_sgd_new(net, .momentum = 0.9),
                    ng_sgd_new(net, .momentum = 0.9, .nesterov = true));
    expect_compared(true, ng_rmsprop_new(net, .momentum = 0.9),
                    ng_rmsprop_new(net, .momentum = 0.8));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_COSINE, .steps = 9),
                    SCHEDULED(.kind = NG_SCHEDULE_LINEAR, .steps = 9));
    expect_compared(true, ng_sgd_new(net), SCHEDULED(.warmup = 1));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_COSINE, .steps = 9),
                    SCHEDULED(.kind = NG_SCHEDULE_COSINE, .steps = 8));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_COSINE, .steps = 9),
                    SCHEDULED(.kind = NG_SCHEDULE_COSINE, .steps = 9, .floor = 0.1));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9),
                    SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 8));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9),
                    SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9, .factor = 0.5));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9),
                    SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9, .factor = NG_ZERO));
    expect_compared(true, SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9, .factor = NG_ZERO),
                    SCHEDULED(.kind = NG_SCHEDULE_STEP, .every = 9));
    expect_compared(true, ng_sgd_new(net, .lr = 0.1), ng_sgd_new(net, .lr = nextafter(0.1, 1)));
    expect_compared(true, with_group(net, "bias", 2, -1), with_group(net, "bias", 3, -1));
    expect_compared(true, ng_sgd_new(net), with_group(net, "bias", 2, 0));
    expect_compared(true, with_group(net, "bias", 0, -1), with_group(net, "bias", 2, -1));
    expect_compared(true, with_group(net, "*", 2, -1), ng_sgd_new(net));
#undef SCHEDULED
    ng_optimizer *projected = ng_sgd_new(net);
    assert_ok(ng_optimizer_set_projection(projected, draw_in, NULL));
    expect_compared(true, projected, ng_sgd_new(net));
}

/* Other state arrays cannot be used, also with .changed. */
START_TEST(a_setting_with_state_of_its_own_cannot_change)
{
    ng_module *net = own(ng_linear_new(2, 2));
    expect_compared(false, ng_sgd_new(net), ng_sgd_new(net, .momentum = 0.9));
    expect_compared(false, ng_sgd_new(net, .momentum = 0.9), ng_sgd_new(net));
    expect_compared(false, ng_adam_new(net), ng_adam_new(net, .amsgrad = true));
    expect_compared(false, ng_rmsprop_new(net, .centered = true),
                    ng_rmsprop_new(net, .momentum = 0.9));
}

START_TEST(every_setting_of_the_order_of_samples_is_compared)
{
    static const uint64_t seeds[] = {6, 0, 5};
    const char *path = in_folder("state");
    ng_module *net = own(make_net());
    ng_optimizer *sgd = own(ng_sgd_new(net));
    ng_tape *tape = own(ng_tape_new());
    for (int i = 0; i < 3; i++) {
        ng_dataset *data = make_data(), *other = make_data();
        if (i == 2) assert_ok(ng_dataset_standardize(other, data));
        expect_refused(true,
                       ng_training_new(sgd, .tape = tape, .data = data, .path = path, .seed = 5),
                       ng_training_new(sgd, .tape = tape, .data = other, .path = path,
                                       .seed = seeds[i], .in_order = i == 1));
        ng_dataset_free(data), ng_dataset_free(other);
    }
}

/* .changed does not allow one layer more or less, even without parameters. */
START_TEST(another_number_of_layers_is_another_network)
{
    ng_module *nets[] = {ng_sequential_new(ng_linear_new(5, 3)),
                         ng_sequential_new(ng_linear_new(5, 3), ng_dropout_new(0.1))};
    for (int i = 0; i < 2; i++) {
        ng_optimizer *saved = ng_sgd_new(nets[i]), *other = ng_sgd_new(nets[1 - i]);
        ng_training *before = ng_training_new(saved, .path = in_folder("state"));
        ng_training *after = ng_training_new(other, .path = in_folder("state"));
        assert_ok(ng_training_save(before));
        assert_refused(ng_training_resume(after));
        assert_fails(ng_training_resume(after, .changed = true), NG_ESHAPE);
        ng_training_free(before), ng_training_free(after);
        ng_optimizer_free(saved), ng_optimizer_free(other);
    }
    ng_module_free(nets[0]), ng_module_free(nets[1]);
}

/* Makes a data set of 0, 1, 2 ... */
static ng_dataset *numbered(int64_t count)
{
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(count, 1));
    for (int64_t i = 0; i < count; i++) ng_set(x, i, (double)i);
    ng_dataset *data = ng_dataset_from(x, NG_NONE);
    ng_tensor_free(x);
    return data;
}

/* Trains `batches` of 4 in the first epoch, then saves. */
static void save_after(ng_training *training, int batches)
{
    ng_batch batch;
    ck_assert(ng_training_epoch(training, 2));
    for (int i = 0; i < batches; i++) ck_assert(ng_training_batch(training, 4, &batch));
    assert_ok(ng_training_save(training));
}

START_TEST(a_training_continues_with_another_number_of_samples)
{
    const char *path = in_folder("state");
    ng_module *net = own(make_net());
    ng_optimizer *sgd = own(ng_sgd_new(net));
    ng_tape *tape = own(ng_tape_new());
    ng_dataset *data = own(numbered(10));
    static const int64_t counts[] = {3, 9, 11, 17};
    for (int k = 0; k < 4; k++) {
        const int64_t count = counts[k];
        ng_training *before = ng_training_new(sgd, .tape = tape, .data = data, .path = path);
        save_after(before, 2);
        ng_training_free(before);
        ng_dataset *other = numbered(count);
        ng_training *after = ng_training_new(sgd, .tape = tape, .data = other, .path = path);
        assert_refused(ng_training_resume(after));
        assert_ok(ng_training_resume(after, .changed = true));
        ng_batch batch;
        int64_t epochs = 0, left = 0, samples = 0;
        while (ng_training_epoch(after, 2)) {
            const bool whole = ng_training_at(after).batch == 0;
            double sum = 0;
            while (ng_training_batch(after, 4, &batch)) {
                (whole ? &samples : &left)[0] += batch.size;
                for (int64_t i = 0; i < batch.size; i++) sum += ng_get(batch.x, i);
            }
            if (whole) assert_close(sum, (double)(count * (count - 1)) / 2, 0);
            epochs++;
        }
        ck_assert_int_eq(epochs, 2);
        ck_assert_int_eq(left, count > 8 ? count - 8 : 0);
        ck_assert_int_eq(samples, count);
        ng_training_free(after), ng_dataset_free(other);
    }
}

/* These networks have the same tensors and other settings. */
START_TEST(every_setting_of_a_layer_is_compared)
{
    ng_group *group = ng_group_alone_new();
#define ATTENTION(...) ng_multi_head_attention_new(8, 2, __VA_ARGS__)
#define RENORM(...) ng_batch_renorm_new(4, __VA_ARGS__)
#define BLOCK(...) ng_transformer_block_new(8, 2, __VA_ARGS__)
#define DEEP(count) BLOCK(.placement = NG_NORM_DEEP, .layers = count)
#define MIX(share) ng_transformer_new(3, .dim = 4, .placement = NG_NORM_MIX, .post_share = share)
#define ADANORM(...) ng_ada_norm_new(4, .scale = 1, __VA_ARGS__)
/* clang-format off */
#define OF(layer, dim, ...) {ng_##layer##_new(dim), ng_##layer##_new(dim, __VA_ARGS__)}
    const struct {
        ng_module *saved, *here;
    } pairs[] = {
        OF(layer_norm, 4, .eps = nextafter(1e-5, 1)),
        {ng_dropout_new(0.1), ng_dropout_new(nextafter(0.1, 1))}, {DEEP(100000), DEEP(100001)},
        {ng_relu_new(), ng_gelu_new()}, {ng_dropout_new(0.1), ng_dropout_new(0.5)},
        {ng_leaky_relu_new(0.1), ng_leaky_relu_new(0.2)},
        {ng_function_new("sin", ng_sin), ng_function_new("cos", ng_cos)},
        OF(layer_norm, 4, .eps = 0.1), OF(layer_norm, 4, .unbiased = true),
        OF(layer_norm, 4, .channels_first = true),
        {ng_linear_new(4, 4), ng_linear_new(4, 4, .init = NG_INIT_XAVIER_NORMAL)},
        {ng_linear_new(4, 4), ng_linear_new(4, 4, .init = NG_INIT_NORMAL, .init_value = 0.1)},
        {ng_embedding_new(4, 4), ng_embedding_new(4, 4, .deviation = 0.5)},
        {ng_multi_head_attention_new(4, 2), ng_multi_head_attention_new(4, 2, .gain = 0.5)},
        OF(feed_forward, 4, .gain = 0.5), OF(rms_norm, 4, .eps = 0.1),
        OF(rms_norm, 4, .partial = 0.5), OF(layer_norm, 4, .unit_offset = true),
        OF(rms_norm, 4, .unit_offset = true), OF(rms_norm, 4, .groups = 2),
        OF(rms_norm, 4, .by_deviation = true), OF(rms_norm, 4, .channels_first = true),
        OF(bhyt, 4, .kappa = 3), OF(seed_norm, 4, .eps = 0.1), OF(poly_norm, 4, .eps = 0.1),
        {ng_evo_norm_new(4, .groups = 2, .kind = NG_EVO_1),
         ng_evo_norm_new(4, .groups = 2, .kind = NG_EVO_2)},
        {ng_instance_norm_new(4, .no_affine = true), ng_instance_norm_new(4, .style = true)},
        {ng_instance_norm_new(4, .no_affine = true, .running_stats = true),
         ng_instance_norm_new(4, .no_affine = true, .running_stats = true, .momentum = 0.3)},
        OF(gated_rms_norm, 4, .groups = 2), OF(gated_rms_norm, 4, .norm_first = true),
        {ng_film_new(4, .condition = 2), ng_film_new(4, .condition = 2, .features_last = true)},
        OF(filter_response_norm, 4, .eps = 0.1), OF(global_response_norm, 4, .eps = 0.1),
        OF(evo_norm, 4, .momentum = 0.3),
        {ng_evo_norm_new(4, .groups = 2), ng_evo_norm_new(4, .groups = 4)},
        OF(l2_norm, 4, .channels_first = true), OF(l2_norm, 4, .scale = 10),
        OF(scale_norm, 4, .length = 3), OF(prelu, 4, .slope = 0.1),
        {ng_embedding_new(4, 4), ng_embedding_new(4, 4, .padded = true)},
        {ng_embedding_new(4, 4, .padded = true),
         ng_embedding_new(4, 4, .padded = true, .padding = 1)},
        OF(weight_norm, ng_linear_new(4, 4), .centered = true),
        OF(weight_standardization, ng_linear_new(4, 4), .eps = 0.1), OF(scale_norm, 4, .eps = 0.1),
        {ng_group_norm_new(2, 4), ng_group_norm_new(4, 4)},
        {ng_group_norm_new(2, 4), ng_group_norm_new(2, 4, .eps = 0.1)},
        OF(instance_norm, 4, .eps = 0.1), OF(detach_norm, 4, .mean_flows = true),
        OF(detach_norm, 4, .deviation_flows = true), OF(batch_norm, 4, .eps = 0.1),
        OF(batch_norm, 4, .momentum = 0.3), OF(batch_norm, 4, .cumulative = true),
        OF(batch_norm, 4, .frozen = true), OF(batch_norm, 4, .group = group),
        OF(batch_norm, 4, .ghost = 2),
        {ng_batch_norm_new(4, .ghost = 2), ng_batch_norm_new(4, .ghost = 4)},
        {RENORM(), RENORM(.eps = 0.1)}, {RENORM(), RENORM(.momentum = 0.3)},
        {RENORM(), RENORM(.r_max = 2)}, {RENORM(), RENORM(.d_max = 2)},
        {RENORM(), RENORM(.warmup = 7)}, {RENORM(), RENORM(.ramp = 7)},
        {RENORM(), RENORM(.group = group)},
        {ng_local_response_norm_new(3), ng_local_response_norm_new(5)},
        OF(local_response_norm, 3, .alpha = 0.5), OF(local_response_norm, 3, .beta = 0.5),
        OF(local_response_norm, 3, .k = 0.5),
        {ADANORM(), ng_ada_norm_new(4, .scale = 2)},
        {ADANORM(), ADANORM(.k = 0.3)}, {ADANORM(), ADANORM(.raw = true)},
        {ADANORM(), ADANORM(.differentiate = true)},
        OF(spectral_norm, ng_linear_new(4, 4), .iterations = 2),
        OF(spectral_norm, ng_linear_new(4, 4), .eps = 0.1),
        {ng_conv2d_new(4, 4, 3), ng_conv2d_new(4, 4, 3, .stride = 2)},
        {ng_conv2d_new(4, 4, 3), ng_conv2d_new(4, 4, 3, .padding = 1)},
        {ng_conv2d_new(4, 4, 3), ng_conv2d_new(4, 4, 3, .dilation = 2)},
        {ng_conv_transpose1d_new(4, 4, 3, .stride = 2),
         ng_conv_transpose1d_new(4, 4, 3, .stride = 2, .output_padding = 1)},
        {ng_max_pool2d_new(2), ng_avg_pool2d_new(2)}, {ng_max_pool2d_new(2), ng_max_pool2d_new(3)},
        {ng_upsample_new(2), ng_upsample_new(3)}, OF(upsample, 2, .mode = NG_LINEAR),
        {ng_upsample_new(2, .mode = NG_LINEAR),
         ng_upsample_new(2, .mode = NG_LINEAR, .align_corners = true)},
        {ATTENTION(), ng_multi_head_attention_new(8, 4)}, {ATTENTION(), ATTENTION(.causal = true)},
        {ATTENTION(), ATTENTION(.dropout = 0.5)}, {ATTENTION(), ATTENTION(.rotary = true)},
        {ATTENTION(.rotary = true), ATTENTION(.rotary = true, .rotary_base = 100)},
        {ATTENTION(.qk_temperature = 2), ATTENTION(.qk_temperature = 3)},
        {ATTENTION(.context = 8), ATTENTION(.context = 8, .dropout = 0.5)},
        OF(feed_forward, 4, .activation = NG_FEED_FORWARD_RELU),
        {BLOCK(), BLOCK(.placement = NG_NORM_POST)}, {BLOCK(.placement = NG_NORM_DEEP), DEEP(2)},
        {BLOCK(.placement = NG_NORM_SCALED), BLOCK(.placement = NG_NORM_SCALED, .layer = 4)},
        {MIX(0.25), MIX(0.3)}, {ng_rnn_new(4, 4), ng_rnn_new(4, 4, .relu = true)},
        {ng_gru_new(4, 4, .layers = 2), ng_gru_new(4, 4, .layers = 2, .dropout = 0.5)}};
/* clang-format on */
#undef OF
#undef ADANORM
#undef ATTENTION
#undef RENORM
#undef BLOCK
#undef MIX
#undef DEEP
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        ng_module *saved = ng_sequential_new(ng_linear_new(4, 4), pairs[i].saved);
        ng_module *here = ng_sequential_new(ng_linear_new(4, 4), pairs[i].here);
        expect_compared(true, ng_sgd_new(saved), ng_sgd_new(here));
        ng_module_free(saved), ng_module_free(here);
    }
    ng_group_free(group);
}

START_TEST(each_epoch_has_an_order_of_its_own)
{
    run r;
    ng_batch batch;
    double order[2][SAMPLES];
    begin(&r, OF_sgd, NULL, 0, 0);
    for (int epoch = 0; epoch < 2; epoch++) {
        int count = 0;
        ck_assert(ng_training_epoch(r.training, 2));
        while (ng_training_batch(r.training, SIZE, &batch))
            for (int64_t i = 0; i < ng_dim(batch.x, 0); i++)
                order[epoch][count++] = ng_get(batch.x, 5 * i);
        ck_assert_int_eq(count, SAMPLES);
    }
    int same = 0;
    for (int i = 0; i < SAMPLES; i++) same += order[0][i] == order[1][i];
    ck_assert_int_lt(same, SAMPLES / 2);
    end(&r);
}

/* Also if .minutes have passed. */
START_TEST(nothing_is_saved_before_a_step_is_done)
{
    ng_module *net = own(ng_linear_new(1, 1));
    ng_optimizer *sgd = own(ng_sgd_new(net));
    ng_training *training = own(ng_training_new(sgd, .path = in_folder("state"), .minutes = 1e-12));
    ck_assert(ng_training_step(training, 2));
    ck_assert_int_eq(files_named("state"), 0);
    ck_assert(ng_training_step(training, 2));
    ck_assert_int_eq(files_named("state"), 1);
}

/* Not after the first ten minutes. */
START_TEST(a_file_that_cannot_be_written_fails_at_once)
{
    ng_module *net = own(ng_linear_new(1, 1));
    ng_optimizer *sgd = own(ng_sgd_new(net));
    const int64_t live = allocations_live();
    assert_fails(ng_training_new(sgd, .path = in_folder("nowhere/state")), NG_EIO);
    assert_fails(ng_training_new(sgd, .path = in_folder(".")), NG_EIO);
    assert_fails(ng_training_new(sgd, .path = "/dev/null"), NG_EIO);
    assert_fails(ng_training_new(sgd, .path = ""), NG_EIO);
    ck_assert_int_eq(allocations_live(), live);
    ng_training_free(ng_training_new(sgd, .path = in_folder("state")));
    ck_assert(!ng_failed());
    ck_assert_int_eq(files_named(""), 0); /* and nothing is left behind */
}

static ng_training *damaged;

static void resume_damaged(const char *path, bool is_cut)
{
    (void)path;
    const ng_status status = ng_training_resume(damaged);
    ck_assert_int_ne(status, NG_OK);
    if (is_cut) ck_assert_int_eq(status, NG_EPARSE);
}

START_TEST(a_damaged_file_is_refused_and_changes_nothing)
{
    run r;
    save_at(in_folder("state"), 4);
    begin(&r, OF_adam, in_folder("state"), 1, 1);
    ng_tensor *weight = ng_copy_new(ng_module_find(r.net, "0.weight"), NG_F32);
    damaged = r.training;
    read_damaged(in_folder("state"), "state", 29, resume_damaged);
    assert_same_bits(weight, ng_module_find(r.net, "0.weight"));
    ck_assert_int_eq(ng_training_at(r.training).step, 0);
    ng_tensor_free(weight), end(&r);
}

START_TEST(the_loop_says_what_is_missing)
{
    run r;
    ng_batch batch;
    begin(&r, OF_sgd, NULL, 0, 0);
    ck_assert(!ng_training_batch(r.training, 4, &batch));
    assert_error(NG_ESTATE, "ng_training_");
    assert_fails(ng_training_save(r.training), NG_ESTATE);
    ck_assert(ng_training_epoch(r.training, 1));
    ck_assert(ng_training_batch(r.training, 4, &batch));
    ck_assert(!ng_training_batch(r.training, 5, &batch));
    assert_error(NG_ESTATE, "ng_training_batch");
    ck_assert(!ng_training_epoch(r.training, 1));
    ck_assert(!ng_failed());
    end(&r);

    ng_module *net = own(ng_linear_new(1, 1));
    ng_optimizer *sgd = own(ng_sgd_new(net));
    ng_training *steps = ng_training_new(sgd);
    int count = 0;
    while (ng_training_step(steps, 7)) count++;
    ck_assert_int_eq(count, 7);
    ck_assert_int_eq(ng_training_at(steps).step, 7);
    ck_assert(!ng_training_epoch(steps, 0));
    ck_assert(ng_training_epoch(steps, 1));
    ck_assert(ng_training_step(steps, 8));
    ck_assert(!ng_training_batch(steps, 4, &batch));
    assert_error(NG_ESTATE, "ng_training_");
    ck_assert_int_eq(ng_training_at(steps).step, 8);
    ck_assert_int_eq(ng_training_at(steps).batch, 0);
    ng_training_free(steps), ng_training_free(NULL);

    ng_dataset *data = make_data();
    assert_refused(ng_training_new(sgd, .data = data));
    assert_refused(ng_training_new(sgd, .minutes = NG_ZERO));
    assert_refused(ng_training_new(sgd, .path = "state", .every = -1));
    assert_refused(ng_training_new(sgd, .every = 7));
    assert_refused(ng_training_new(sgd, .minutes = 1));
    assert_refused(ng_training_new(sgd, .keep = 2));
    assert_refused(ng_training_new(sgd, .seed = 5));
    assert_refused(ng_training_new(sgd, .in_order = true));
    ng_tape *tape = own(ng_tape_new());
    assert_refused(ng_training_new(sgd, .tape = tape, .data = data, .seed = 5, .in_order = true));
    assert_fails(ng_training_new(NULL), NG_ENULL);
    ng_dataset_free(data);
}

START_TEST(a_training_of_steps_saves_at_its_end)
{
    ng_module *net = own(ng_linear_new(1, 1));
    ng_optimizer *sgd = own(ng_sgd_new(net));
    for (int64_t round = 0; round < 3; round++) {
        ng_training *training = ng_training_new(sgd, .path = in_folder("state"), .every = 1000);
        assert_ok(ng_training_resume(training, .or_begin = true));
        ck_assert_int_eq(ng_training_at(training).step, 5 * round);
        while (ng_training_step(training, 5 * round + 5)) continue;
        ck_assert(!ng_failed());
        ng_training_free(training);
    }
}

/* ---- Histories that are read back ---------------------------------------------------------- */

START_TEST(a_history_is_read_back_and_continued)
{
    ng_history *history = own(ng_history_new("what; normgrad and \"more\""));
    ng_history_block(history, "LayerNorm, 1e-5");
    ng_history_log(history, "loss", 0, 2.5);
    ng_history_log(history, "accuracy", 3, 1.0 / 3);
    ng_history_log(history, "loss", -4, (double)NAN);
    ng_history_log(history, "loss", INT64_MAX, -HUGE_VAL);
    ng_history_block(history, "# step");
    ng_history_log(history, "b.c-d_e", 7, 1e-300);
    assert_ok(ng_history_write(history, in_folder("a.dat")));
    ng_history *again = own(ng_history_read(in_folder("a.dat")));
    for (int i = 0; i < 2; i++) {
        assert_ok(ng_history_write(history, in_folder("a.dat")));
        assert_ok(ng_history_write(again, in_folder("b.dat")));
        assert_same_files(in_folder("a.dat"), in_folder("b.dat"));
        ng_history_log(history, "more", 8, 1), ng_history_log(again, "more", 8, 1);
    }
}

static const struct {
    const char *text, *place;
} histories[] = {
    {"", "it.dat: line 0: "},
    {"# what: a\n", "it.dat: line 1: "},
    {"what: a; normgrad 1\n", "it.dat: line 1: "},
    {"# what: a; normgrad 1\n\nstep\n1\n", "it.dat: line 3: "},
    {"# what: a; normgrad 1\n\nsteps a\n1 1\n", "it.dat: line 3: "},
    {"# what: a; normgrad 1\n\nstep a a\n1 1 1\n", "it.dat: line 3: "},
    {"# what: a; normgrad 1\n\nstep a,b\n1 1\n", "it.dat: line 3: "},
    {"# what: a; normgrad 1\n\n#a\nstep a\n1 1\n", "it.dat: line 3: "},
    {"# what: a; normgrad 1\n\n# a\n", "it.dat: line 3: "},
    {"# what: a; normgrad 1\n\nstep a\n1 1\n1 2\n", "it.dat: line 5: "},
    {"# what: a; normgrad 1\n\nstep a\n- 1\n", "it.dat: line 4: "},
    {"# what: a; normgrad 1\n\nstep a\n9223372036854775808 1\n", "it.dat: line 4: "},
    {"# what: a; normgrad 1\n\nstep a\n1\n", "it.dat: line 4: "},
    {"# what: a; normgrad 1\n\nstep a\n1 1 1\n", "it.dat: line 4: "},
    {"# what: a; normgrad 1\n\nstep a\n1 nan\n", "it.dat: line 4: "},
    {"# what: a; normgrad 1\n\nstep a\n1 1e999\n", "it.dat: line 4: "},
    {"# what: a; normgrad 1\n\n# a\nstep a\n1 1\n\n\n# a\nstep a\n1 1\n", "it.dat: line 8: "},
};

START_TEST(what_is_no_history_is_named_by_its_line)
{
    assert_fails(ng_history_read(put_text("it.dat", histories[_i].text)), NG_EPARSE,
                 histories[_i].place);
    assert_fails(ng_history_read(put_file("it.dat", "# what: a\0; normgrad 1\n", 24)), NG_EPARSE);
}

Suite *training_suite(void)
{
    Suite *suite = suite_create("training");
    TCase *tests = add_case(suite, make_test_folder, remove_test_folder);
    add_loops(tests, PROJECTED + 1, left_at_any_step_it_ends_with_the_same_bits);
    add_loops(tests, OPTIMIZERS, resuming_in_the_same_process_replaces_its_state,
              a_stopped_training_saves_and_resumes);
    tests = add_case(suite, make_test_folder, remove_test_folder);
    if (kills_wanted() > 100) tcase_set_timeout(tests, 3600);
    add_tests(tests, the_last_files_are_kept_and_no_more,
              whatever_fails_leaves_a_file_to_resume_from, every_allocation_may_fail,
              another_training_is_refused_with_the_difference, kept_numbers_have_the_same_bits,
              every_setting_of_an_optimizer_is_compared,
              a_setting_with_state_of_its_own_cannot_change,
              every_setting_of_the_order_of_samples_is_compared,
              another_number_of_layers_is_another_network,
              a_training_continues_with_another_number_of_samples,
              every_setting_of_a_layer_is_compared, each_epoch_has_an_order_of_its_own,
              nothing_is_saved_before_a_step_is_done, a_file_that_cannot_be_written_fails_at_once,
              a_damaged_file_is_refused_and_changes_nothing, the_loop_says_what_is_missing,
              a_training_of_steps_saves_at_its_end, a_history_is_read_back_and_continued);
    add_loops(tests, OPTIMIZERS, killed_at_random_moments_it_ends_with_the_same_bits);
    add_loops(tests, sizeof histories / sizeof histories[0],
              what_is_no_history_is_named_by_its_line);
    return suite;
}
