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
            self.before, self.run = None, self.both
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


class Step:
    """A training step in PyTorch's fastest way: Adam's loop over tensors or its foreach form, ReLU
    into new memory or in place, whichever is fastest on this network."""

    before = None
    per = 1

    def __init__(self, group, shape):
        widths, batch = shape.split("@")
        sizes = []
        for part in widths.split("-"):
            width, _, times = part.partition("*")
            sizes += [int(width)] * int(times or 1)
        self.x = torch.randn(int(batch), sizes[0])
        self.labels = torch.randint(sizes[-1], (int(batch),))
        ways = [(foreach, inplace) for foreach in (False, True) for inplace in (False, True)]
        if group == "memory":  # the least
            self.build(sizes, False, True)
            return
        times = []
        for way in ways:
            self.build(sizes, *way)
            times.append(timed(self, 0.02, 3))
        self.build(sizes, *ways[times.index(min(times))])

    def build(self, sizes, foreach, inplace):
        layers = [torch.nn.Linear(sizes[0], sizes[1])]
        for n, m in zip(sizes[1:], sizes[2:]):
            layers += [torch.nn.LayerNorm(n), torch.nn.ReLU(inplace), torch.nn.Linear(n, m)]
        self.net = torch.nn.Sequential(*layers)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=1e-5, foreach=foreach)

    def run(self):
        self.adam.zero_grad(set_to_none=True)
        F.cross_entropy(self.net(self.x), self.labels).backward()
        self.adam.step()


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
        return Step(group, shape)
    return Op(group, name, shape, dtype)


def peak():
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM:"))


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    print("ready PyTorch", torch.__version__, flush=True)
    job = None
    for line in iter(sys.stdin.readline, ""):
        words = line.split()
        if words[0] == "open":
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
