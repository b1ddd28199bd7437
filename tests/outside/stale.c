/* Reads a tensor that is gone, as its argument says: after the reset of its tape, or after it was
 * freed. With the debug library that ends the program, and names the line. */
#include <normgrad.h>
#include <string.h>

int main(int argc, char **argv)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2));
    ng_tensor *y = ng_sum(tape, x);
    if (argc == 2 && strcmp(argv[1], "reset") == 0) {
        ng_tape_reset(tape);
        return ng_item(y) != 2; /* this line */
    }
    ng_tensor_free(x);
    return ng_get(x, 0) != 1; /* this line */
}
