/* A training that can be stopped or killed, and resumed as if nothing had happened.
 *
 *     ng_training *run = ng_training_new(adam, .tape = tape, .data = train, .path = "x.state");
 *     if (ng_training_resume(run, .or_begin = true)) fprintf(stderr, "%s\n", ng_error_text());
 *     while (ng_training_epoch(run, 30))
 *         while (ng_training_batch(run, 64, &batch)) {
 *             ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
 *             if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
 *             ng_tape_reset(tape);
 *         }
 *     ng_training_free(run);
 *
 *     ng_training_new(optimizer)               begins a training
 *     ng_training_resume(training)             continues from its file
 *     ng_training_epoch(training, epochs)      the next epoch
 *     ng_training_batch(training, n, &batch)   the next batch of n samples
 *     ng_training_step(training, steps)        the next step, without a data set
 *     ng_training_keep_number(training, name, &number)   saves a variable of yours too
 *     ng_training_at(training)                 how far it is
 *     ng_training_stop(training)               saves and ends the loops
 *     ng_training_save(training)               saves now
 *
 * A training saves to one file all that the rest of the training depends on. If a process is
 * killed, and another begins in the same way and resumes from the file, it ends with the same bits.
 *
 * The file is in the safetensors format (module.h). It holds the module's parameters, buffers and
 * modes (training, frozen); the optimizer's state, steps and rate, and gradients that wait for a
 * step; the tape's generator; the history; the position in the data; the settings as text; and what
 * you keep with ng_training_keep_... Other variables of your program are lost. */
#ifndef NORMGRAD_TRAINING_H
#define NORMGRAD_TRAINING_H

#include <normgrad/data.h>
#include <normgrad/history.h>
#include <normgrad/optim.h>

NG_BEGIN_C

/* Counts epochs, batches and steps, and saves. */
typedef struct ng_training ng_training;

/* Returns a training of yours. All that it is given must outlive it. Without a path nothing is
 * saved, and .every, .minutes and .keep are NG_EVALUE. The end is saved in any case. */
typedef struct {
    ng_tape *tape;       /* its generator is saved; needed with .data */
    ng_dataset *data;    /* its batches are handed out by ng_training_batch, in each epoch in the
                            order of ng_dataset_shuffle(data, seed + epoch). The samples must not
                            change any more */
    ng_history *history; /* saved whole, as ng_history_write writes it */
    const char *path;    /* of the file; NG_EIO at once if it cannot be written there */
    int64_t every;       /* save after so many steps */
    double minutes;      /* save after so many minutes; default 10, unless .every is set */
    int64_t keep;        /* how many files there are at most: path, the one before is path.1, and so
                            on; default 1. With more, path.0 is used while saving */
    uint64_t seed;       /* of the order of samples */
    bool in_order;       /* do not shuffle; not with .seed. The order is not in the file */
    ng_optimizer *optimizer; /* and its module */
} ng_training_new_options;
#define ng_training_new(...)                                                                       \
    ng_training_new_with(NG_NAMED(ng_training_new_options, optimizer, __VA_ARGS__))
NG_API ng_training *ng_training_new_with(ng_training_new_options options);

/* Saves and resumes a variable of yours with the rest: a number, a count, a generator or a tensor,
 * under a name in UTF-8. It must outlive the training. NG_EVALUE if the name is taken. */
NG_API ng_status ng_training_keep_number(ng_training *training, const char *name, double *number);
NG_API ng_status ng_training_keep_count(ng_training *training, const char *name, int64_t *count);
NG_API ng_status ng_training_keep_rng(ng_training *training, const char *name, ng_rng *rng);
NG_API ng_status ng_training_keep_tensor(ng_training *training, const char *name, ng_tensor *x);

/* Reads the file into the training and all that it was given. After an error nothing has changed.
 *
 * The file must be of this network, optimizer, data set and list of kept variables, with the same
 * settings: those of the optimizer and its groups, of each layer (as ng_summary shows them), .seed
 * and .in_order. They are compared as text, and the error shows the first line that differs. A file
 * that is damaged or cut short is NG_EPARSE; files of version 0.4 and older are an error. */
typedef struct {
    bool or_begin; /* if there is no file, begin, and return NG_OK */
    bool changed; /* allow other settings and another number of samples: this program's are used. An
                     epoch that was begun continues at its next batch. Names and shapes of tensors,
                     and which state the optimizer has, must still agree */
    ng_training *training;
} ng_training_resume_options;
#define ng_training_resume(...)                                                                    \
    ng_training_resume_with(NG_NAMED(ng_training_resume_options, training, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_training_resume_with(ng_training_resume_options options);

/* Begins the next epoch, or continues the one that was interrupted. False once `epochs` are done,
 * after ng_training_stop, and if a failure is on record.
 *
 * If you sum over an epoch, and keep the sum with ng_training_keep_number, set it to 0 only where
 * ng_training_at(run).batch is 0: otherwise the epoch is being continued. */
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

/* Makes the next call of ng_training_epoch, ng_training_batch or ng_training_step save and return
 * false. A signal handler may call it. ng_training_stopped returns whether it was called. */
NG_API void ng_training_stop(ng_training *training);
NG_API bool ng_training_stopped(const ng_training *training);

/* Returns how far the training is; -1 in each field for NULL. */
typedef struct {
    int64_t epoch; /* the present epoch, from 0 */
    int64_t batch; /* how many of its batches are done */
    int64_t step;  /* how many steps are done in all epochs */
} ng_position;
NG_API ng_position ng_training_at(const ng_training *training);

/* Saves now; a step or batch that was begun counts as done. NG_ESTATE without a path. */
NG_API NG_MUST_CHECK ng_status ng_training_save(ng_training *training);

NG_API void ng_training_free(ng_training *training); /* takes NULL */

NG_END_C

#endif
