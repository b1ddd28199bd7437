# The loss on a new sine after 0 to 10 steps of gradient descent on ten of its points. Data:
# build/examples/maml.

load 'plots/style.gp'
array names[2] = ["untrained", "trained"]
array styles[2] = [1, 3]
eval figure('maml', 1200, 500, "Left: mean over 100 new sines, amplitude 0.1 to 5.")
eval panel(0.07, 0.48, "One step learns a new sine, from the start that was learned", \
    "steps of gradient descent on ten points", "squared error on ten others")
shown(i) = i == 1 ? "from random weights" : "from the learned start"
set yrange [0:*]
eval key(0.6, 0.6)
eval series("step", "loss"); plot @LINES

eval panel(0.57, 0.98, "While it was learned: after one step", "step of Adam on the start", "squared error")
set logscale y
plot data index 0 using "step":"loss" with lines ls 3 lw 1
