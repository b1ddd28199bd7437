/* Detached values: constants for gradients, remembered and replayed for the checker. */
#include "tape/replay.h"
#include "core/error.h"
#include "tape/tape.h"

void ng_replay_free(ng_replay *replay)
{
    for (int64_t i = 0; i < replay->count; i++) ng_tensor_destroy(replay->detached[i].value);
    ng_free(replay->detached);
    replay->detached = NULL;
    replay->count = replay->next = 0;
}

void ng_replay_restart(ng_tape *tape)
{
    tape->replay.next = 0;
    if (tape->replay.mode != NG_TAPE_LIVE) tape->rng = tape->seeded;
}

void ng_tape_set_mode(ng_tape *tape, ng_tape_mode mode)
{
    if (!tape) return;
    if (mode == NG_TAPE_REMEMBER) ng_replay_free(&tape->replay);
    tape->replay.mode = mode;
    tape->replay.next = 0;
    tape->rng = tape->seeded;
}

bool ng_tape_is_live(const ng_tape *tape) { return tape && tape->replay.mode == NG_TAPE_LIVE; }

ng_detached *ng_tape_detached(const ng_tape *tape, int64_t number)
{
    return number < tape->replay.count ? &tape->replay.detached[number] : NULL;
}

static bool replay_remember(ng_replay *replay, const char *place, const ng_detach_options *options)
{
    const ng_tensor *x = options->x;
    ng_detached *list =
        ng_grow("ng_detach", replay->detached, replay->count, replay->count + 1, sizeof *list);
    if (!list) return false;
    replay->detached = list;
    list[replay->count] = (ng_detached){.value = ng_copy_new(x, x->dtype),
                                        .op = x->node ? x->node->op->name : NULL,
                                        .place = place,
                                        .by_definition = options->by_definition};
    if (!list[replay->count].value) return false;
    replay->next = ++replay->count;
    return true;
}

static ng_tensor *replay_value(ng_tape *tape, ng_tensor *x)
{
    ng_replay *replay = &tape->replay;
    const ng_detached *kept = ng_tape_detached(tape, replay->next);
    if (!kept || kept->value->dtype != x->dtype || !ng_shape_equal(kept->value->shape, x->shape)) {
        ng_fail(NG_ESTATE, "ng_detach: call %lld of this run has no counterpart in the first run",
                (long long)replay->next + 1);
        return NULL;
    }
    replay->next++;
    return kept->moves ? x : kept->value;
}

static ng_tensor *replay_detach(const char *function, ng_tape *tape, const char *place,
                                ng_detach_options options)
{
    ng_tensor *x = options.x;
    ng_replay *replay = &tape->replay;
    tape->function = function;
    if (!ng_usable(function, "the tensor", 0, tape, x)) return NULL;
    if (replay->mode == NG_TAPE_REMEMBER && !replay_remember(replay, place, &options)) return NULL;
    if (replay->mode == NG_TAPE_REPLAY) x = replay_value(tape, x);
    return x ? ng_result_view(tape, x, x->shape) : NULL;
}

ng_tensor *ng_detach_with(ng_tape *tape, const char *place, ng_detach_options options)
{
    if (!ng_all_given("ng_detach", tape, 1, &options.x)) return NULL;
    if (ng_is_none(options.x)) return options.x;
    return replay_detach("ng_detach", tape, place, options);
}

/* Its gradient is made with it, of the tape's memory: one that a backward pass makes is the leaf's
 * to free, and nobody frees this leaf. */
ng_tensor *ng_variable_with(ng_tape *tape, const char *place, ng_detach_options options)
{
    static const char function[] = "ng_variable";
    if (!ng_accepts(function, tape, 1, &options.x)) return NULL;
    ng_tensor *y = replay_detach(function, tape, place, options);
    ng_leaf *leaf = y ? ng_tape_memory(tape, sizeof *leaf) : NULL;
    ng_tensor *grad = leaf ? ng_result_like(tape, y) : NULL;
    if (!grad) return NULL;
    grad->module_owned = true;
    *leaf = (ng_leaf){.grad = grad};
    y->leaf = leaf;
    y->requires_grad = true;
    return y;
}
