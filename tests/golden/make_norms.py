"""Writes norms.txt: what PyTorch computes in double for the norms of tests/norms.

    python3 tests/golden/make_norms.py

The format is that of make_golden.py. GroupNorm, InstanceNorm, weight_norm and spectral_norm are
PyTorch's own; the others are the formulas of their papers, written out below and differentiated by
autograd.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20251120)
HERE = os.path.dirname(os.path.abspath(__file__))

out = open(os.path.join(HERE, "norms.txt"), "w")
out.write("# PyTorch %s, float64; written by make_norms.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    out.write(" ".join([name, *map(str, x.shape)]) + "\n")
    out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


def case(name, function, constants=(), **inputs):
    """Inputs, y = function(inputs...), a random cotangent, and the gradient to each input that is
    not among the constants."""
    for key, x in inputs.items():
        write(name + "/" + key, x)
        if key not in constants:
            x.requires_grad_()
    y = function(*inputs.values())
    dy = torch.randn(y.shape)
    wanted = [key for key in inputs if key not in constants]
    gradients = torch.autograd.grad(y, [inputs[key] for key in wanted], dy)
    write(name + "/y", y)
    write(name + "/dy", dy)
    for key, gradient in zip(wanted, gradients):
        write(name + "/d" + key, gradient)


def normal(*shape, mean=0.0, deviation=1.0):
    return mean + deviation * torch.randn(shape)


def gamma_like(*shape):
    return normal(*shape, mean=1.0, deviation=0.3)


SHAPES = [("features", (5, 6)), ("1d", (3, 6, 5)), ("2d", (2, 6, 4, 3))]

# ---- PyTorch's own --------------------------------------------------------------------------------

for name, shape in SHAPES:
    for groups in (1, 2, 3):
        case("group_norm_%d_%s" % (groups, name),
             lambda x, gamma, beta: F.group_norm(x, groups, gamma, beta, 1e-5),
             x=normal(*shape, mean=0.7, deviation=2.0), gamma=gamma_like(6), beta=normal(6))
    if name != "features":
        case("instance_norm_" + name,
             lambda x, gamma, beta: F.instance_norm(x, None, None, gamma, beta, True, 0.1, 1e-5),
             x=normal(*shape, mean=0.7, deviation=2.0), gamma=gamma_like(6), beta=normal(6))
        case("instance_norm_plain_" + name, lambda x: F.instance_norm(x),
             x=normal(*shape, mean=0.7, deviation=2.0))
        case("channel_norm_" + name,
             lambda x, gamma, beta: F.layer_norm(x.transpose(1, -1), (6,), gamma, beta, 1e-5)
             .transpose(1, -1),
             x=normal(*shape, mean=0.7, deviation=2.0), gamma=gamma_like(6), beta=normal(6))

# A Linear through torch.nn.utils, whose parameters are g and v: x, v, g, bias -> y.
for name, dim, lengths in [("weight_norm", 0, 4), ("weight_norm_whole", None, 1)]:
    def weight_normed(x, v, g, bias):
        return F.linear(x, torch._weight_norm(v, g.reshape(-1, 1), 0) if dim == 0
                        else v * (g / torch.norm(v)), bias)

    x, v, g, bias = normal(5, 3), normal(4, 3), normal(lengths), normal(4)
    layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 4), dim=dim)
    layer.weight_v.data, layer.weight_g.data = v.clone(), g.reshape(layer.weight_g.shape).clone()
    layer.bias.data = bias.clone()
    assert torch.allclose(layer(x), weight_normed(x, v, g, bias), rtol=1e-14, atol=0)
    case(name, weight_normed, x=x, v=v, g=g, bias=bias)


# Three passes in training through torch.nn.utils.spectral_norm, then one in evaluation.
def spectral_normed(name, inner, iterations, *shape):
    layer = torch.nn.utils.spectral_norm(inner, n_power_iterations=iterations)
    write(name + "/weight", layer.weight_orig)
    write(name + "/bias", layer.bias)
    write(name + "/u", layer.weight_u)
    write(name + "/v", layer.weight_v)
    for step in range(4):
        layer.train(step < 3)
        x = normal(*shape).requires_grad_()
        y = layer(x)
        dy = normal(*y.shape)
        dx, dw, db = torch.autograd.grad(y, [x, layer.weight_orig, layer.bias], dy)
        for key, value in [("x", x), ("y", y), ("dy", dy), ("dx", dx), ("dweight", dw),
                           ("dbias", db), ("u", layer.weight_u), ("v", layer.weight_v)]:
            write("%s/%s%d" % (name, key, step), value)


spectral_normed("spectral_norm_once", torch.nn.Linear(3, 4), 1, 5, 3)
spectral_normed("spectral_norm_thrice", torch.nn.Linear(3, 4), 3, 5, 3)

# ---- The papers' formulas -------------------------------------------------------------------------

# Nguyen & Salazar 2019, eq. (2)
case("scale_norm", lambda x, g: g * x / x.norm(dim=-1, keepdim=True),
     x=normal(2, 3, 5), g=normal(1, mean=2.0))

# Zhu et al. 2025: DyT(x) = gamma * tanh(alpha x) + beta
case("dynamic_tanh", lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta,
     x=normal(2, 3, 5, deviation=2.0), alpha=torch.tensor([0.5]), gamma=gamma_like(5),
     beta=normal(5))


# Xu et al. 2019, section 3.2: y = (x - mean) / sigma, "changeable constants"
def detach_norm(x, detach_mean, detach_deviation):
    mean = x.mean(-1, keepdim=True)
    sigma = torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
    if detach_mean:
        mean = mean.detach()
    if detach_deviation:
        sigma = sigma.detach()
    return (x - mean) / sigma


case("detach_norm", lambda x: detach_norm(x, True, True), x=normal(3, 5))
case("detach_norm_mean", lambda x: detach_norm(x, True, False), x=normal(3, 5))
case("detach_norm_deviation", lambda x: detach_norm(x, False, True), x=normal(3, 5))
case("layer_norm_simple", lambda x: detach_norm(x, False, False), x=normal(3, 5))


# Xu et al. 2019, section 4.1: z = C (1 - k y) * y, the factor detached, k = 1 / 10
def ada_norm(x, c, k, detach):
    y = detach_norm(x, False, False)
    phi = c * (1 - k * y)
    return (phi.detach() if detach else phi) * y


case("adanorm", lambda x: ada_norm(x, 1.0, 0.1, True), x=normal(3, 5))
case("adanorm_differentiated", lambda x: ada_norm(x, 1.0, 0.1, False), x=normal(3, 5))


# Ioffe 2017, algorithm 1
def batch_renorm(x, gamma, beta, mu, sigma, r_max, d_max):
    axes = [0, *range(2, x.dim())]
    wide = [1, -1] + [1] * (x.dim() - 2)
    mu_b = x.mean(axes)
    sigma_b = torch.sqrt(1e-5 + ((x - mu_b.reshape(wide)) ** 2).mean(axes))
    r = (sigma_b / sigma).clamp(1 / r_max, r_max).detach()
    d = ((mu_b - mu) / sigma).clamp(-d_max, d_max).detach()
    xhat = (x - mu_b.reshape(wide)) / sigma_b.reshape(wide) * r.reshape(wide) + d.reshape(wide)
    y = gamma.reshape(wide) * xhat + beta.reshape(wide)
    return y, mu_b.detach(), sigma_b.detach()


def batch_renorm_inference(x, gamma, beta, mu, sigma):
    wide = [1, -1] + [1] * (x.dim() - 2)
    return gamma.reshape(wide) * (x - mu.reshape(wide)) / sigma.reshape(wide) + beta.reshape(wide)


for name, shape in SHAPES:
    gamma, beta = gamma_like(6), normal(6)
    mu, sigma = 0.3 * normal(6), 0.5 + torch.rand(6)
    for limits, r_max, d_max in [("tight", 1.1, 0.2), ("wide", 3.0, 5.0), ("none", 1.0, 0.0)]:
        row = "batch_renorm_%s_%s" % (limits, name)
        x = normal(*shape, mean=0.4, deviation=1.2)
        _, mu_b, sigma_b = batch_renorm(x, gamma, beta, mu, sigma, r_max, d_max)
        write(row + "/mean_after", mu + 0.1 * (mu_b - mu))
        write(row + "/deviation_after", sigma + 0.1 * (sigma_b - sigma))
        write(row + "/limits", [r_max, d_max])
        case(row, lambda x, gamma, beta, mu, sigma:
             batch_renorm(x, gamma, beta, mu, sigma, r_max, d_max)[0],
             constants=("mean", "deviation"), x=x, gamma=gamma.clone(), beta=beta.clone(),
             mean=mu, deviation=sigma)
    case("batch_renorm_eval_" + name, batch_renorm_inference, constants=("mean", "deviation"),
         x=normal(*shape), gamma=gamma.clone(), beta=beta.clone(), mean=mu, deviation=sigma)

# Hoffer, Hubara & Soudry 2017: batch normalization of each ghost batch by itself
for name, shape in [("features", (10, 6)), ("2d", (5, 6, 2, 3))]:
    size = 4 if name == "features" else 2
    layer = torch.nn.BatchNorm2d(6)
    layer._check_input_dim = lambda x: None
    x = normal(*shape, mean=0.4, deviation=1.2)
    gamma, beta = gamma_like(6), normal(6)
    layer.weight.data, layer.bias.data = gamma.clone(), beta.clone()
    for part in x.split(size):
        layer(part)
    write("ghost_%s/mean_after" % name, layer.running_mean)
    write("ghost_%s/var_after" % name, layer.running_var)
    case("ghost_" + name, lambda x, gamma, beta: torch.cat(
        [F.batch_norm(part, None, None, gamma, beta, True, 0.1, 1e-5) for part in x.split(size)]),
        x=x, gamma=gamma, beta=beta)


# Peebles & Xie 2023 (DiT's block with one branch): x + gate * inner(modulate(norm(x), shift, scale))
def adaptive_residual(x, condition, modulation_weight, modulation_bias, inner_weight, inner_bias):
    modulation = F.linear(F.silu(condition), modulation_weight, modulation_bias)
    shift, scale, gate = modulation.chunk(3, dim=-1)
    h = F.layer_norm(x, (4,), None, None, 1e-6) * (1 + scale) + shift
    return x + gate * F.linear(h, inner_weight, inner_bias)


case("adaptive_residual", adaptive_residual, x=normal(2, 3, 4), condition=normal(2, 1, 5),
     modulation_weight=normal(12, 5), modulation_bias=normal(12), inner_weight=normal(4, 4),
     inner_bias=normal(4))

# ---- Convolutions through torch.nn.utils ----------------------------------------------------------

def weight_normed_conv(name, dim, settings, x, weight, lengths):
    layer = torch.nn.utils.weight_norm(
        torch.nn.Conv2d(x[1], weight[0], weight[2:], **settings), dim=dim)

    def function(x, v, g, bias):
        weight = torch._weight_norm(v, g.reshape(layer.weight_g.shape), dim) if dim == 0 \
            else v * (g / torch.norm(v))
        return F.conv2d(x, weight, bias, **settings)

    x, v, g, bias = normal(*x), normal(*weight), normal(lengths), normal(weight[0])
    layer.weight_v.data, layer.weight_g.data = v.clone(), g.reshape(layer.weight_g.shape).clone()
    layer.bias.data = bias.clone()
    assert torch.allclose(layer(x), function(x, v, g, bias), rtol=1e-14, atol=1e-14)
    case(name, function, x=x, v=v, g=g, bias=bias)


weight_normed_conv("weight_norm_conv", 0, dict(padding=1), (2, 3, 4, 5), (4, 3, 3, 2), 4)
weight_normed_conv("weight_norm_conv_groups", 0, dict(stride=2, groups=2), (2, 4, 5, 5),
                   (6, 2, 2, 3), 6)
weight_normed_conv("weight_norm_conv_whole", None, {}, (2, 3, 4, 4), (4, 3, 2, 2), 1)

spectral_normed("spectral_norm_conv_once", torch.nn.Conv2d(3, 4, (3, 2), padding=1), 1, 2, 3, 4, 5)
spectral_normed("spectral_norm_conv_thrice", torch.nn.Conv2d(4, 6, (2, 3), stride=2, groups=2), 3,
                2, 4, 5, 5)
