"""The engines PyTorch (eager) and torch.compile: the other side of the protocol in engine.h.

    engine_torch.py pytorch|compiled"""
import ctypes
import os
import re
import statistics
import sys
import time

MODE = sys.argv[1]
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("no it is missing; make deps-bench installs it")
    sys.exit(3)

EPS = 1e-5
VOCABULARY = 96
HEADS = 4
SHORTEST_SAMPLE = 20e-6


def compiled(function):
    return torch.compile(function, dynamic=False) if MODE == "compiled" else function


class Op:
    """One op, forward or backward. What a run made is let go before the next begins, so that the
    allocator can give the same memory again."""

    def __init__(self, group, name, shape):
        self.made = None
        self.op = re.sub(r"\d.*", "", name)
        self.inputs = self.images(name, shape) if self.op in ("conv", "depthwise") else \
            self.matrices(*map(int, shape.split("x")))
        for tensor in self.inputs:
            tensor.requires_grad_()
        self.call = compiled(getattr(self, self.op))
        self.forward()
        self.dy = torch.randn_like(self.made)
        self.before, self.run = (None, self.second) if group == "second" else \
            (self.forward, self.backward) if "backward" in group else (None, self.forward)

    def matrices(self, rows, columns):
        row = lambda: torch.empty(columns).uniform_(0.5, 1.5)
        self.n = columns
        self.mean, self.var = torch.zeros(columns), torch.ones(columns)
        self.labels = torch.randint(columns, (rows,))
        more = {"layer_norm": 2, "rms_norm": 1, "batch_norm": 2, "bias_add": 1}.get(self.op, 0)
        x = torch.empty(rows, columns).uniform_(-2, 2)
        return [x] + [row() for _ in range(more)] + [x.clone()] * (self.op == "residual_add")

    def images(self, name, shape):
        batch, channels, side, out, kernel, stride = map(int, re.findall(r"\d+", shape + name))
        self.groups = 1 if self.op == "conv" else channels
        self.stride, self.padding = stride, kernel // 2
        return [torch.randn(batch, channels, side, side),
                torch.randn(out, channels // self.groups, kernel, kernel), torch.randn(out)]

    def forward(self):
        self.made = None
        self.made = self.call(*self.inputs)

    def backward(self):
        self.made = torch.autograd.grad(self.made, self.inputs, self.dy)

    def second(self):
        """d sum (dL/dx)^2 with respect to x and gamma, L = sum y dy."""
        self.forward()
        first, = torch.autograd.grad(self.made, self.inputs[:1], self.dy, create_graph=True)
        self.made = torch.autograd.grad(first.pow(2).sum(), self.inputs[:2])

    def layer_norm(self, x, gamma, beta):
        return F.layer_norm(x, (self.n,), gamma, beta, EPS)

    def rms_norm(self, x, gamma):
        """PyTorch's own is a composition too, and slower."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * gamma

    def batch_norm(self, x, gamma, beta):
        return F.batch_norm(x, self.mean, self.var, gamma, beta, True, 0.1, EPS)

    def gelu(self, x):
        return F.gelu(x)

    def softmax(self, x):
        return F.softmax(x, -1)

    def cross_entropy(self, x):
        return F.cross_entropy(x, self.labels)

    def bias_add(self, x, bias):
        return x + bias

    residual_add = bias_add

    def conv(self, x, weight, bias):
        return F.conv2d(x, weight, bias, self.stride, self.padding, 1, self.groups)

    depthwise = conv


class Product:
    """C = A B, each turned or not, into memory that is there."""
    before = None

    def __init__(self, name, shape):
        rows, columns, depth = (int(n) for n in shape.split("x"))
        left, right = torch.randn(rows, depth), torch.randn(depth, columns)
        self.a = left.T.contiguous().T if "A^T" in name else left
        self.b = right.T.contiguous().T if "B^T" in name else right
        self.c = torch.empty(rows, columns)

    def run(self):
        torch.mm(self.a, self.b, out=self.c)


def step(net, adam, x, labels):
    adam.zero_grad(set_to_none=True)
    net.loss(x, labels).backward()
    adam.step()


def penalty_step(net, adam, x, labels):
    """The penalty of WGAN-GP: the mean of (|d sum net(x) / dx| - 1)^2."""
    adam.zero_grad(set_to_none=True)
    slope, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    (slope.pow(2).sum(1).sqrt() - 1).pow(2).mean().backward()
    adam.step()


def forward_with(w, x):
    """The network's output with these tensors in the place of its parameters."""
    for i in range(0, len(w) - 2, 4):
        x = F.layer_norm(F.linear(x, w[i], w[i + 1]), w[i + 1].shape, w[i + 2], w[i + 3])
        x = F.relu(x)
    return F.linear(x, w[-2], w[-1])


def maml_step(net, adam, x, labels):
    """Through a step of gradient descent."""
    adam.zero_grad(set_to_none=True)
    w = list(net.parameters())
    loss = F.cross_entropy(forward_with(w, x), labels)
    g = torch.autograd.grad(loss, w, create_graph=True)
    w = [a.sub(b, alpha=0.01) for a, b in zip(w, g)]
    F.cross_entropy(forward_with(w, x), labels).backward()
    adam.step()


def hvp_step(net, adam, x, labels):
    """The Hessian times a direction."""
    w = list(net.parameters())
    if not hasattr(net, "direction"):
        net.direction = [torch.randn_like(a) for a in w]
    loss = F.cross_entropy(forward_with(w, x), labels)
    g = torch.autograd.grad(loss, w, create_graph=True)
    torch.autograd.grad(g, w, net.direction)


class Step:
    """A training step in PyTorch's fastest way: with each form of Adam that this release has, and
    each of several networks, that `build` makes. It may set self.x."""
    before = None
    step = staticmethod(step)

    def fastest(self, networks):
        tried = []
        for network in networks[:1] if MODE == "compiled" else networks:
            self.net = net = self.build(network)
            net.loss = compiled(lambda x, labels, net=net: F.cross_entropy(net(x), labels))
            for form in ({"foreach": False}, {"foreach": True}, {"fused": True}):
                try:
                    self.adam = torch.optim.Adam(net.parameters(), lr=1e-5, **form)
                    self.run()
                except (RuntimeError, TypeError):  # this release has no fused form
                    continue
                tried.append((timed(self, 0.02, 3), net, self.adam, self.x))
        _, self.net, self.adam, self.x = min(tried, key=lambda entry: entry[0])

    def run(self):
        self.step(self.net, self.adam, self.x, self.labels)


class Mlp(Step):
    """ReLU into new memory or in place."""

    def __init__(self, name, shape):
        widths, batch = shape.split("@")
        self.sizes = []
        for part in widths.split("-"):
            width, _, times = part.partition("*")
            self.sizes += [int(width)] * int(times or 1)
        self.x = torch.randn(int(batch), self.sizes[0])
        self.labels = torch.randint(self.sizes[-1], (int(batch),))
        if name == "penalty":
            self.x.requires_grad_()
            self.step = penalty_step
        elif name in ("maml", "hvp"):
            self.step = maml_step if name == "maml" else hvp_step
        self.fastest([False, True])

    def build(self, inplace):
        sizes = self.sizes
        layers = [torch.nn.Linear(sizes[0], sizes[1])]
        for n, m in zip(sizes[1:], sizes[2:]):
            layers += [torch.nn.LayerNorm(n), torch.nn.ReLU(inplace), torch.nn.Linear(n, m)]
        return torch.nn.Sequential(*layers)


class Block(torch.nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.qkv, self.out = torch.nn.Linear(dim, 3 * dim), torch.nn.Linear(dim, dim)
        self.up, self.down = torch.nn.Linear(dim, 4 * dim), torch.nn.Linear(4 * dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Language(torch.nn.Module):
    """ids (batch, length) -> logits (batch length, vocabulary)"""

    def __init__(self, layers, dim, length):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, dim)
        self.positions = torch.nn.Parameter(torch.zeros(length, dim))
        self.blocks = torch.nn.Sequential(*(Block(dim) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(dim), torch.nn.Linear(dim, VOCABULARY)

    def forward(self, ids):
        x = self.blocks(self.embedding(ids) + self.positions)
        return self.head(self.norm(x)).flatten(0, 1)


class Transformer(Step):
    def __init__(self, name, shape):
        self.layers, self.dim = (int(n) for n in name.split("-")[1].split("x"))
        batch, self.length = (int(n) for n in shape.split("x"))
        self.x = torch.randint(VOCABULARY, (batch, self.length))
        self.labels = torch.randint(VOCABULARY, (batch * self.length,))
        self.fastest([None])

    def build(self, _):
        return Language(self.layers, self.dim, self.length)


class Tagger(torch.nn.Module):
    """x (batch, steps, n) -> logits (batch steps, n), an LSTM's states."""

    def __init__(self, n, batch_first):
        super().__init__()
        self.lstm = torch.nn.LSTM(n, n, batch_first=batch_first)

    def forward(self, x):
        return self.lstm(x)[0].flatten(0, 1)


class Lstm(Step):
    """The batch first or the steps."""

    def __init__(self, name, shape):
        self.n = int(name.split("-")[1])
        self.batch, self.steps = (int(n) for n in shape.split("x"))
        self.labels = torch.randint(self.n, (self.batch * self.steps,))
        self.fastest([False, True])

    def build(self, batch_first):
        first = (self.batch, self.steps) if batch_first else (self.steps, self.batch)
        self.x = torch.randn(*first, self.n)
        return Tagger(self.n, batch_first)


class Cnn(Step):
    """Two convolutions for MNIST, with the channels in front of the pixels or behind them."""

    def __init__(self, name, shape):
        self.batch, self.side = (int(n) for n in shape.split("x"))
        self.labels = torch.randint(10, (self.batch,))
        self.fastest([torch.contiguous_format, torch.channels_last])

    def build(self, layout):
        self.x = torch.randn(self.batch, 1, self.side, self.side).to(memory_format=layout)
        conv = lambda n, m: [torch.nn.Conv2d(n, m, 5, 2, 2, bias=False), torch.nn.BatchNorm2d(m),
                             torch.nn.ReLU(True)]
        side = (self.side + 3) // 4
        return torch.nn.Sequential(*conv(1, 16), *conv(16, 32), torch.nn.Flatten(),
                                   torch.nn.Linear(32 * side * side, 10)).to(memory_format=layout)


def sample(job, count):
    if job.before:
        job.before()
    run = job.run
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return time.perf_counter() - begin


def timed(job, seconds, least):
    """Median seconds of one run; engine.c does the same."""
    begin = time.perf_counter()
    while True:
        once = sample(job, 1)
        if time.perf_counter() - begin >= 0.1 * seconds:
            break
    together = 1 if job.before else min(max(int(SHORTEST_SAMPLE / once), 1), 1000)
    samples = []
    while len(samples) < least or time.perf_counter() - begin < seconds:
        samples.append(sample(job, together) / together)
    return statistics.median(samples)


KINDS = {"mlp": Mlp, "depth": Mlp, "batch": Mlp, "penalty": Mlp, "maml": Mlp, "hvp": Mlp, "cnn": Cnn,
         "transformer": Transformer, "lstm": Lstm}


def opened(group, name, shape):
    if MODE == "compiled":
        torch._dynamo.reset()
    if group == "product":
        return Product(name, shape)
    kind = KINDS.get(name.split("-")[0])
    return kind(name, shape) if kind else Op(group, name, shape)


def blas():
    """What multiplies matrices. None for the reference BLAS, which is no peer."""
    if torch.backends.mkl.is_available():
        return "MKL"
    with open("/proc/self/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if "blas" in line})
    for path in paths:
        library = ctypes.CDLL(path)
        if hasattr(library, "openblas_get_config"):
            library.openblas_get_config.restype = ctypes.c_char_p
            words = library.openblas_get_config().decode().split()
            return f"{words[0]} {words[1]} for {words[-2]}"
    return None if any("/libblas." in path for path in paths) else "its own BLAS"


def greeting():
    """The name and what counts for the times; or "no", and why this is no peer here."""
    version = torch.__version__.split("+")[0]
    if not blas():
        return "no it multiplies with the reference BLAS, which is no fair peer; make deps-bench " \
               "installs OpenBLAS"
    if MODE == "pytorch":
        isa = re.search("CPU capability usage: (.*)", torch.__config__.show())[1].lower()
        return f"ready PyTorch {version} for {isa}, {blas()}"
    if not hasattr(torch, "compile"):
        return f"no PyTorch {version} does not have it"
    try:
        from torch._inductor import config, cpu_vec_isa
        config.cpp.threads = torch.get_num_threads()
        config.cpp.vec_isa_ok = True  # to find that out it starts PyTorch twice more
        torch.compile(lambda x: x.exp() + 1)(torch.ones(64))
        isa = str(cpu_vec_isa.pick_vec_isa())
    except Exception as error:
        return f"no it does not work here: {str(error.__cause__ or error).split(chr(10))[0]:.90}"
    if "avx" not in isa and "asimd" not in isa:
        return "no it compiles without vectors here (it needs g++, libtorch-dev, libsleef-dev)"
    return f"ready torch.compile for {isa.split()[0]}"


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    print(greeting(), flush=True)
    job = None
    for line in iter(sys.stdin.readline, ""):
        words, answer = line.split(), "ok"
        if words[0] == "time":
            answer = "%.9g" % (1e6 * timed(job, 1e-3 * float(words[1]), int(words[2])))
        else:
            job = None
        if words[0] == "open":
            try:
                job = opened(*words[1:])
                sample(job, 1)
            except Exception as error:
                print("PyTorch:", error, file=sys.stderr)
                answer = "no"
        print(answer, flush=True)


main()
