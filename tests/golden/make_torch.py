"""Writes torch.txt: what PyTorch computes in double of the functions of test_torch.c.

    python3 tests/golden/make_torch.py

The format is that of make_golden.py.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20261125)
HERE = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(HERE, "torch.txt"), "w")
out.write("# PyTorch %s, float64; written by make_torch.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


def case(name, function, *inputs, constants=0, orders=2):
    """Inputs x0, x1..., of which the last `constants` have no gradient; y, a cotangent dy, the
    gradients g0, g1..., and the gradients h0... of their product with directions v0...: the second
    order."""
    leaves = list(inputs[:len(inputs) - constants])
    for i, x in enumerate(inputs):
        write("%s/x%d" % (name, i), x)
    for x in leaves:
        x.requires_grad_()
    y = function(*inputs)
    dy = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, leaves, dy, create_graph=orders == 2)
    write(name + "/y", y)
    write(name + "/dy", dy)
    along = 0
    for i, (x, g) in enumerate(zip(leaves, gradients)):
        write("%s/g%d" % (name, i), g)
        v = torch.randn(x.shape)
        if orders == 2:
            write("%s/v%d" % (name, i), v)
            along = along + (g * v).sum()
    if orders == 1:
        return
    second = [None] * len(leaves)
    if along.requires_grad:
        second = torch.autograd.grad(along, leaves, allow_unused=True)
    for i, (x, h) in enumerate(zip(leaves, second)):
        write("%s/h%d" % (name, i), torch.zeros_like(x) + (0 if h is None else h))


def normal(*shape, deviation=1.0):
    return deviation * torch.randn(shape)


def positive(*shape):
    return 0.5 + 1.5 * torch.rand(shape)


REDUCTIONS = ("mean", "sum", "none")

# ---- Cross-entropy ---------------------------------------------------------------------------------

for reduction in REDUCTIONS:
    case("soft_" + reduction, lambda x, t: F.cross_entropy(x, t, reduction=reduction),
         normal(4, 5), F.softmax(normal(4, 5), -1))
    case("soft_all_" + reduction,
         lambda x, t, w: F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=0.2),
         normal(2, 4, 3), F.softmax(normal(2, 4, 3), 1), positive(4), constants=1)
    case("first_" + reduction,
         lambda x, labels: F.cross_entropy(x, labels, reduction=reduction, ignore_index=3),
         normal(2, 4, 3, 2), torch.randint(0, 4, (2, 3, 2)), constants=1)
    case("first_all_" + reduction,
         lambda x, labels, w: F.cross_entropy(x, labels, w, reduction=reduction, ignore_index=1,
                                              label_smoothing=0.1),
         normal(2, 4, 3), torch.randint(0, 4, (2, 3)), positive(4), constants=2)
    case("nll_first_" + reduction,
         lambda x, labels, w: F.nll_loss(x, labels, w, reduction=reduction, ignore_index=0),
         normal(3, 4, 2), torch.randint(0, 4, (3, 2)), positive(4), constants=2)
    case("bce_" + reduction,
         lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, reduction=reduction,
                                                               pos_weight=p),
         normal(3, 4, deviation=3.0), torch.rand(3, 4), positive(3, 1), positive(4), constants=2)

# ---- Attention -------------------------------------------------------------------------------------

def attention(heads):
    """The output and the weights of each head, in one list; PyTorch's mask is of what is hidden."""
    def function(x, w, b, out_w, out_b, mask):
        x = x.transpose(0, 1)
        y, weights = F.multi_head_attention_forward(
            x, x, x, x.shape[-1], heads, w, b, None, None, False, 0.0, out_w, out_b,
            attn_mask=mask == 0, need_weights=True, average_attn_weights=False)
        return torch.cat([y.transpose(0, 1).flatten(), weights.flatten()])
    return function


mask = torch.tensor([[1.0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
case("attention_pairs", attention(2), normal(2, 4, 6), normal(18, 6), normal(18), normal(6, 6),
     normal(6), mask, constants=1)
masks = (torch.rand(4, 3, 3) < 0.5).double() + torch.eye(3)
case("attention_heads", attention(2), normal(2, 3, 4), normal(12, 4), normal(12), normal(4, 4),
     normal(4), masks, constants=1)

# ---- Embeddings ------------------------------------------------------------------------------------

ids = torch.tensor([[1, 0, 3], [2, 2, 1]])
case("padded", lambda w: F.embedding(ids, w, padding_idx=2) ** 2, normal(5, 3))
case("tied", lambda w, b: F.linear(torch.tanh(F.embedding(ids, w)), w, b), normal(5, 3), normal(5))

# ---- Pooling ---------------------------------------------------------------------------------------

case("max_pool_ceil", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), normal(2, 2, 6, 8))
case("max_pool_ceil_dilated", lambda x: F.max_pool2d(x, 2, 3, 0, (2, 1), ceil_mode=True),
     normal(2, 2, 6, 7))
case("avg_pool_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), normal(2, 2, 6, 7))
case("avg_pool_ceil_late", lambda x: F.avg_pool2d(x, 2, 3, 1, ceil_mode=True), normal(2, 2, 6, 4))
case("avg_pool_exclude", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
     normal(2, 2, 6, 7))
case("avg_pool_both", lambda x: F.avg_pool2d(x, (2, 3), (2, 2), (1, 1), True, False),
     normal(2, 2, 6, 8))
case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), normal(2, 3, 9))
case("max_pool1d_ceil", lambda x: F.max_pool1d(x, 2, 2, 0, 2, ceil_mode=True), normal(2, 3, 9))
case("avg_pool1d", lambda x: F.avg_pool1d(x, 4), normal(2, 3, 9))
case("avg_pool1d_all", lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), normal(2, 3, 8))
for name, size in [("smaller", (3, 2)), ("global", (1, 1)), ("larger", (7, 9)), ("same", (6, 7))]:
    case("adaptive_avg_" + name, lambda x: F.adaptive_avg_pool2d(x, size), normal(2, 2, 6, 7))
    case("adaptive_max_" + name, lambda x: F.adaptive_max_pool2d(x, size), normal(2, 2, 6, 7))
case("adaptive_avg_line", lambda x: F.adaptive_avg_pool1d(x, 5), normal(2, 2, 12))
case("adaptive_max_line", lambda x: F.adaptive_max_pool1d(x, 5), normal(2, 2, 12))

# ---- Losses with a margin, of a normal distribution ------------------------------------------------

def sign_like(*shape):
    return torch.where(torch.rand(shape) < 0.5, -1.0, 1.0)


REDUCE = {"mean": torch.mean, "sum": torch.sum, "none": lambda x: x}
for reduction in REDUCTIONS:
    case("hinge_" + reduction, lambda x, t: REDUCE[reduction](torch.relu(1 - t * x)),
         normal(3, 4), sign_like(3, 4), constants=1)
    case("hinge_classes_" + reduction,
         lambda x, labels: F.multi_margin_loss(x, labels, margin=0.7, reduction=reduction),
         normal(5, 4), torch.randint(0, 4, (5,)), constants=1, orders=1)
    case("hinge_embedding_" + reduction,
         lambda x, t: F.hinge_embedding_loss(x, t, 1.5, reduction=reduction),
         normal(3, 4), sign_like(3, 4), constants=1)
    # PyTorch adds 1e-12 to the squares of the lengths, which are large here.
    case("cosine_embedding_" + reduction,
         lambda a, b, t: F.cosine_embedding_loss(a, b, t, -0.3, reduction=reduction),
         normal(5, 4, deviation=9.0), normal(5, 4, deviation=9.0), sign_like(5), constants=1)
    case("triplet_" + reduction,
         lambda a, p, n: F.triplet_margin_loss(a, p, n, 1.2, reduction=reduction),
         normal(5, 4), normal(5, 4), normal(5, 4))
    case("triplet_swap_" + reduction,
         lambda a, p, n: F.triplet_margin_loss(a, p, n, 2.0, 3, swap=True, reduction=reduction),
         normal(5, 4), normal(5, 4), normal(5, 4))
    case("gaussian_" + reduction,
         lambda x, t, var: F.gaussian_nll_loss(x, t, var, reduction=reduction),
         normal(3, 4), normal(3, 4), positive(3, 4))
    small = torch.tensor([[0.5], [0.02], [2.0]])
    case("gaussian_full_" + reduction,
         lambda x, t, var: F.gaussian_nll_loss(x, t, var, full=True, eps=0.1, reduction=reduction),
         normal(3, 4), normal(3, 4), small)

# ---- Places, products, norms -----------------------------------------------------------------------

case("flip", lambda x: torch.flip(x, (0, 2)), normal(2, 3, 4))
case("roll", lambda x: torch.roll(x, -8, 1), normal(2, 5, 3))
case("roll_right", lambda x: torch.roll(x, 2, -1), normal(2, 5))
case("repeat", lambda x: x.repeat(2, 3, 1, 2), normal(2, 1, 3))
case("cumprod", lambda x: torch.cumprod(x, 1), normal(2, 7, 3))
zeros = normal(4, 5)
zeros[1, 2] = zeros[2, 0] = zeros[2, 3] = 0.0
zeros[3, :4] = 0.0
case("cumprod_zeros", lambda x: torch.cumprod(x, 1), zeros)
for name, correction in [("two", 2), ("none", 0)]:
    case("variance_" + name, lambda x: torch.var(x, (0, 2), correction=correction), normal(2, 3, 4))
ORDERS = {"half": 0.5, "one": 1, "low": 1.5, "three": 3, "four": 4, "seven": 6.5,
          "infinite": float("inf")}
for name, order in ORDERS.items():
    case("norm_" + name, lambda x: torch.linalg.vector_norm(x, order, (0, 2)), normal(2, 3, 4))
    zeros = normal(3, 4)
    zeros[1] = 0.0
    zeros[2, 1] = zeros[2, 3] = 0.0
    zeros[0, 1] = -zeros[0, 0]
    case("norm_zeros_" + name, lambda x: torch.linalg.vector_norm(x, order, 1), zeros, orders=1)
case("norm_zero", lambda x: x.sum(1) * torch.linalg.vector_norm(x, 0, 1), zeros)
case("matmul_dot", torch.matmul, normal(4), normal(4))
case("matmul_row", torch.matmul, normal(4), normal(2, 4, 3))
case("matmul_column", torch.matmul, normal(2, 3, 4), normal(4))
