/* Two processes outside the tree add their ranks up. */
#include <normgrad.h>
#include <normgrad/mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (ng_mpi_begin(&argc, &argv)) return 1;
    ng_group *group = ng_mpi_group_new(MPI_COMM_WORLD);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_full_new(NG_F64, NG_SCALAR, ng_group_rank(group) + 1);
    const double sum = ng_item(ng_group_sum(tape, x, group));
    const int size = ng_group_size(group);
    ng_tensor_free(x), ng_tape_free(tape), ng_group_free(group);
    MPI_Finalize();
    if (ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
    return ng_failed() || size != 2 || sum != 3;
}
