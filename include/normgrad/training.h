/* A training that can be stopped or killed, and resumed as if nothing had happened. */
#ifndef NORMGRAD_TRAINING_H
#define NORMGRAD_TRAINING_H

#include <normgrad/data.h>
#include <normgrad/history.h>
#include <normgrad/optim.h>

NG_BEGIN_C

/* A training counts epochs, batches and steps, and saves to one file all that the rest of the
 * training depends on. A process that begins as the first one did and resumes from the file ends
 * with the same bits as a training that was never interrupted:
 *
 *     ng_training *run = ng_training_new(adam, .tape = tape, .data = train, .path = "x.state");
 *     if (ng_training_resume(run, .or_begin = true)) ...
 *     while (ng_training_epoch(run, 30))
 *         while (ng_training_batch(run, 64, &batch)) {
 *             ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
 *             if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
 *             ng_tape_reset(tape);
 *         }
 *
 * The file is in the safetensors format (module.h). It holds the module's parameters, buffers and
 * modes (training, frozen); the optimizer's state, steps and rate, and gradients that wait for a
 * step; the stream of dropout; the history; the position; the settings as text; and what you keep
 * with ng_training_keep_... Whatever else you draw, sum or count is lost. */
typedef struct ng_training ng_training;

/* Returns a training of yours. All that it is given must outlive it.
 *
 * tape      its stream of dropout is saved; needed with .data
 * data      handed out by ng_training_batch, in each epoch in the order that
 *           ng_dataset_shuffle(data, seed + epoch) draws; the samples must not change any more
 * in_order  leaves the order to you; then there is no .seed. It is not in the file
 * history   saved whole, as ng_history_write writes it
 * path      of the file. Without it nothing is saved, and .every, .minutes and .keep are NG_EVALUE
 * every, minutes   save after so many steps, or so much time; default every 10 minutes. The end is
 *           saved in any case
 * keep      how many files there are at most: path, then path.1, the one before, and so on; default
 *           1. With more, path.0 is used while it saves */
typedef struct {
    ng_tape *tape;
    ng_dataset *data;
    ng_history *history;
    const char *path;
    int64_t every;
    double minutes;
    int64_t keep;
    uint64_t seed;
    bool in_order;
    ng_optimizer *optimizer; /* and its module */
} ng_training_new_options;
#define ng_training_new(...)                                                                       \
    ng_training_new_with(NG_NAMED(ng_training_new_options, optimizer, __VA_ARGS__))
NG_API ng_training *ng_training_new_with(ng_training_new_options options);

/* Saves and resumes a number, count, generator or tensor of yours with the rest, under a name in
 * UTF-8. It must outlive the training; a tensor is yours or a module's. NG_EVALUE if the name is
 * taken. */
NG_API ng_status ng_training_keep_number(ng_training *training, const char *name, double *number);
NG_API ng_status ng_training_keep_count(ng_training *training, const char *name, int64_t *count);
NG_API ng_status ng_training_keep_rng(ng_training *training, const char *name, ng_rng *rng);
NG_API ng_status ng_training_keep_tensor(ng_training *training, const char *name, ng_tensor *x);

/* Reads the file into the training and all that it was given. After an error nothing has changed.
 * NG_EPARSE for a file that is damaged or cut short. The file must be of this network, optimizer,
 * data set and list of kept things, and saved with the same settings: of the optimizer and its
 * groups, of each layer (as ng_summary shows them), .seed and .in_order. They are compared as text;
 * the error shows the first line that differs. Files of version 0.2 and older are an error.
 *
 * or_begin  without a file the training begins, and NG_OK is returned
 * changed   continues with the settings and samples of this program, however many samples there
 *           are; an epoch that was begun continues at its next batch. The tensors and the
 *           optimizer's state arrays (momentum, centered) must still be the same */
typedef struct {
    bool or_begin, changed;
    ng_training *training;
} ng_training_resume_options;
#define ng_training_resume(...)                                                                    \
    ng_training_resume_with(NG_NAMED(ng_training_resume_options, training, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_training_resume_with(ng_training_resume_options options);

/* Begins the next epoch, or continues the one that was interrupted. False once `epochs` are done,
 * after ng_training_stop, and if a failure is on record. A sum over an epoch that you keep with
 * ng_training_keep_number starts at 0 only in a new epoch, where ng_training_at(run).batch is 0. */
NG_API bool ng_training_epoch(ng_training *training, int64_t epochs);

/* Counts the last batch as done, saves if it is time, and copies the next batch to the tape as
 * ng_dataset_batch does. False at the end of the epoch, after ng_training_stop, and if a failure is
 * on record. All batches of an epoch have one size; else NG_ESTATE. */
#define ng_training_batch(training, count, ...)                                                    \
    ng_training_batch_with(training, count, NG_NAMED(ng_dataset_batch_options, batch, __VA_ARGS__))
NG_API bool ng_training_batch_with(ng_training *training, int64_t size,
                                   ng_dataset_batch_options options);

/* For a training without a data set: counts the last step as done, saves if it is time, and begins
 * the next one. False once `steps` are done, and as above.
 *     while (ng_training_step(run, 2000)) { ... } */
NG_API bool ng_training_step(ng_training *training, int64_t steps);

/* Makes the next call of one of these three save and return false. May be called by a signal's
 * handler. ng_training_stopped returns whether it was called. */
NG_API void ng_training_stop(ng_training *training);
NG_API bool ng_training_stopped(const ng_training *training);

/* Returns how far the training is; -1 in each field for NULL. */
typedef struct {
    int64_t epoch; /* the present one, from 0 */
    int64_t batch; /* how many of it are done */
    int64_t step;  /* how many are done in all epochs */
} ng_position;
NG_API ng_position ng_training_at(const ng_training *training);

/* Saves now; a step or batch that was begun counts as done. NG_ESTATE without a path. */
NG_API NG_MUST_CHECK ng_status ng_training_save(ng_training *training);

NG_API void ng_training_free(ng_training *training); /* takes NULL */

NG_END_C

#endif
