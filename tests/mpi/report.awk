# The table of what tests/mpi/bench.c has measured.
BEGIN { FS = "\t" }
NR == 1 {
    printf "%-34s %9s %9s %9s\n", "", "least ms", "median ms", "busy ms"
    next
}
{
    least[$1] = $2; busy[$1] = $4
    printf "%-34s %9.4g %9.4g %9.4g\n", $1, $2, $3, $4
}
function throughput(what, times, alone) {
    printf "%s: %.2f times the throughput of one by the clock, %.2f by processor time\n", what,
        times * least[alone] / least[what], times * busy[alone] / busy[what]
}
END {
    print ""
    throughput("two ranks", 1, "one rank"); throughput("two ranks, 512 samples each", 2, "one rank")
    throughput("transformer, two ranks", 1, "transformer, one rank")
    extra = busy["BatchNorm, synchronized"] - busy["BatchNorm, own statistics"]
    printf "synchronized BatchNorm, two layers: %.3g ms more a step (processor time)\n", extra
}
