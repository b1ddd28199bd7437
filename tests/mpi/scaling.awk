# On paper: a step's time on 1 to 1,024 ranks, from what tests/mpi/bench.c has measured and a network
# that is stated. Of 784-1024-1024-10, a bucket is ready when its layer's share of the sweep's products
# is done; its sum begins when it is ready and the one before it has ended. With n ranks and m bytes
#
#     tree  frames go log2 n steps, halves 2 log2 n: 3 log2 n latencies, 2 (n - 1) / n m bytes
#     ring  frames go log2 n steps, parts 2 (n - 1): the same bytes
#
# and a step on n ranks takes
#
#     max(forward and sweep, end of the last sum) + optimizer + 2 (n - 1) / n overhead
#
# where the overhead, of copies and additions, is what two ranks here take over one with the same
# samples. With 512 samples a rank ("more") the efficiency is that time for one rank over this; with
# 512 samples in all ("same") it is that over n times this.
BEGIN { FS = "\t" }
NR > 1 {
    busy[$1] = $4; forward[$1] = $7; sweep[$1] = $8; optimizer[$1] = $9
}
function name(batch) { return batch == 512 ? "one rank" : "one rank, batch " batch }
function log2(n,   k) { while (n > 1) { n /= 2; k++ } return k }
function steps(way, n) { return way == "tree" ? 3 * log2(n) : log2(n) + 2 * (n - 1) }
function sum_ms(way, n, m, gbit, us) {
    return n == 1 ? 0 : steps(way, n) * us / 1e3 + 2 * (n - 1) / n * m / (gbit * 1e9 / 8) * 1e3
}
function step_ms(way, n, batch, gbit, us,   b, end, ready, done) {
    b = name(batch)
    end = 0
    for (k = 1; k <= 4; k++) {
        ready = forward[b] + share[k] * sweep[b]
        end = (ready > end ? ready : end) + sum_ms(way, n, size[k], gbit, us)
    }
    done = forward[b] + sweep[b]
    return (end > done ? end : done) + optimizer[b] + 2 * (n - 1) / n * overhead
}
END {
    # The last layer with the bias before it; its weights; the first layer's bias, and weights.
    size[1] = 4 * (10 * 1024 + 10 + 1024); size[2] = 4 * 1024 * 1024
    size[3] = 4 * 1024; size[4] = 4 * 784 * 1024
    all = 2 * 10 + 2 * 1024 + 784
    share[1] = 2 * 10 / all; share[2] = (2 * 10 + 2 * 1024) / all; share[3] = share[4] = 1
    overhead = busy["two ranks, tree, 1 MB"] - busy["half the batch, apart"]
    if (overhead < 0) overhead = 0
    what = sprintf("784-1024-1024-10, 7.5 MB of gradients, buckets of 1 MB; one rank takes %.1f ms for 512 samples; overhead %.1f ms; %s",
        busy["one rank"], overhead, seen)
    if (out) printf "# what: %s\n", what > out
    print ""
    print "on paper, the most ranks with an efficiency of 80 % or more:"
    split("10 10 100 100", rate, " "); split("20 2 20 2", delay, " ")
    for (net = 1; net <= 4; net++)
        for (w = 1; w <= 2; w++) {
            way = w == 1 ? "tree" : "ring"
            for (kind = 1; kind <= 2; kind++) {
                if (out) printf "\n\n# %d Gbit/s, %d us: %s, %s\nranks step_ms efficiency\n", rate[net],
                    delay[net], way, kind == 1 ? "more" : "same" >> out
                last = 0
                for (n = 1; n <= (kind == 1 ? 1024 : 512); n *= 2) {
                    batch = kind == 1 ? 512 : 512 / n
                    t = step_ms(way, n, batch, rate[net], delay[net])
                    one = step_ms(way, 1, 512, rate[net], delay[net])
                    e = 100 * one / t / (kind == 1 ? 1 : n)
                    if (e >= 80 && last == n / 2 || n == 1) last = n
                    if (out) printf "%d %.5g %.4g\n", n, t, e >> out
                }
                printf "%4d Gbit/s %3d us  %s  %-22s %s\n", rate[net], delay[net], way,
                    kind == 1 ? "512 samples a rank:" : "512 samples in all:", last == 1024 ? "all 1024" : last
            }
        }
}
