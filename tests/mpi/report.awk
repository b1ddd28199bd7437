# The table of what tests/mpi/bench.c has measured, and what follows from it. Where the processor has
# other work, its time for this (busy) tells more than the clock's.
BEGIN { FS = "\t" }
NR == 1 {
    printf "%-34s %9s %9s %9s %9s %10s\n", "", "least ms", "median ms", "busy ms", "messages", "bytes"
    next
}
{
    least[$1] = $2; median[$1] = $3; busy[$1] = $4
    printf "%-34s %9.4g %9.4g %9.4g %9d %10d\n", $1, $2, $3, $4, $5, $6
}
function throughput(what, samples) {
    printf "%s: %.2f times the throughput of one by the clock, %.2f by processor time\n", what,
        samples / 512 * least["one rank"] / least[what], samples / 512 * busy["one rank"] / busy[what]
}
# What the step takes beyond that of the same samples without sums, of what the sums take alone.
function hidden(what, step, sums,   shown) {
    shown = least[step] - least["half the batch, apart"]
    printf "%s: sums of %.3g ms, of which the step shows %.3g: %.0f %% are hidden\n", what,
        least[sums], shown, 100 * (1 - shown / least[sums])
}
END {
    half = "half the batch, apart"
    print ""
    throughput("two ranks, tree, 1 MB", 512); throughput("two ranks, fast, 1 MB", 512)
    throughput("two ranks, tree, 512 samples each", 1024)
    printf "sums alone, tree %.3g ms, fast %.3g; a bare MPI_Allreduce of the same bytes %.3g\n",
        least["sums alone, tree"], least["sums alone, fast"], least["MPI_Allreduce of the same bytes"]
    bare = busy[half] + least["MPI_Allreduce of the same bytes"]
    printf "half the batch and then that: %.4g ms; tree %+.1f %%, fast %+.1f %% (processor time)\n", bare,
        100 * (busy["two ranks, tree, 1 MB"] / bare - 1), 100 * (busy["two ranks, fast, 1 MB"] / bare - 1)
    hidden("shared memory, tree", "two ranks, tree, 1 MB", "sums alone, tree")
    hidden("shared memory, fast", "two ranks, fast, 1 MB", "sums alone, fast")
    hidden("100 Gbit/s, 2 us", "100 Gbit/s, 2 us: tree", "100 Gbit/s, 2 us: sums alone")
    hidden("10 Gbit/s, 20 us", "10 Gbit/s, 20 us: tree", "10 Gbit/s, 20 us: sums alone")
    extra = busy["BatchNorm, synchronized"] - busy["BatchNorm, own statistics"]
    printf "synchronized BatchNorm, two layers: %.3g ms more a step (%.1f %%, processor time)\n", extra,
        100 * extra / busy["BatchNorm, own statistics"]
}
