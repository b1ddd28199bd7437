#include "fixture.h"
#include "support.h"

ng_tape *tape;
static ng_tensor *owned[256];
static int n_owned;

void set_up(void)
{
    tape = ng_tape_new();
    n_owned = 0;
}

void tear_down(void)
{
    ng_tape_free(tape);
    while (n_owned > 0) ng_tensor_free(owned[--n_owned]);
}

ng_tensor *own(ng_tensor *x)
{
    assert_ok(x);
    ck_assert_int_lt(n_owned, (int)(sizeof owned / sizeof owned[0]));
    return owned[n_owned++] = x;
}
