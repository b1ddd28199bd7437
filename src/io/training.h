/* A training, for the loop that counts its steps and the file that keeps its state. */
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
    uint64_t samples; /* digest of the data set, as it was at first */
    int64_t size;     /* of the batches of this epoch; 0 before the first */
    bool in_epoch;    /* between its begin and the next one's */
    bool resumed;     /* in an epoch that ng_training_epoch has not gone on with yet */
    bool working;     /* a step was begun that is not counted yet */
    bool over;        /* was stopped, and has saved */
    int64_t saved_step;
    double saved_time; /* seconds */
    volatile sig_atomic_t stop;
    ng_stored_list kept; /* numbers, counts, generators and tensors of the user: "number.loss" */
};

/* Writes the file and those before it. */
ng_status ng_training_write(const char *function, ng_training *self);

/* Prints the settings of a training, a line each. Whether those that were saved are this program's
 * (or, with `changed`, of the same optimizer); else an error with the first line that differs. */
void ng_training_print_settings(const ng_training *self, ng_text *text);
bool ng_training_same_settings(ng_origin origin, const char *saved, const char *own, bool changed);

/* A digest of the samples as they are now. */
uint64_t ng_training_digest_of(const ng_dataset *data);

/* Resumes from the file; after an error nothing has changed. */
bool ng_training_read(const char *function, ng_training *self, bool changed);

#endif
