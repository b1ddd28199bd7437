"""Writes optimizers.txt: 20 steps of optimizers that normalize, in double, for test_golden.c.

    python3 tests/golden/make_optimizers.py

AMSGrad is PyTorch's. The others are written here from the formulas of their papers, with PyTorch's
tensors. A tensor is a line `name dimensions...` and a line of its elements, row by row.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20250311)
STEPS, BATCHES = 20, 4


class Optimizer:
    """Calls self.move(w, g, state, t, lr) for each parameter; state begins empty."""

    def __init__(self, parameters, lr, rate=lambda step: 1.0, **settings):
        self.parameters = list(parameters)
        self.states = [{} for _ in self.parameters]
        self.lr, self.rate, self.steps = lr, rate, 0
        self.__dict__.update(settings)

    def zero_grad(self):
        for w in self.parameters:
            w.grad = None

    @torch.no_grad()
    def step(self):
        lr = self.lr * self.rate(self.steps)
        self.steps += 1
        for w, state in zip(self.parameters, self.states):
            self.move(w, w.grad, state, self.steps, lr)

    def adam_direction(self, w, g, state, t):
        m = state["m"] = self.beta1 * state.get("m", 0) + (1 - self.beta1) * g
        v = state["v"] = self.beta2 * state.get("v", 0) + (1 - self.beta2) * g * g
        return (m / (1 - self.beta1 ** t)) / (torch.sqrt(v / (1 - self.beta2 ** t)) + self.eps)


class Lion(Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def move(self, w, g, state, t, lr):
        m = state.get("m", torch.zeros_like(w))
        c = self.beta1 * m + (1 - self.beta1) * g
        w -= lr * (torch.sign(c) + self.weight_decay * w)
        state["m"] = self.beta2 * m + (1 - self.beta2) * g


class LARS(Optimizer):
    """You, Gitman & Ginsburg 2017, algorithm 1."""

    def move(self, w, g, state, t, lr):
        ratio = 1.0
        if w.norm() > 0 and (w.dim() > 1 or not self.matrices_only):
            ratio = self.trust * w.norm() / (g.norm() + self.weight_decay * w.norm())
        v = self.momentum * state.get("v", 0) + lr * ratio * (g + self.weight_decay * w)
        state["v"] = v
        w -= v


class LAMB(Optimizer):
    """You et al. 2020, algorithm 2, phi(z) = z."""

    def move(self, w, g, state, t, lr):
        u = self.adam_direction(w, g, state, t) + self.weight_decay * w
        adapts = w.norm() > 0 and (w.dim() > 1 or not self.matrices_only)
        w -= lr * (w.norm() / u.norm() if adapts else 1.0) * u


class Muon(Optimizer):
    """Jordan et al. 2024, in double; AdamW for what is no matrix."""

    def move(self, w, g, state, t, lr):
        if w.dim() != 2:
            rate = self.adam_scale * lr
            u = self.adam_direction(w, g, state, t)
            w -= rate * self.weight_decay * w + rate * u
            return
        v = state["v"] = self.momentum * state.get("v", 0) + g
        u = g + self.momentum * v if self.nesterov else v
        x = u.T if u.shape[0] > u.shape[1] else u
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        if u.shape[0] > u.shape[1]:
            x = x.T
        scale = max(1, u.shape[0] / u.shape[1]) ** 0.5
        w -= lr * self.weight_decay * w + lr * scale * x


def half_cosine(step):
    return (step + 1) / 3 if step < 3 else \
        0.1 + 0.9 * (1 + torch.cos(torch.tensor(torch.pi * (step - 3) / 12)).item()) / 2 \
        if step < 15 else 0.1


ADAM = dict(beta1=0.9, beta2=0.999, eps=1e-6)
OPTIMIZERS = {
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.8, 0.7), weight_decay=1e-3,
                                          amsgrad=True),
    "amsgrad_decoupled": lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.8, 0.7),
                                                     weight_decay=0.05, amsgrad=True),
    "lion": lambda p: Lion(p, 0.003, beta1=0.9, beta2=0.99, weight_decay=0.0),
    "lion_decay": lambda p: Lion(p, 0.003, half_cosine, beta1=0.8, beta2=0.95, weight_decay=0.3),
    "lars": lambda p: LARS(p, 0.5, momentum=0.9, trust=0.02, weight_decay=0.05,
                           matrices_only=False),
    "lars_matrices": lambda p: LARS(p, 0.2, half_cosine, momentum=0.8, trust=0.05,
                                    weight_decay=0.0, matrices_only=True),
    "lamb": lambda p: LAMB(p, 0.02, **ADAM, weight_decay=0.01, matrices_only=False),
    "lamb_matrices": lambda p: LAMB(p, 0.02, half_cosine, **ADAM, weight_decay=0.1,
                                    matrices_only=True),
    "muon": lambda p: Muon(p, 0.02, momentum=0.95, nesterov=True, weight_decay=0.0,
                           adam_scale=0.5, beta1=0.9, beta2=0.95, eps=1e-10),
    "muon_plain": lambda p: Muon(p, 0.02, half_cosine, momentum=0.8, nesterov=False,
                                 weight_decay=0.1, adam_scale=0.5, beta1=0.9, beta2=0.95,
                                 eps=1e-10),
}

out = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.txt"), "w")
out.write("# PyTorch %s, float64; written by make_optimizers.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


batches = [(torch.randn(16, 8), torch.randint(0, 3, (16,))) for _ in range(BATCHES)]
for i, (x, labels) in enumerate(batches):
    write("x%d" % i, x)
    write("labels%d" % i, labels)
# Weights that are wide, tall and square; the LayerNorm's bias begins at 0.
net = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.LayerNorm(6), torch.nn.GELU(),
                          torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 9),
                          torch.nn.Tanh(), torch.nn.Linear(9, 3))
start = {key: x.clone() for key, x in net.state_dict().items()}
for key, x in start.items():
    write("start/" + key, x)
for name, make in OPTIMIZERS.items():
    net.load_state_dict(start)
    optimizer = make(net.parameters())
    for step in range(STEPS):
        x, labels = batches[step % BATCHES]
        optimizer.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        optimizer.step()
    for key, x in net.state_dict().items():
        write("%s/%s" % (name, key), x)
