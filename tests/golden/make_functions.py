"""Writes functions.txt: what PyTorch computes in double of the functions of test_functions.c.

    python3 tests/golden/make_functions.py

The format is that of make_golden.py.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20261122)
HERE = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(HERE, "functions.txt"), "w")
out.write("# PyTorch %s, float64; written by make_functions.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


def case(name, function, *inputs):
    """Inputs x0, x1..., y, a cotangent dy, the gradients g0, g1... of the floating inputs, and the
    gradients h0... of their product with directions v0...: the second order."""
    for i, x in enumerate(inputs):
        write("%s/x%d" % (name, i), x)
        if x.is_floating_point():
            x.requires_grad_()
    y = function(*inputs)
    dy = torch.randn(y.shape)
    wanted = [i for i, x in enumerate(inputs) if x.is_floating_point()]
    leaves = [inputs[i] for i in wanted]
    gradients = torch.autograd.grad(y, leaves, dy, create_graph=True, allow_unused=True)
    write(name + "/y", y)
    write(name + "/dy", dy)
    along = 0
    for i, x, g in zip(wanted, leaves, gradients):
        v = torch.randn(x.shape)
        g = torch.zeros_like(x) if g is None else g
        write("%s/g%d" % (name, i), g)
        write("%s/v%d" % (name, i), v)
        along = along + (g * v).sum()
    second = [None] * len(leaves)
    if along.requires_grad:
        second = torch.autograd.grad(along, leaves, allow_unused=True)
    for i, x, h in zip(wanted, leaves, second):
        write("%s/h%d" % (name, i), torch.zeros_like(x) if h is None else h)


def normal(*shape, deviation=1.0):
    return deviation * torch.randn(shape)


def hard_step(x):
    """F.hardsigmoid, which has no second derivative in PyTorch."""
    y = torch.clamp(x, -3, 3) / 6 + 0.5
    assert torch.allclose(y, F.hardsigmoid(x), rtol=0, atol=1e-15)
    return y


UNARY = {
    "elu": lambda x: F.elu(x, 0.7), "selu": F.selu, "mish": F.mish, "softsign": F.softsign,
    "hardtanh": F.hardtanh, "hardsigmoid": hard_step, "hardswish": lambda x: x * hard_step(x),
    "atan": torch.atan, "expm1": torch.expm1, "sign": lambda x: x * torch.sign(x),
    "floor": lambda x: x * torch.floor(x),
}
for name, function in UNARY.items():
    case(name, function, torch.cat([normal(12), normal(12, deviation=4.0)]))
case("log1p", torch.log1p, torch.rand(24) * 3 - 0.9)

case("cumsum", lambda x: torch.cumsum(x, 1), normal(2, 4, 3))
zeros = normal(4, 4)
zeros[1, 2] = zeros[2, 0] = zeros[2, 3] = 0.0
zeros[3, :3] = 0.0
case("prod", lambda x: torch.prod(x, 1), zeros)
case("min", lambda x: torch.amin(x, (0, 2)), normal(2, 4, 3))
case("norm", lambda x: torch.linalg.vector_norm(x, dim=(0, 2)), normal(2, 4, 3))
case("cosine", lambda a, b: F.cosine_similarity(a, b, 1), normal(3, 5, 2), normal(3, 5, 2))
case("sort", lambda x: torch.sort(x, 1)[0], normal(2, 6, 3))
case("sort_descending", lambda x: torch.sort(x, 0, descending=True)[0], normal(5, 3))
case("top_k", lambda x: torch.topk(x, 3, -1)[0], normal(4, 6))
case("smallest", lambda x: torch.topk(x, 2, 0, largest=False)[0], normal(5, 3))
case("take", lambda x, index: torch.gather(x, 1, index), normal(2, 4, 3),
     torch.randint(0, 4, (2, 5, 3)))
case("stack", lambda a, b: torch.stack([a, b, a], 1), normal(2, 3), normal(2, 3))
case("tril", lambda x: torch.tril(x, 1), normal(2, 4, 3))
case("triu", lambda x: torch.triu(x, -1), normal(4, 3))

labels = torch.tensor([0, 2, 4, 1, 2, 3])
weights = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0])
for reduction in ("mean", "sum", "none"):
    case("kl_" + reduction,
         lambda x, t: F.kl_div(F.log_softmax(x, -1), t, reduction=reduction),
         normal(4, 5), F.softmax(normal(4, 5), -1))
    case("nll_" + reduction,
         lambda x: F.nll_loss(x, labels, weights, reduction=reduction, ignore_index=1),
         normal(6, 5))
    case("weighted_" + reduction,
         lambda x: F.cross_entropy(x, labels, weights, reduction=reduction), normal(6, 5))
    case("weighted_smooth_" + reduction,
         lambda x: F.cross_entropy(x, labels, weights, reduction=reduction, ignore_index=2,
                                   label_smoothing=0.15), normal(6, 5))

# Of an alpha that a float holds: PyTorch takes its inverse in float on the way back.
case("celu", lambda x: F.celu(x, 0.5), torch.cat([normal(12), normal(12, deviation=4.0)]))
case("prelu", F.prelu, normal(4, 3, 2), normal(3))
case("prelu_one", F.prelu, normal(4, 3), normal(1))
case("glu", lambda x: F.glu(x, -1), normal(3, 8))
case("local_response", lambda x: F.local_response_norm(x, 5, 0.5, 0.75, 2.0),
     normal(2, 7, 3, 2, deviation=2.0))
case("local_response_even", lambda x: F.local_response_norm(x, 4, 2.0, 0.5, 1.0), normal(3, 6, 4))
case("local_response_wide", lambda x: F.local_response_norm(x, 9), normal(2, 4, 5, deviation=9.0))
