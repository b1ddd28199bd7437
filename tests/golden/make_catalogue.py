"""Writes catalogue.txt: what PyTorch computes in double for the layers of tests/norms.

    python3 tests/golden/make_catalogue.py

The format is that of make_golden.py. Each layer is the formula of its paper, written out below and
differentiated by autograd. A row has x, perhaps a condition, each parameter and buffer by the
layer's name of it, y, dy, the gradient to each input, and the buffers afterwards, "after.NAME".
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20251125)
HERE = os.path.dirname(os.path.abspath(__file__))

out = open(os.path.join(HERE, "catalogue.txt"), "w")
out.write("# PyTorch %s, float64; written by make_catalogue.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


def case(name, function, x, condition=None, buffers=None, **parameters):
    """y = function(x, [condition,] parameters and buffers by name); a function with buffers returns
    y and the buffers afterwards. A '__' in a name is a '.'."""
    inputs = {"x": x}
    if condition is not None:
        inputs["condition"] = condition
    parameters = {key.replace("__", "."): value for key, value in parameters.items()}
    inputs.update(parameters)
    for key, value in inputs.items():
        write(name + "/" + key, value)
        value.requires_grad_()
    operands = [x] if condition is None else [x, condition]
    if buffers is None:
        y, after = function(*operands, parameters), {}
    else:
        for key, value in buffers.items():
            write(name + "/" + key, value)
        y, after = function(*operands, {**parameters, **buffers})
    dy = torch.randn(y.shape)
    write(name + "/y", y)
    write(name + "/dy", dy)
    for key, gradient in zip(inputs, torch.autograd.grad(y, list(inputs.values()), dy)):
        write(name + "/d" + key, gradient)
    for key, value in after.items():
        write(name + "/after." + key, value)


def normal(*shape, mean=0.0, deviation=1.0):
    return mean + deviation * torch.randn(shape)


def gamma_like(*shape):
    return normal(*shape, mean=1.0, deviation=0.3)


def wide(c, x):
    """Numbers per channel against x (N, C, ...)."""
    return c.reshape([1, -1] + [1] * (x.dim() - 2))


def positions(x):
    return list(range(2, x.dim()))


# ---- Unit offset: Gemma's RMSNorm, Apex's LayerNorm ------------------------------------------------

def rms(x, eps):
    return x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + eps)


def layer_norm(x, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + eps)


case("rms_norm_offset", lambda x, p: rms(x, 1e-6) * (1 + p["weight"]), normal(3, 6),
     weight=normal(6, deviation=0.3))
case("layer_norm_offset", lambda x, p: layer_norm(x) * (1 + p["weight"]) + p["bias"],
     normal(2, 3, 6), weight=normal(6, deviation=0.3), bias=normal(6))
case("channel_norm_offset",
     lambda x, p: (layer_norm(x.transpose(1, -1)) * (1 + p["weight"]) + p["bias"]).transpose(1, -1),
     normal(2, 6, 3, 2), weight=normal(6, deviation=0.3), bias=normal(6))

# ---- Gated RMSNorm ---------------------------------------------------------------------------------

# Mamba-2's rms_norm_ref(x, weight, z, group_size, norm_before_gate), eps 1e-5
def gated(groups, norm_first):
    def function(x, z, p):
        if not norm_first:
            x = x * F.silu(z)
        parts = rms(x.reshape(*x.shape[:-1], groups, -1), 1e-5).reshape(x.shape)
        y = parts * p["weight"]
        return y * F.silu(z) if norm_first else y
    return function


for name, groups, norm_first in [("gated", 1, False), ("gated_groups", 3, False),
                                 ("gated_first", 1, True), ("gated_first_groups", 2, True)]:
    case(name, gated(groups, norm_first), normal(2, 3, 6), normal(2, 3, 6), weight=gamma_like(6))

# ---- Derf: gamma erf(alpha x + s) + beta, Chen et al. 2025 -----------------------------------------

case("derf", lambda x, p: p["weight"] * torch.erf(p["alpha"] * x + p["shift"]) + p["bias"],
     normal(2, 3, 5, deviation=2.0), alpha=torch.tensor([0.5]), shift=normal(1, deviation=0.3),
     weight=gamma_like(5), bias=normal(5))

# ---- Conditions: FiLM, Perez et al. 2018 -----------------------------------------------------------

def film(y, c, weight, bias):
    """(1 + scale) y + shift, with shift and scale the two halves of weight c + bias."""
    if c.dim() == 2:
        made = (c @ weight.T + bias).reshape(list(c.shape[:1]) + [-1] + [1] * (y.dim() - 2))
    else:
        made = torch.einsum("nm...,cm->nc...", c, weight) + wide(bias, y)
    shift, scale = made.chunk(2, dim=1)
    return (1 + scale) * y + shift


for name, shape, condition in [("features", (4, 3), (4, 2)), ("2d", (2, 3, 2, 3), (2, 2)),
                               ("maps", (2, 3, 2, 3), (2, 2, 2, 3))]:
    case("film_" + name, lambda x, c, p: film(x, c, p["weight"], p["bias"]), normal(*shape),
         normal(*condition), weight=normal(6, 2), bias=normal(6))
case("film_last", lambda x, c, p: x * (1 + F.linear(c, p["weight"], p["bias"])), normal(2, 4, 3),
     normal(2, 1, 2), weight=normal(3, 2), bias=normal(3))
case("rms_norm_conditional",
     lambda x, c, p: rms(x, 1e-6) * (1 + F.linear(c, p["modulation.weight"], p["modulation.bias"])),
     normal(2, 4, 6), normal(2, 1, 3), modulation__weight=normal(6, 3), modulation__bias=normal(6))


def batch_statistics(x):
    axes = [0] + positions(x)
    mean = x.mean(axes)
    return mean, ((x - wide(mean, x)) ** 2).mean(axes)


def by(x, mean, var):
    return (x - wide(mean, x)) / torch.sqrt(wide(var, x) + 1e-5)


def moved(running, batch, momentum=0.1):
    return running + momentum * (batch.detach() - running)


# de Vries et al. 2017
def conditional_batch_norm(training):
    def function(x, c, p):
        mean, var = batch_statistics(x) if training else (p["running_mean"], p["running_var"])
        y = film(by(x, mean, var), c, p["modulation.weight"], p["modulation.bias"])
        n = x.numel() / x.shape[1]
        return y, {"running_mean": moved(p["running_mean"], mean),
                   "running_var": moved(p["running_var"], var * n / (n - 1))} if training else {}
    return function


def running(channels):
    return {"running_mean": normal(channels, deviation=0.3),
            "running_var": 0.5 + torch.rand(channels)}


for name, shape, condition in [("features", (5, 3), (5, 2)), ("2d", (2, 3, 2, 3), (2, 2)),
                               ("maps", (2, 3, 2, 3), (2, 2, 2, 3)), ("2d_eval", (2, 3, 2, 3), (2, 2))]:
    case("conditional_batch_" + name, conditional_batch_norm("eval" not in name),
         normal(*shape, mean=0.5), normal(*condition), running(3),
         modulation__weight=normal(6, 2), modulation__bias=normal(6))


def group_norm(x, groups, eps=1e-5):
    rows = x.reshape(x.shape[0], groups, -1)
    centred = rows - rows.mean(-1, keepdim=True)
    return (centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + eps)).reshape(x.shape)


for name, groups in [("group", 2), ("instance", 4)]:
    for kind, condition in [("", (2, 3)), ("_maps", (2, 3, 3, 2))]:
        case("conditional_%s%s" % (name, kind), lambda x, c, p: film(
            group_norm(x, groups), c, p["modulation.weight"], p["modulation.bias"]),
            normal(2, 4, 3, 2), normal(*condition), modulation__weight=normal(8, 3),
            modulation__bias=normal(8))


# Huang & Belongie 2017, eq. (8)
def adain(x, s, p):
    mean = s.mean(positions(s))
    var = ((s - mean.reshape(*mean.shape, 1)) ** 2).mean(positions(s))
    return torch.sqrt(var + 1e-5).reshape(*var.shape, 1, 1) * group_norm(x, x.shape[1]) \
        + mean.reshape(*mean.shape, 1, 1)


case("adain", adain, normal(2, 3, 3, 2), normal(2, 3, 5, mean=1.0, deviation=2.0))

# ---- InstanceNorm with running statistics, BatchNorm of volumes: torch.nn --------------------------

def torch_norm(kind, training):
    def function(x, p):
        mean, var = p["running_mean"].clone(), p["running_var"].clone()
        call = F.instance_norm if kind == "instance" else F.batch_norm
        y = call(x, mean, var, p["weight"], p["bias"], training, 0.1, 1e-5)
        return y, {"running_mean": mean, "running_var": var} if training else {}
    return function


for kind, shape in [("instance", (3, 4, 2, 3)), ("batch", (2, 4, 2, 3, 2))]:
    for mode in ("train", "eval"):
        case("running_%s_%s" % (kind, mode), torch_norm(kind, mode == "train"),
             normal(*shape, mean=0.7, deviation=2.0), buffers=running(4), weight=gamma_like(4),
             bias=normal(4))

# ---- Singh & Krishnan 2020, eq. (1) to (4); a learned eps is added as |eps_l| ----------------------

def frn(x, p):
    nu2 = (x ** 2).mean(positions(x), keepdim=True)
    y = x / torch.sqrt(nu2 + 1e-6 + (p["eps"].abs() if "eps" in p else 0))
    y = wide(p["weight"], x) * y + wide(p["bias"], x)
    return torch.maximum(y, wide(p["tau"], x)) if "tau" in p else y


case("frn", frn, normal(2, 4, 3, 2), weight=gamma_like(4), bias=normal(4), tau=normal(4))
case("frn_learned", frn, normal(2, 4, 3, 2), weight=gamma_like(4), bias=normal(4), tau=normal(4),
     eps=torch.tensor([-0.02]))
case("frn_plain", frn, normal(2, 4, 5), weight=gamma_like(4), bias=normal(4))

# ---- Liu et al. 2020, table 1 ----------------------------------------------------------------------

def evo_b0(training):
    def function(x, p):
        var = batch_statistics(x)[1] if training else p["running_var"]
        own = ((x - x.mean(positions(x), keepdim=True)) ** 2).mean(positions(x), keepdim=True)
        below = torch.maximum(torch.sqrt(wide(var, x) + 1e-5),
                              wide(p["v"], x) * x + torch.sqrt(own + 1e-5))
        n = x.numel() / x.shape[1]
        after = {"running_var": moved(p["running_var"], var * n / (n - 1))} if training else {}
        return x / below * wide(p["weight"], x) + wide(p["bias"], x), after
    return function


def evo_s0(groups):
    def function(x, p):
        rows = x.reshape(x.shape[0], groups, -1)
        var = ((rows - rows.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True)
        swish = x * torch.sigmoid(wide(p["v"], x) * x)
        y = (swish.reshape(rows.shape) / torch.sqrt(var + 1e-5)).reshape(x.shape)
        return y * wide(p["weight"], x) + wide(p["bias"], x)
    return function


for mode in ("train", "eval"):
    case("evo_b0_" + mode, evo_b0(mode == "train"), normal(2, 4, 3, 2, mean=0.5, deviation=2.0),
         buffers={"running_var": 0.5 + torch.rand(4)}, weight=gamma_like(4), bias=normal(4),
         v=gamma_like(4))
for groups in (1, 2):
    case("evo_s0_%d" % groups, evo_s0(groups), normal(2, 4, 3, 2, mean=0.5, deviation=2.0),
         weight=gamma_like(4), bias=normal(4), v=gamma_like(4))

# ---- Weights: Qiao et al. 2019, eq. (9), Huang et al. 2017, eq. (4) --------------------------------

def standardized(v):
    return layer_norm(v.reshape(v.shape[0], -1)).reshape(v.shape)


def centred(v, g):
    rows = v.reshape(g.numel(), -1)
    rows = rows - rows.mean(-1, keepdim=True)
    return (g.reshape(-1, 1) * rows / rows.norm(dim=-1, keepdim=True)).reshape(v.shape)


case("weight_standardization",
     lambda x, p: F.linear(x, standardized(p["inner.weight"]), p["inner.bias"]), normal(5, 3),
     inner__weight=normal(4, 3), inner__bias=normal(4))
case("weight_standardization_conv",
     lambda x, p: F.conv2d(x, standardized(p["inner.weight"]), p["inner.bias"]), normal(2, 3, 3, 4),
     inner__weight=normal(4, 3, 2, 2), inner__bias=normal(4))
for name, lengths in [("weight_centred", 4), ("weight_centred_whole", 1)]:
    case(name, lambda x, p: F.linear(x, centred(p["inner.weight"], p["g"]), p["inner.bias"]),
         normal(5, 3), g=normal(lengths), inner__weight=normal(4, 3), inner__bias=normal(4))

# ---- Lengths: Liu, Rabinovich & Berg 2015; Henry et al. 2020, eq. (5) ------------------------------

def unit(x, dim=-1):
    return x / x.norm(dim=dim, keepdim=True)


case("l2", lambda x, p: p["weight"] * unit(x), normal(2, 3, 5), weight=normal(5, mean=3.0))
case("l2_channels", lambda x, p: wide(p["weight"], x) * unit(x, 1), normal(2, 5, 3, 2),
     weight=normal(5, mean=3.0))
case("l2_plain", lambda x, p: unit(x), normal(3, 5))


def qk_norm(heads):
    def function(x, p):
        q, k, v = [part.reshape(*x.shape[:2], heads, -1).transpose(1, 2) for part in
                   F.linear(x, p["in_weight"], p["in_bias"]).chunk(3, dim=-1)]
        q, k = [part / torch.sqrt((part ** 2).sum(-1, keepdim=True) + 1e-10) for part in (q, k)]
        weights = torch.softmax(p["q_norm.g"] * q @ k.transpose(-1, -2), -1)
        y = (weights @ v).transpose(1, 2).reshape(x.shape)
        return F.linear(y, p["out_weight"], p["out_bias"])
    return function


case("qk_temperature", qk_norm(2), normal(2, 5, 6), in_weight=normal(18, 6), in_bias=normal(18),
     out_weight=normal(6, 6), out_bias=normal(6), q_norm__g=normal(1, mean=3.0))

# ---- Woo et al. 2023, algorithm 1 --------------------------------------------------------------------

def grn(x, p):
    length = torch.sqrt((x ** 2).sum(positions(x), keepdim=True))
    return x + wide(p["weight"], x) * x * length / (length.mean(1, keepdim=True) + 1e-6) \
        + wide(p["bias"], x)


case("grn", grn, normal(2, 4, 3, 2), weight=normal(4), bias=normal(4))

# ---- RMSNorm of heads with a gamma for each (x-transformers' MultiheadRMSNorm, without its + 1) ------

case("rms_norm_heads",
     lambda x, p: (rms(x.reshape(4, 3, 2), 1e-6) * p["weight"].reshape(3, 2)).reshape(4, 6),
     normal(4, 6), weight=gamma_like(6))

# ---- timm 1.0: simple_norm of fast_norm.py, whose torch.var divides by n - 1 -------------------------

def simple(x):
    return x * torch.rsqrt(torch.var(x, dim=-1, keepdim=True) + 1e-6)


case("simple_norm", lambda x, p: simple(x) * p["weight"], normal(4, 6, mean=0.7), weight=gamma_like(6))
case("simple_norm_2d",
     lambda x, p: (simple(x.permute(0, 2, 3, 1)) * p["weight"]).permute(0, 3, 1, 2),
     normal(2, 4, 3, 2, mean=0.7), weight=gamma_like(4))

# ---- Liu et al. 2020, EvoNorm B1, B2, S1 and S2, as timm has them ------------------------------------

def evo_b(kind, training):
    def function(x, p):
        n = x.numel() / x.shape[1]
        if training:
            var = ((x - x.mean([0, 2, 3], keepdim=True)) ** 2).mean([0, 2, 3])
        else:
            var = p["running_var"]
        rms_of_sample = torch.sqrt((x ** 2).mean([2, 3], keepdim=True) + 1e-5)
        bound = (x + 1) * rms_of_sample if kind == 1 else rms_of_sample - x
        y = x / torch.maximum(torch.sqrt(wide(var, x) + 1e-5), bound)
        after = p["running_var"]
        if training:
            after = 0.9 * after + 0.1 * var * n / (n - 1)
        return y * wide(p["weight"], x) + wide(p["bias"], x), {"running_var": after}
    return function


for name, kind, training in [("evo_b1", 1, True), ("evo_b2", 2, True), ("evo_b2_eval", 2, False)]:
    case(name, evo_b(kind, training), normal(3, 4, 3, 2, deviation=1.5), weight=gamma_like(4),
         bias=normal(4), buffers={"running_var": torch.rand(4) + 0.5})


def evo_s(kind):
    def function(x, p):
        parts = x.reshape(x.shape[0], 2, -1)
        if kind == 1:
            parts = parts - parts.mean(-1, keepdim=True)
        spread = torch.sqrt((parts ** 2).mean(-1, keepdim=True) + 1e-5)
        y = ((x * torch.sigmoid(x)).reshape(parts.shape) / spread).reshape(x.shape)
        return y * wide(p["weight"], x) + wide(p["bias"], x)
    return function


for kind in (1, 2):
    case("evo_s%d" % kind, evo_s(kind), normal(3, 4, 3, 2, deviation=1.5), weight=gamma_like(4),
         bias=normal(4))

# ---- BHyT, Byun et al. 2025: tanh of lambda x / (kappa rms), kappa = 10 ------------------------------

for name, kappa in [("bhyt", 10), ("bhyt_kappa", 3)]:
    case(name, lambda x, p: p["weight"] * torch.tanh(p["lambda"] * rms(x, 1e-6) / kappa),
         normal(3, 5, deviation=2.0), **{"lambda": normal(1, mean=2.0)}, weight=gamma_like(5))

# ---- SeeDNorm, Cai et al. 2025: (tanh(x beta^T) alpha + gamma) x / rms(x) ----------------------------

case("seed_norm",
     lambda x, p: (torch.tanh((x * p["beta"]).sum(-1, keepdim=True)) * p["alpha"] + p["weight"])
     * rms(x, 1e-6), normal(3, 5), weight=gamma_like(5), alpha=gamma_like(5),
     beta=normal(5, deviation=0.5))

# ---- PolyNorm, Zhuo et al. 2024 ----------------------------------------------------------------------

case("poly_norm",
     lambda x, p: p["weight"][0] * rms(x ** 3, 1e-6) + p["weight"][1] * rms(x ** 2, 1e-6)
     + p["weight"][2] * rms(x, 1e-6) + p["bias"], normal(3, 5), weight=normal(3), bias=normal(1))

# ---- Xie et al. 2025, eq. (9): M_0 = exp(x), M_t = rows(columns(M_t-1)), 20 times --------------------

def sinkhorn(x, steps=20):
    m = torch.exp(x)
    for _ in range(steps):
        m = m / m.sum(-2, keepdim=True)
        m = m / m.sum(-1, keepdim=True)
    return m


case("sinkhorn", lambda x, p: sinkhorn(x), normal(2, 3, 3, deviation=2.0))
