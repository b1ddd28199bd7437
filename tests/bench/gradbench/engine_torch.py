#!/usr/bin/env python3
"""PyTorch as a tool of GradBench, in double: engine_torch.py MODULE. Each function is written as
suits PyTorch best, with whole arrays."""
import json
import math
import sys
import time

import torch

from gradbench import MODULES

F64 = torch.float64
gradient = torch.autograd.grad


def tensor(data, grad=False):
    return torch.tensor(data, dtype=F64, requires_grad=grad)


# ---- The modules: each returns the primal and the gradient as functions ---------------------------


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
        (g,) = gradient(cost(), centroids, create_graph=True)
        (h,) = gradient(g.sum(), centroids)
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
        rows = [torch.cat(gradient(reprojection[i].sum(), given_to, retain_graph=True))
                for i in range(2)]
        (of_weight,) = gradient(weight.sum(), given_to[2])
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


def ht(given):
    """Rows of theta, as many as it has elements, are moved along their axes at once."""
    data, model = given["data"], given["data"]["model"]
    theta, us, points = tensor(given["theta"]), tensor(given["us"]), tensor(data["points"])
    base, inverse, position, weight = (tensor(model[name]) for name in (
        "base_relatives", "inverse_base_absolutes", "base_positions", "weights"))
    corners = torch.tensor(model["triangles"])[torch.tensor(data["correspondences"])]
    skin = (weight[:, :, None] * position[:, None, :]).flatten(1)
    places = torch.zeros(len(model["parents"]), 2, dtype=torch.long) + 26  # 26: no angle
    for finger in range(5):
        for joint in range(3):
            first = 6 + 4 * finger
            places[2 + 4 * finger + joint, 0] = first + joint + (joint > 0)
        places[2 + 4 * finger, 1] = first + 1

    def vertices(rows):  # (k, 26) -> (vertices, k, 3)
        k = len(rows)
        x, z = torch.cat([rows, torch.zeros(k, 1, dtype=F64)], 1).T[places].unbind(1)
        cx, sx, cz, sz, one = x.cos(), x.sin(), z.cos(), z.sin(), torch.ones_like(x)
        no = torch.zeros_like(x)
        turned = torch.stack([cz, -sz * cx, sz * sx, no, sz, cz * cx, -cz * sx, no,
                              no, sx, cx, no, no, no, no, one], -1).reshape(-1, k, 4, 4)
        relative, absolute = base[:, None] @ turned, []
        for i, parent in enumerate(model["parents"]):
            absolute.append(relative[i] if parent < 0 else absolute[parent] @ relative[i])
        moved = (torch.stack(absolute) @ inverse[:, None])[:, :, :3]  # (bones, k, 3, 4)
        r, angle = rows[:, :3], rows[:, :3].square().sum(1).sqrt()[:, None, None]
        n, no = r / angle[:, 0], torch.zeros(k, dtype=F64)
        cross = torch.stack([no, -n[:, 2], n[:, 1], n[:, 2], no, -n[:, 0], -n[:, 1], n[:, 0], no],
                            1).reshape(k, 3, 3)
        along = n[:, :, None] * n[:, None]
        turn = along + (torch.eye(3, dtype=F64) - along) * angle.cos() + cross * angle.sin()
        all_bones = (turn @ moved).permute(0, 3, 1, 2).reshape(-1, 3 * k)
        return (skin @ all_bones).reshape(-1, k, 3) + rows[:, 3:6]

    def blend(x, u):
        first, second, third = x[corners[:, 0]], x[corners[:, 1]], x[corners[:, 2]]
        return third + u[:, 0, None] * (first - third) + u[:, 1, None] * (second - third)

    def along(y, x, direction):
        ones = torch.ones_like(y, requires_grad=True)
        (g,) = gradient(y, x, ones, create_graph=True)
        return gradient((g * direction).sum(), ones)[0]

    def objective():
        return (points - blend(vertices(theta[None])[:, 0], us)).flatten()

    def jacobian():
        rows = theta.expand(26, 26).clone().requires_grad_()
        moved = vertices(rows)
        slopes = along(moved, rows, torch.eye(26, dtype=F64)).flatten(1)
        of_theta = -blend(slopes, us).reshape(-1, 26, 3).transpose(1, 2)
        u = us.clone().requires_grad_()
        error = points - blend(moved[:, 0].detach(), u)
        axes = torch.eye(2, dtype=F64)
        of_u = torch.stack([along(error, u, axis.expand_as(u)) for axis in axes], 2)
        return torch.cat([of_u, of_theta], 2).flatten(0, 1)
    return objective, jacobian


def descend(value, start, inner):
    """Gradient descent; an inner one's steps stay in the graph."""
    x = start.clone().requires_grad_()
    y, rate, steps = value(x), 1e-5, 0
    (g,) = gradient(y, x, create_graph=inner)
    while g.norm() > 1e-5:
        if steps == 10:
            rate, steps = 2 * rate, 0
        following = x - rate * g if inner else (x - rate * g).detach().requires_grad_()
        if (x - following).norm() <= 1e-5:
            break
        z = value(following)
        if z < y:
            (g,) = gradient(z, following, create_graph=inner)
            x, y, steps = following, z if inner else z.detach(), steps + 1
        else:
            rate, steps = rate / 2, 0
    return x


def saddle(given):
    start = tensor(given["start"])

    def f(x, y):
        return x.square().sum() - y.square().sum()

    def rr():
        x = descend(lambda x: f(x, descend(lambda y: -f(x, y), start, True)), start, False)
        return torch.cat([x, descend(lambda y: -f(x.detach(), y), start, False)]).detach()
    return None, rr


def particle(given):
    def miss(w):
        x, v = tensor([0.0, 8.0], True), tensor([0.75, 0.0])
        charges = torch.stack([tensor([10.0, 0.0]), tensor([10.0, 10.0]) - tensor([0.0, 1.0]) * w])
        while True:
            following = x + 0.1 * v
            if following[1] <= 0:
                return (x[0] - x[1] / v[1] * v[0]).square()
            potential = (1 / (x - charges).square().sum(1).sqrt()).sum()
            (force,) = gradient(potential, x, create_graph=True)
            x, v = following, v - 0.1 * force
    return None, lambda: descend(miss, tensor([given["w"]]), False).detach()[0]


def evaluate(module, message):
    given = message["input"]
    functions = dict(zip(MODULES[module][1], globals()[module](given)))
    function, limits = functions[message["function"]], given if isinstance(given, dict) else {}
    times = []
    torch.set_grad_enabled(function is list(functions.values())[1])
    while len(times) < limits.get("min_runs", 1) or sum(times) < 1e9 * limits.get("min_seconds", 0):
        begin = time.perf_counter_ns()
        output = function()
        times.append(time.perf_counter_ns() - begin)
    return {"success": True, "output": output,
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
        print(json.dumps(answer, default=torch.Tensor.tolist), flush=True)


if __name__ == "__main__":
    main()
