"""PyTorch, for tests/accuracy/norms: reads requests, writes results (engines.c has the form)."""
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(1)
torch.set_num_threads(1)


def read(shape, dtype):
    count = 1
    for size in shape:
        count *= size
    raw = bytearray(sys.stdin.buffer.read(8 * count))
    values = torch.frombuffer(raw, dtype=torch.float64) if count else torch.zeros(0)
    return values.to(dtype).reshape(shape).requires_grad_()


def results_of(op, dtype, rows, n, eps):
    """y, dx, dgamma and the gradients of the second order; None: there is none."""
    x, dy, v = (read((rows, n), dtype) for _ in range(3))
    row = (rows, n) if op == "attention" else (rows,) if op == "batch_norm" else (n,)
    gamma, beta = read(row, dtype), read(row, dtype)
    if op == "layer_norm":
        y = F.layer_norm(x, (n,), gamma, beta, eps)
    elif op == "rms_norm":
        y = F.rms_norm(x, (n,), gamma, eps) + beta
    elif op == "batch_norm":
        y = F.batch_norm(x.T.contiguous(), None, None, gamma, beta, True, 0.1, eps).T
    elif op == "softmax":
        y = F.softmax(x, -1)
    elif op == "log_softmax":
        y = F.log_softmax(x, -1)
    elif op == "variance":
        y = x.var(-1, correction=0)
    elif op == "cross_entropy":
        y = F.cross_entropy(x, torch.zeros(rows, dtype=torch.int64), reduction="none")
    elif op == "attention":
        y = F.scaled_dot_product_attention(x[None], gamma[None], beta[None])[0]
    if y.dim() == 1:
        return y, torch.autograd.grad(y, x, dy[:, 0])[0], None, None, None
    if op == "attention":
        dq, dk, dv = torch.autograd.grad(y, (x, gamma, beta), dy)
        return y, dq, None, dk, dv
    if not op.endswith("norm"):
        return y, torch.autograd.grad(y, x, dy)[0], None, None, None
    # Gradients that are recorded may be those of other formulas.
    dx, dgamma = torch.autograd.grad(y, (x, gamma), dy, retain_graph=True)
    recorded = torch.autograd.grad(y, x, dy, create_graph=True)[0]
    return (y, dx, dgamma) + torch.autograd.grad(recorded, (x, dy), v)


print("PyTorch", torch.__version__, flush=True)
while line := sys.stdin.buffer.readline():
    op, single, rows, n, eps = line.decode().split()
    dtype = torch.float32 if single == "1" else torch.float64
    try:
        results = results_of(op, dtype, int(rows), int(n), float(eps))
    except ValueError:  # BatchNorm of one sample
        results = ()
    bits = sum(1 << i for i, result in enumerate(results) if result is not None)
    sys.stdout.buffer.write(b"%d\n" % bits)
    for result in results:
        if result is not None:
            sys.stdout.buffer.write(result.detach().double().contiguous().numpy().tobytes())
    sys.stdout.buffer.flush()
