/* The state of a training. */
#ifndef NG_IO_TRAINING_H
#define NG_IO_TRAINING_H

#include "io/file.h"
#include "io/safetensors.h"
#include <normgrad/training.h>
#include <signal.h>

struct ng_training {
    ng_training_new_options with;
    char *path; /* a copy, or NULL */
    ng_position at;
    uint64_t samples; /* digest of the data set when the training was made */
    int64_t size;     /* of this epoch's batches; 0 before the first batch */
    bool in_epoch;    /* an epoch was begun and the next one was not */
    bool resumed;     /* in an epoch, and ng_training_epoch was not called since */
    bool working;     /* a step was begun that is not counted yet */
    bool over;        /* was stopped, and has saved */
    int64_t saved_step;
    double saved_time; /* seconds */
    volatile sig_atomic_t stop;
    ng_stored_list kept; /* numbers, counts, generators, tensors of the user: "kept.loss" */
};

/* Writes the file and those before it. */
ng_status ng_training_write(const char *function, ng_training *self);

/* Prints the settings of a training, a line each. */
void ng_training_print_settings(const ng_training *self, ng_text *text);

/* Whether the saved settings are this program's or, with `changed`, their first lines are the same.
 * The error shows the first line that differs. */
bool ng_training_same_settings(ng_origin origin, const char *saved, const char *own, bool changed);

/* Returns a digest of the samples as they are now. */
uint64_t ng_training_digest_of(const ng_dataset *data);

/* Resumes from the file; after an error nothing has changed. */
bool ng_training_read(const char *function, ng_training *self, bool changed);

#endif
