"""Writes recurrent.txt: what PyTorch computes in double, for test_recurrent.c.

    python3 tests/golden/make_recurrent.py

The format is make_golden.py's. Parameters have PyTorch's names after p/, their gradients after d/.
What PyTorch has no layer for, LayerNorm in the cell, is written out here as in the appendix of Ba,
Kiros & Hinton 2016.
"""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.set_default_dtype(torch.float64)
torch.manual_seed(20240607)
HERE = os.path.dirname(os.path.abspath(__file__))
N, T, FEATURES, HIDDEN = 4, 5, 3, 4
out = open(os.path.join(HERE, "recurrent.txt"), "w")
out.write("# PyTorch %s, float64; written by make_recurrent.py\n" % torch.__version__)


def write(name, x):
    x = x.detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


def gradients(name, outputs, leaves):
    """A cotangent for each output, and what they give each leaf."""
    total = 0
    for key, y in outputs.items():
        dy = torch.randn(y.shape)
        write("%s/%s" % (name, key), y)
        write("%s/d%s" % (name, key), dy)
        total = total + (y * dy).sum()
    total.backward()
    for key, x in leaves.items():
        write("%s/%s" % (name, key), x.grad)


def layer(name, net, lengths=None, states=True):
    directions = net.num_layers * (2 if net.bidirectional else 1)
    x = torch.randn(N, T, FEATURES, requires_grad=True)
    h = torch.randn(directions, N, HIDDEN, requires_grad=True)
    c = torch.randn(directions, N, HIDDEN, requires_grad=True)
    lstm = isinstance(net, nn.LSTM)
    leaves = {"dx": x}
    write(name + "/x", x)
    for key, p in net.named_parameters():
        write("%s/p/%s" % (name, key), p)
        leaves["d/" + key] = p
    if states:
        write(name + "/h0", h)
        leaves["dh0"] = h
    if states and lstm:
        write(name + "/c0", c)
        leaves["dc0"] = c
    given = x
    if lengths:
        write(name + "/lengths", torch.tensor(lengths).double())
        given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, last = net(given, ((h, c) if lstm else h) if states else None)
    if lengths:
        y, _ = pad_packed_sequence(y, batch_first=True, total_length=T)
    outputs = {"y": y, "h": last[0] if lstm else last}
    if lstm:
        outputs["c"] = last[1]
    gradients(name, outputs, leaves)


KINDS = {
    "rnn": lambda **settings: nn.RNN(FEATURES, HIDDEN, batch_first=True, **settings),
    "relu": lambda **settings: nn.RNN(FEATURES, HIDDEN, batch_first=True, nonlinearity="relu",
                                      **settings),
    "gru": lambda **settings: nn.GRU(FEATURES, HIDDEN, batch_first=True, **settings),
    "lstm": lambda **settings: nn.LSTM(FEATURES, HIDDEN, batch_first=True, **settings),
}
for kind, make in KINDS.items():
    layer(kind, make(), states=False)
    layer(kind + "_no_bias", make(bias=False))
    layer(kind + "_packed", make(num_layers=3, bidirectional=True), lengths=[5, 2, 4, 1])
    layer(kind + "_three", make(num_layers=3))


def norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])


def rnn_cell(p, x, h, c):
    a = x @ p["weight_ih_l0"].T + h @ p["weight_hh_l0"].T
    return torch.tanh(norm(p, "norm_l0", a) + p["bias_ih_l0"] + p["bias_hh_l0"]), c


def gru_cell(p, x, h, c):
    a, b = x @ p["weight_ih_l0"].T, h @ p["weight_hh_l0"].T
    b_ih, b_hh, two = p["bias_ih_l0"], p["bias_hh_l0"], 2 * HIDDEN
    gates = torch.sigmoid(norm(p, "norm_ih_l0", a[:, :two]) + norm(p, "norm_hh_l0", b[:, :two])
                          + b_ih[:two] + b_hh[:two])
    r, z = gates.chunk(2, 1)
    n = torch.tanh(norm(p, "norm_in_l0", a[:, two:]) + b_ih[two:]
                   + r * (norm(p, "norm_hn_l0", b[:, two:]) + b_hh[two:]))
    return (1 - z) * n + z * h, c


def lstm_cell(p, x, h, c):
    gates = (norm(p, "norm_ih_l0", x @ p["weight_ih_l0"].T)
             + norm(p, "norm_hh_l0", h @ p["weight_hh_l0"].T) + p["bias_ih_l0"] + p["bias_hh_l0"])
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(norm(p, "norm_c_l0", c)), c


def normalized(name, cell, gates, norms):
    shapes = {"weight_ih_l0": (gates * HIDDEN, FEATURES), "weight_hh_l0": (gates * HIDDEN, HIDDEN),
              "bias_ih_l0": (gates * HIDDEN,), "bias_hh_l0": (gates * HIDDEN,)}
    p = {key: torch.randn(shape) for key, shape in shapes.items()}
    for key, size in norms.items():
        p[key + ".weight"] = 1 + 0.3 * torch.randn(size * HIDDEN)
        p[key + ".bias"] = 0.3 * torch.randn(size * HIDDEN)
    x = torch.randn(N, T, FEATURES, requires_grad=True)
    write(name + "/x", x)
    leaves = {"dx": x}
    for key, value in p.items():
        write("%s/p/%s" % (name, key), value)
        leaves["d/" + key] = value.requires_grad_()
    h, c, states = torch.zeros(N, HIDDEN), torch.zeros(N, HIDDEN), []
    for t in range(T):
        h, c = cell(p, x[:, t], h, c)
        states.append(h)
    outputs = {"y": torch.stack(states, 1), "h": h[None]}
    if cell is lstm_cell:
        outputs["c"] = c[None]
    gradients(name, outputs, leaves)


normalized("rnn_norm", rnn_cell, 1, {"norm_l0": 1})
normalized("gru_norm", gru_cell, 3,
           {"norm_ih_l0": 2, "norm_in_l0": 1, "norm_hh_l0": 2, "norm_hn_l0": 1})
normalized("lstm_norm", lstm_cell, 4, {"norm_ih_l0": 4, "norm_hh_l0": 4, "norm_c_l0": 1})
