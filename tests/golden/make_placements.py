"""Writes placements.txt: what PyTorch computes in double for the transformers of test_transformer.c.

    python3 tests/golden/make_placements.py

The format is that of make_golden.py. Each placement of norms is the formula of its paper, written
out below and differentiated by autograd. A row has ids, each parameter by the library's name of
it, y (the logits), dy, and the gradient to each parameter.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20251126)
HERE = os.path.dirname(os.path.abspath(__file__))
N, T, VOCABULARY, DIM, HEADS, HIDDEN, LAYERS = 2, 4, 5, 6, 2, 5, 3

out = open(os.path.join(HERE, "placements.txt"), "w")
out.write("# PyTorch %s, float64; written by make_placements.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


class Net:
    """Parameters are drawn when they are first asked for: gammas near 1, all others near 0."""

    def __init__(self):
        self.parameters = {}

    def get(self, name, *shape):
        if name not in self.parameters:
            gamma = "norm.weight" in name or "after.weight" in name
            drawn = 0.3 * torch.randn(shape) + (1 if gamma else 0)
            self.parameters[name] = drawn.requires_grad_()
        return self.parameters[name]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdim=True)
        xhat = centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + 1e-5)
        n = x.shape[-1]
        return xhat * self.get(name + ".weight", n) + self.get(name + ".bias", n)

    def rms(self, name, x):
        return x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-6) \
            * self.get(name + ".weight", x.shape[-1])

    def derf(self, name, x):
        n = x.shape[-1]
        inner = self.get(name + ".alpha", 1) * x + self.get(name + ".shift", 1)
        return torch.erf(inner) * self.get(name + ".weight", n) + self.get(name + ".bias", n)

    def linear(self, name, x, rows):
        return F.linear(x, self.get(name + "weight", rows, x.shape[-1]),
                        self.get(name + "bias", rows))

    def attention(self, name, x, qkv_norm=False, whole=False, per_head=False):
        q, k, v = [part.reshape(N, T, HEADS, -1).transpose(1, 2)
                   for part in self.linear(name + ".in_", x, 3 * DIM).chunk(3, -1)]
        if qkv_norm:
            q, k, v = [self.rms(name + of, part)
                       for of, part in ((".q_norm", q), (".k_norm", k), (".v_norm", v))]
        if whole or per_head:
            q, k = [self.qk_rms(name + of, part, per_head)
                    for of, part in ((".q_norm", q), (".k_norm", k))]
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        later = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
        y = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        return self.linear(name + ".out_", y.transpose(1, 2).reshape(N, T, DIM), DIM)

    def qk_rms(self, name, heads, per_head):
        """heads (N, HEADS, T, D): normed over all heads together, or each, with a weight for each."""
        x = heads.transpose(1, 2)
        over = (-1,) if per_head else (-2, -1)
        y = x / torch.sqrt((x ** 2).mean(over, keepdim=True) + 1e-6)
        return (y * self.get(name + ".weight", DIM).reshape(HEADS, -1)).transpose(1, 2)

    def feed_forward(self, name, x):
        return self.linear(name + ".out_", F.gelu(self.linear(name + ".in_", x, HIDDEN)), DIM)


def branches(net, i):
    """The two branches of block i, and the names of their norms."""
    name = "blocks.%d." % i
    return [(lambda x: net.attention(name + "attention", x), name + "attention"),
            (lambda x: net.feed_forward(name + "feed_forward", x), name + "feed_forward")]


def pre(net, i, x):
    for f, name in branches(net, i):
        x = x + f(net.norm(name + "_norm", x))
    return x


def post(net, i, x):
    for f, name in branches(net, i):
        x = net.norm(name + "_norm", x + f(x))
    return x


# Kim et al. 2025, section 3: y = x + Norm(Module(Norm(x))), and a norm before the head
def peri(net, x):
    for i in range(LAYERS):
        for f, name in branches(net, i):
            x = x + net.norm(name + "_after", f(net.norm(name + "_norm", x)))
    return net.norm("norm", x)


# Zhuo et al. 2025, eq. (5), (6): Y = MHA_QKV(X) + X, X' = FFN(Norm(Y)) + Norm(Y); here this
# Norm is the module attention_norm, and each an RMSNorm as in the paper's experiments
def hybrid(net, x):
    for i in range(LAYERS):
        name = "blocks.%d." % i
        y = net.attention(name + "attention", x, qkv_norm=True) + x
        z = net.rms(name + "attention_norm", y)
        x = net.feed_forward(name + "feed_forward", z) + z
    return net.rms("norm", x)


# Xie et al. 2023: x^ln' = LN(x^ln + f(x^ln)), x^d' = x^d + f(x^ln), y = x^ln + LN(x^d)
def dual(net, x):
    d = x
    for i in range(LAYERS):
        for f, name in branches(net, i):
            y = f(x)
            d = d + y
            x = net.norm(name + "_norm", x + y)
    return x + net.norm("norm", d)


# Sun et al. 2025, eq. (5): h = LN(h) / sqrt(l) before attention and feed-forward of layer l = 1...
def scaled(net, x):
    for i in range(LAYERS):
        for f, name in branches(net, i):
            x = x + f(net.norm(name + "_norm", x) / (i + 1) ** 0.5)
    return net.norm("norm", x)


# Li et al. 2024: post-norm in the first floor(0.34 L) layers, pre-norm in the others
def mix(net, x):
    for i in range(LAYERS):
        x = (post if i < int(0.34 * LAYERS) else pre)(net, i, x)
    return net.norm("norm", x)


# Chen et al. 2025: Derf in place of each norm
def derf(net, x):
    for i in range(LAYERS):
        for f, name in branches(net, i):
            x = x + f(net.derf(name + "_norm", x))
    return net.derf("norm", x)


# Walsh et al. 2025 (OLMo 2): x + RMSNorm(f(x)), and RMSNorms of q and k over all heads
def olmo2(net, x):
    for i in range(LAYERS):
        name = "blocks.%d." % i
        x = x + net.rms(name + "attention_after", net.attention(name + "attention", x, whole=True))
        x = x + net.rms(name + "feed_forward_after", net.feed_forward(name + "feed_forward", x))
    return net.rms("norm", x)


# x-transformers' MultiheadRMSNorm of q and k, with a gamma for each head, in a pre-norm block
def per_head(net, x):
    for i in range(LAYERS):
        name = "blocks.%d." % i
        own = net.rms(name + "attention_norm", x)
        x = x + net.attention(name + "attention", own, per_head=True)
        own = net.rms(name + "feed_forward_norm", x)
        x = x + net.feed_forward(name + "feed_forward", own)
    return net.rms("norm", x)


# Xie et al. 2025, section 4.2: coefficients of each branch from the RMS-normalized streams; three
# streams, which begin as copies and end as a sum (Zhu et al. 2024)
def hyper(net, x, n=3):
    streams = torch.stack([x] * n, -2)
    for i in range(LAYERS):
        for f, name in branches(net, i):
            flat = streams.reshape(N, T, n * DIM)
            flat = flat / torch.sqrt((flat ** 2).mean(-1, keepdim=True) + 1e-6)
            phi = net.get(name + "_connection.weight", 2 * n + n * n, n * DIM)
            b = net.get(name + "_connection.bias", 2 * n + n * n)
            alpha = net.get(name + "_connection.alpha", 3)
            pre = torch.sigmoid(alpha[0] * (flat @ phi[:n].T) + b[:n])
            post = 2 * torch.sigmoid(alpha[1] * (flat @ phi[n:2 * n].T) + b[n:2 * n])
            res = torch.exp(alpha[2] * (flat @ phi[2 * n:].T) + b[2 * n:]).reshape(N, T, n, n)
            for _ in range(20):
                res = res / res.sum(-2, keepdim=True)
                res = res / res.sum(-1, keepdim=True)
            y = f(net.rms(name + "_norm", (pre.unsqueeze(-1) * streams).sum(-2)))
            streams = torch.einsum("ntoi,ntic->ntoc", res, streams) \
                + post.unsqueeze(-1) * y.unsqueeze(-2)
    return net.rms("norm", streams.sum(-2))


for stack in (peri, hybrid, dual, scaled, mix, derf, olmo2, per_head, hyper):
    net = Net()
    ids = torch.randint(0, VOCABULARY, (N, T))
    x = F.embedding(ids, net.get("embedding.weight", VOCABULARY, DIM))
    x = x + net.get("positions.weight", T, DIM)
    y = net.linear("head.", stack(net, x), VOCABULARY)
    dy = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, list(net.parameters.values()), dy)
    name = stack.__name__
    write(name + "/ids", ids)
    write(name + "/y", y)
    write(name + "/dy", dy)
    for (key, value), gradient in zip(net.parameters.items(), gradients):
        write(name + "/" + key, value)
        write(name + "/d" + key, gradient)
