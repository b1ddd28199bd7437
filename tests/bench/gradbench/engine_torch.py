#!/usr/bin/env python3
"""PyTorch as a tool of GradBench, in double: engine_torch.py MODULE. Each function is written as
suits PyTorch best, with whole arrays."""
import json
import math
import sys
import time

import torch

F64 = torch.float64


def tensor(data, grad=False):
    return torch.tensor(data, dtype=F64, requires_grad=grad)


def gradient(y, x):
    return torch.autograd.grad(y, x)


# ---- The modules: prepare returns the primal and the gradient as functions ------------------------


def hello(given):
    x = tensor(given, True)
    return lambda: x * x, lambda: gradient(x * x, x)[0]


def lse(given):
    x = tensor(given["x"], True)

    def y():
        a = x.detach().max()
        return (x - a).exp().sum().log() + a
    return y, lambda: gradient(y(), x)[0]


def llsq(given):
    x, n = tensor(given["x"], True), given["n"]

    def y():
        t = -1 + torch.arange(n, dtype=F64) * 2 / (n - 1)
        powers = torch.cumprod(torch.cat([torch.ones(n, 1, dtype=F64),
                                          t[:, None].expand(-1, len(x) - 1)], 1), 1)
        return (t.sign() - powers @ x).square().sum() / 2
    return y, lambda: gradient(y(), x)[0]


def ode(given):
    x, h = tensor(given["x"], True), 2 / given["s"]
    one = torch.ones(1, dtype=F64)

    def slope(y):
        return x * torch.cat([one, y[:-1]])

    def final():
        y = torch.zeros_like(x)
        for _ in range(given["s"]):
            k1 = slope(y)
            k2 = slope(torch.add(y, k1, alpha=h / 2))
            k3 = slope(torch.add(y, k2, alpha=h / 2))
            k4 = slope(torch.add(y, k3, alpha=h))
            y = torch.add(y, k1 + 2 * k2 + 2 * k3 + k4, alpha=h / 6)
        return y
    return final, lambda: gradient(final()[-1], x)[0]


def kmeans(given):
    points, centroids = tensor(given["points"]), tensor(given["centroids"], True)

    def cost():
        with torch.no_grad():
            nearest = (centroids.square().sum(1) - 2 * points @ centroids.T).argmin(1)
        return (points - centroids[nearest]).square().sum()

    def direction():
        (g,) = torch.autograd.grad(cost(), centroids, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), centroids)
        return g.detach() / h
    return cost, direction


def det(given):
    order, a = given["ell"], tensor(given["A"], True)
    minors = {m: torch.tensor([[r * m + c + (c >= j) for j in range(m)]
                               for r in range(1, m) for c in range(m - 1)])
              for m in range(2, order + 1)}
    signs = torch.tensor([(-1.0) ** j for j in range(order)], dtype=F64)

    def determinants(cells, m):
        if m == 1:
            return cells
        of_minors = determinants(cells[minors[m]].reshape((m - 1) ** 2, -1), m - 1)
        return signs[None, :m] @ (cells[:m] * of_minors.reshape(m, -1))

    def y():
        return determinants(a[:, None], order).reshape(())
    return y, lambda: gradient(y(), a)[0]


def gmm(given):
    d, k, n, m, gamma = (given[name] for name in ("d", "k", "n", "m", "gamma"))
    x = tensor(given["x"])
    leaves = {name: tensor(given[name], True) for name in ("alpha", "mu", "q", "l")}
    columns, rows = zip(*[(c, r) for c in range(d) for r in range(c + 1, d)])
    freedom = d + m + 1

    def y():
        alpha, mu, q, l = leaves.values()
        factor = torch.diag_embed(q.exp())
        factor[:, rows, columns] = l
        z = (x @ factor.reshape(k * d, d).T).reshape(n, k, d) - torch.einsum("kij,kj->ki", factor, mu)
        beta = alpha + q.sum(1) - 0.5 * z.square().sum(2)
        prior = m * q.sum() - 0.5 * gamma ** 2 * (q.exp().square().sum() + l.square().sum())
        constant = k * (freedom * d * math.log(gamma / math.sqrt(2))
                        - torch.special.multigammaln(torch.tensor(0.5 * freedom, dtype=F64), d))
        return (beta.logsumexp(1).sum() - n * alpha.logsumexp(0) + prior + constant
                - 0.5 * n * d * math.log(2 * math.pi))
    return y, lambda: dict(zip(leaves, gradient(y(), list(leaves.values()))))


def lstm(given):
    main, extra = tensor(given["main_params"], True), tensor(given["extra_params"], True)
    state, text = tensor(given["state"]), tensor(given["sequence"])
    bits, layers = text.shape[1], len(state) // 2

    def loss():
        w, b = main[0::2].reshape(layers, 4, bits), main[1::2].reshape(layers, 4, bits)
        xs = (text[:-1] * extra[0]).unbind()
        for i in range(layers):
            (wf, wi, wo, wg), (bf, bi, bo, bg) = w[i].unbind(), b[i].unbind()
            h, c = state[2 * i], state[2 * i + 1]
            x = torch.stack(xs)
            forget, out = torch.sigmoid(x * wf + bf).unbind(), torch.sigmoid(x * wo + bo).unbind()
            xs = []
            for f, o in zip(forget, out):
                c = c * f + torch.sigmoid(h * wi + bi) * torch.tanh(h * wg + bg)
                h = o * torch.tanh(c)
                xs.append(h)
        y = torch.stack(xs) * extra[1] + extra[2]
        norm = y - (y.exp().sum(1, keepdim=True) + 2).log()
        return -(text[1:] * norm).sum() / norm.numel()
    return loss, lambda: torch.cat([g.reshape(-1) for g in gradient(loss(), [main, extra])])


def ba(given):
    n, m, p = given["n"], given["m"], given["p"]
    camera_of, point_of = torch.arange(p) % n, torch.arange(p) % m
    cameras, points = tensor(given["cam"]).repeat(n, 1), tensor(given["x"]).repeat(m, 1)
    w0, feature = torch.full((1, p), given["w"], dtype=F64), tensor(given["feat"]).repeat(p, 1).T

    def errors(camera, x, w):
        r, center = camera[0:3], x - camera[3:6]
        angle = r.square().sum(0).sqrt()
        along = (r * center).sum(0) * (1 - angle.cos()) / angle ** 2
        turned = (center * angle.cos() + torch.cross(r, center, dim=0) * (angle.sin() / angle)
                  + r * along)
        at = turned[0:2] / turned[2]
        square = at.square().sum(0)
        scale = 1 + camera[9] * square + camera[10] * square * square
        return w * (at * scale * camera[6] + camera[7:9] - feature), 1 - w * w

    def inputs(grad):
        return [t.contiguous().requires_grad_(grad)
                for t in (cameras[camera_of].T, points[point_of].T, w0)]

    def objective():
        reprojection, weight = errors(*inputs(False))
        first = reprojection.T.reshape(-1)
        return {"reproj_error": {"elements": first[:2], "repeated": p},
                "w_err": {"element": weight[0, 0], "repeated": p}}

    def jacobian():
        given_to = inputs(True)
        reprojection, weight = errors(*given_to)
        rows = [torch.cat(torch.autograd.grad(reprojection[i].sum(), given_to, retain_graph=True))
                for i in range(2)]
        (of_weight,) = torch.autograd.grad(weight.sum(), given_to[2])
        values = torch.cat([torch.stack(rows).permute(2, 0, 1).reshape(-1), of_weight[0]])
        observation = torch.arange(p, dtype=torch.int32)[:, None]
        own = 11 * n + 3 * m + observation
        block = torch.cat([11 * camera_of[:, None] + torch.arange(11),
                           11 * n + 3 * point_of[:, None] + torch.arange(3), own], 1)
        columns = torch.cat([block[:, None].expand(-1, 2, -1).reshape(-1), own[:, 0]])
        rows = torch.cat([15 * torch.arange(2 * p), 30 * p + torch.arange(p + 1)])
        return {name: torch.cat([x[:30], x[-1:]])
                for name, x in (("rows", rows), ("cols", columns), ("vals", values))}
    return objective, jacobian


NAMES = {"hello": ("square", "double"), "kmeans": ("cost", "dir"), "det": ("primal", "gradient"),
         "llsq": ("primal", "gradient"), "lse": ("primal", "gradient"), "ode": ("primal", "gradient")}


def plain(output):
    if isinstance(output, dict):
        return {name: plain(part) for name, part in output.items()}
    return output.tolist() if isinstance(output, torch.Tensor) else output


def evaluate(module, message):
    given = message["input"]
    functions = dict(zip(NAMES.get(module, ("objective", "jacobian")), globals()[module](given)))
    function, limits = functions[message["function"]], given if isinstance(given, dict) else {}
    times = []
    torch.set_grad_enabled(function is list(functions.values())[1])
    while len(times) < limits.get("min_runs", 1) or sum(times) < 1e9 * limits.get("min_seconds", 0):
        begin = time.perf_counter_ns()
        output = function()
        times.append(time.perf_counter_ns() - begin)
    return {"success": True, "output": plain(output),
            "timings": [{"name": "evaluate", "nanoseconds": t} for t in times]}


def main():
    torch.set_num_threads(1)
    for line in sys.stdin:
        message = json.loads(line)
        answer = {"id": message["id"]}
        if message["kind"] == "define":
            answer["success"] = message["module"] == sys.argv[1]
        if message["kind"] == "evaluate":
            answer |= evaluate(sys.argv[1], message)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
