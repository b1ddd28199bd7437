"""The engine PyTorch, in eager mode: the other side of the protocol in engine.h."""
import os
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(3)
import torch.nn.functional as F

EPS = 1e-5
CHAIN = 200
VOCABULARY = 96
HEADS = 4
SHORTEST_SAMPLE = 20e-6


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


class Op:
    """One op, forward or backward. What a run made is let go before the next begins, so that the
    allocator can give the same memory again."""

    def __init__(self, group, name, shape, dtype):
        rows, columns = (int(n) for n in shape.split("x"))
        dtype = torch.float64 if dtype == "f64" else torch.float32
        self.per = 1
        self.op = name.replace("_forward", "").replace("_backward", "")
        self.n = columns
        self.made = None
        matrix = lambda: torch.empty(rows, columns, dtype=dtype).uniform_(-2, 2)
        row = lambda: torch.empty(columns, dtype=dtype).uniform_(0.5, 1.5)
        second = {"layer_norm": row, "rms_norm": row, "batch_norm": row, "bias_add": row,
                  "residual_add": matrix, "add": matrix, "mul": matrix}
        self.inputs = [matrix()]
        if self.op in second:
            self.inputs.append(second[self.op]())
        if self.op in ("layer_norm", "batch_norm"):
            self.inputs.append(row())
        for tensor in self.inputs:
            tensor.requires_grad_()
        self.mean, self.var = torch.zeros(columns, dtype=dtype), torch.ones(columns, dtype=dtype)
        self.labels = torch.randint(columns, (rows,))
        self.call = getattr(self, self.op)
        if group == "overhead":
            self.per = CHAIN
            self.dy = torch.ones(rows, columns, dtype=dtype)
            for tensor in self.inputs[1:]:  # a thousand factors leave the range of float
                tensor.data.uniform_(0.999, 1.001)
            self.before, self.run = None, self.both
        elif group == "second":
            self.dy = matrix()
            self.before, self.run = None, self.second
        elif "backward" in group + name:
            self.dy = torch.randn(()) if self.op == "cross_entropy" else matrix()
            self.before, self.run = self.forward, self.backward
        else:
            self.before, self.run = None, self.forward

    def forward(self):
        self.made = None
        self.made = self.call(*self.inputs)

    def backward(self):
        self.made = torch.autograd.grad(self.made, self.inputs, self.dy)

    def both(self):
        self.forward()
        self.backward()

    def second(self):
        """d sum (dL/dx)^2 with respect to x and gamma, L = sum y dy."""
        self.forward()
        first, = torch.autograd.grad(self.made, self.inputs[:1], self.dy, create_graph=True)
        self.made = torch.autograd.grad(first.pow(2).sum(), self.inputs[:2])

    def layer_norm(self, x, gamma, beta):
        return F.layer_norm(x, (self.n,), gamma, beta, EPS)

    def rms_norm(self, x, gamma):
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

    def add(self, y, b):
        for _ in range(CHAIN):
            y = y + b
        return y

    def mul(self, y, b):
        for _ in range(CHAIN):
            y = y * b
        return y

    def tanh(self, y):
        for _ in range(CHAIN):
            y = torch.tanh(y)
        return y


def step(net, adam, x, labels):
    adam.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), labels).backward()
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
    """A training step in PyTorch's fastest way: `build` makes a network and its optimizer for each
    of several ways, the last of which needs the least memory."""

    before = None
    per = 1
    step = staticmethod(step)

    def fastest(self, ways, least_memory=False):
        times = [] if least_memory else [self.timed(way) for way in ways]
        way = ways[times.index(min(times))] if times else ways[-1]
        self.net, self.adam = self.build(*way)

    def timed(self, way):
        self.net, self.adam = self.build(*way)
        return timed(self, 0.02, 3)

    def run(self):
        self.step(self.net, self.adam, self.x, self.labels)


class Mlp(Step):
    """Adam's loop over tensors or its foreach form, ReLU into new memory or in place."""

    def __init__(self, group, name, shape):
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
        ways = [(True, False), (True, True), (False, False), (False, True)]
        self.fastest(ways, group == "memory")

    def build(self, foreach, inplace):
        sizes = self.sizes
        layers = [torch.nn.Linear(sizes[0], sizes[1])]
        for n, m in zip(sizes[1:], sizes[2:]):
            layers += [torch.nn.LayerNorm(n), torch.nn.ReLU(inplace), torch.nn.Linear(n, m)]
        net = torch.nn.Sequential(*layers)
        return net, torch.optim.Adam(net.parameters(), lr=1e-5, foreach=foreach)


def attend_in_one(q, k, v, mask):
    return F._scaled_dot_product_attention(q, k, v, None, 0.0, False, True)[0]


def attend_with_bmm(q, k, v, mask):
    batch, heads, length, dim = q.shape
    q, k, v = (x.reshape(-1, length, dim) for x in (q, k, v))
    weights = F.softmax(torch.baddbmm(mask, q, k.transpose(1, 2), alpha=dim**-0.5), -1)
    return torch.bmm(weights, v).view(batch, heads, length, dim)


class Block(torch.nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, dim, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.norm1, self.norm2 = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.qkv, self.out = torch.nn.Linear(dim, 3 * dim), torch.nn.Linear(dim, dim)
        self.up, self.down = torch.nn.Linear(dim, 4 * dim), torch.nn.Linear(4 * dim, dim)

    def forward(self, x, mask):
        batch, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = self.attend(q, k, v, mask).transpose(1, 2).reshape(batch, length, dim)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Language(torch.nn.Module):
    """ids (batch, length) -> logits (batch length, vocabulary)"""

    def __init__(self, layers, dim, length, attend):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, dim)
        self.positions = torch.nn.Parameter(torch.zeros(length, dim))
        self.blocks = torch.nn.ModuleList(Block(dim, HEADS, attend) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(dim), torch.nn.Linear(dim, VOCABULARY)
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x)).flatten(0, 1)


class Transformer(Step):
    """Adam's two forms; the attention written with batched products, or PyTorch's own function
    where this release has it."""

    def __init__(self, name, shape):
        self.layers, self.dim = (int(n) for n in name.split("-")[1].split("x"))
        batch, self.length = (int(n) for n in shape.split("x"))
        self.x = torch.randint(VOCABULARY, (batch, self.length))
        self.labels = torch.randint(VOCABULARY, (batch * self.length,))
        attends = [attend_with_bmm]
        if hasattr(F, "_scaled_dot_product_attention"):
            attends.append(attend_in_one)
        self.fastest([(foreach, attend) for foreach in (False, True) for attend in attends])

    def build(self, foreach, attend):
        net = Language(self.layers, self.dim, self.length, attend)
        return net, torch.optim.Adam(net.parameters(), lr=1e-5, foreach=foreach)


class Tagger(torch.nn.Module):
    """x (batch, steps, n) -> logits (batch steps, n), an LSTM's states; steps first where it is told
    so."""

    def __init__(self, n, batch_first):
        super().__init__()
        self.lstm = torch.nn.LSTM(n, n, batch_first=batch_first)

    def forward(self, x):
        return self.lstm(x)[0].flatten(0, 1)


class Lstm(Step):
    """Adam's two forms, the batch first or the steps."""

    def __init__(self, name, shape):
        self.n = int(name.split("-")[1])
        batch, steps = (int(n) for n in shape.split("x"))
        self.labels = torch.randint(self.n, (batch * steps,))
        self.given = {True: torch.randn(batch, steps, self.n),
                      False: torch.randn(steps, batch, self.n)}
        self.fastest([(foreach, first) for foreach in (False, True) for first in (False, True)])

    def build(self, foreach, batch_first):
        self.x = self.given[batch_first]
        net = Tagger(self.n, batch_first)
        return net, torch.optim.Adam(net.parameters(), lr=1e-5, foreach=foreach)


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
    return median(samples) / job.per


def opened(group, name, shape, dtype):
    if "@" in shape:
        return Mlp(group, name, shape)
    if name.startswith("transformer"):
        return Transformer(name, shape)
    if name.startswith("lstm"):
        return Lstm(name, shape)
    return Op(group, name, shape, dtype)


def peak():
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM:"))


def settle(group, words):
    """Threads of OpenMP that wait by spinning serve norms, but hold up those of the BLAS, which
    take turns with them in a step. How long they spin is read when the process begins: it begins
    anew, in the midst of the dialogue, with the request that it is to answer."""
    spin = "3000" if group in ("step", "scale", "memory", "second") else "30000"
    if os.environ.get("GOMP_SPINCOUNT") != spin:
        os.environ["GOMP_SPINCOUNT"] = spin
        os.execv(sys.executable, [sys.executable, *sys.argv[:1], *words])


def requests():
    """The lines of the dialogue, first the one that the process began anew with."""
    if len(sys.argv) > 1:
        yield " ".join(sys.argv[1:])
    yield from iter(sys.stdin.readline, "")


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    if len(sys.argv) == 1:
        print("ready PyTorch", torch.__version__, flush=True)
    job = None
    for line in requests():
        words = line.split()
        if words[0] == "open":
            settle(words[1], words)
            job = None
            try:
                job = opened(*words[1:])
                sample(job, 1)
                answer = "ok"
            except Exception as error:
                print("PyTorch:", error, file=sys.stderr)
                answer = "no"
        elif words[0] == "time" and job:
            answer = "%.9g" % (1e6 * timed(job, 1e-3 * float(words[1]), int(words[2])))
        elif words[0] == "peak":
            answer = peak()
        else:
            job = None
            answer = "ok"
        print(answer, flush=True)


main()
