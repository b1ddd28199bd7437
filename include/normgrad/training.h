/* A training that can be stopped, killed, and taken up again as if nothing had happened. */
#ifndef NORMGRAD_TRAINING_H
#define NORMGRAD_TRAINING_H

#include <normgrad/data.h>
#include <normgrad/history.h>
#include <normgrad/optim.h>

NG_BEGIN_C

/* It counts epochs, batches and steps, and now and then writes all that the rest of the training
 * depends on to one file. A process that begins as the first one did, and takes the file up, ends
 * with the same bits as if there had been one process only, whenever the first one was killed:
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
 * The file is in the safetensors format (nn.h) and holds: the module's parameters, buffers, modes
 * (training, frozen); the optimizer's state, steps and rate, and gradients that still wait for a
 * step; the stream of dropout; the order of the samples; the history; the position; and what is
 * kept for you. What you draw, sum or count besides has to be kept too: ng_training_keep_... */
typedef struct ng_training ng_training;

/* All that it is given must outlive it; what it does not get it does not keep.
 *
 * tape      its stream of dropout
 * data      to be handed out by ng_training_batch, in an order that each epoch draws of seed and
 *           epoch, as ng_dataset_shuffle(data, seed + epoch) does; a file is of these samples,
 *           as they are now
 * in_order  leaves the order as it is, without .seed
 * history   all of it, as ng_history_write writes it
 * path      of the file; without one nothing is saved, and the next three count for nothing, which
 *           is NG_EVALUE
 * every, minutes   saves after so many steps, or so much time; default every 10 minutes. Saves at
 *           the end in any case
 * keep      how many files there are at most: path, then path.1, the one before, and so on;
 *           default 1. With more, path.0 is the training's too, while it saves */
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

/* Numbers, generators and tensors of yours that are saved and taken up with the rest, under a name
 * in UTF-8 that no other has. They must outlive the training; a tensor is yours or a module's. */
NG_API ng_status ng_training_keep_number(ng_training *training, const char *name, double *number);
NG_API ng_status ng_training_keep_count(ng_training *training, const char *name, int64_t *count);
NG_API ng_status ng_training_keep_rng(ng_training *training, const char *name, ng_rng *rng);
NG_API ng_status ng_training_keep_tensor(ng_training *training, const char *name, ng_tensor *x);

/* Takes up what the file holds. A file that is not whole is NG_EPARSE; one of another network,
 * optimizer, data set or list of kept things is an error that names the difference, and so is one
 * where a setting was another: of the optimizer (rate, schedule, betas, groups...), of a layer (as
 * ng_summary shows it), or of the training (.seed, .in_order). After any error nothing has changed.
 *
 * or_begin  where there is no file, NG_OK, and the training begins
 * changed   goes on with the settings, and the samples, of this program, however many these are;
 *           an epoch that was begun goes on at its next batch. A momentum or .centered that one of
 *           them has and the other has not is still an error, for the state is another's */
typedef struct {
    bool or_begin, changed;
    ng_training *training;
} ng_training_resume_options;
#define ng_training_resume(...)                                                                    \
    ng_training_resume_with(NG_NAMED(ng_training_resume_options, training, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_training_resume_with(ng_training_resume_options options);

/* Begins the next epoch; in a training that was taken up, goes on in the one it was in. False once
 * `epochs` are done, after ng_training_stop, and where a failure is on record. What you set to 0 at
 * the begin of an epoch and keep, set to 0 only where ng_training_at(run).batch is 0. */
NG_API bool ng_training_epoch(ng_training *training, int64_t epochs);

/* The work of the last batch is done, and is saved if it is time; copies the next one to the tape
 * as ng_dataset_batch does. False at the end of the epoch, and as above. All batches of an epoch
 * are asked for with one size. */
#define ng_training_batch(training, count, ...)                                                    \
    ng_training_batch_with(training, count, NG_NAMED(ng_dataset_batch_options, batch, __VA_ARGS__))
NG_API bool ng_training_batch_with(ng_training *training, int64_t size,
                                   ng_dataset_batch_options options);

/* For a training without a data set: the work of the last step is done, and is saved if it is time;
 * begins the next one. False once `steps` are done, and as above.
 *     while (ng_training_step(run, 2000)) { ... } */
NG_API bool ng_training_step(ng_training *training, int64_t steps);

/* The next call of one of these three saves what is done and returns false. May be called by a
 * signal's handler. ng_training_stopped tells whether it was called. */
NG_API void ng_training_stop(ng_training *training);
NG_API bool ng_training_stopped(const ng_training *training);

/* How far it is. */
typedef struct {
    int64_t epoch; /* the one at work, from 0 */
    int64_t batch; /* done of it */
    int64_t step;  /* done in all epochs */
} ng_position;
NG_API ng_position ng_training_at(const ng_training *training);

/* Saves now, as what is done by the last step or batch that was begun. NG_ESTATE without a path. */
NG_API NG_MUST_CHECK ng_status ng_training_save(ng_training *training);

NG_API void ng_training_free(ng_training *training); /* takes NULL */

NG_END_C

#endif
