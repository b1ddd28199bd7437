"""Writes ops.txt and training.txt: what PyTorch computes in double, for test_golden.c.

    python3 tests/golden/make_golden.py

A tensor is a line `name dimensions...` and a line of its elements, row by row. Names are
case/tensor: in a case, dy is the cotangent of y, and d<name> the gradient to <name>.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20240229)
HERE = os.path.dirname(os.path.abspath(__file__))


class File:
    def __init__(self, name):
        self.out = open(os.path.join(HERE, name), "w")
        self.out.write("# PyTorch %s, float64; written by make_golden.py\n" % torch.__version__)

    def write(self, name, x):
        x = torch.as_tensor(x).detach()
        self.out.write(" ".join([name, *map(str, x.shape)]) + "\n")
        self.out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")

    def case(self, name, function, constants=(), **inputs):
        """Inputs, y = function(inputs...), a random cotangent, and the gradient to each input that
        is not among the constants."""
        for key, x in inputs.items():
            self.write(name + "/" + key, x)
            if key not in constants:
                x.requires_grad_()
        y = function(*inputs.values())
        dy = torch.randn(y.shape)
        wanted = [key for key in inputs if key not in constants]
        gradients = torch.autograd.grad(y, [inputs[key] for key in wanted], dy)
        self.write(name + "/y", y)
        self.write(name + "/dy", dy)
        for key, gradient in zip(wanted, gradients):
            self.write(name + "/d" + key, gradient)


def normal(*shape, mean=0.0, deviation=1.0):
    return mean + deviation * torch.randn(shape)


def gamma_like(*shape):
    return normal(*shape, mean=1.0, deviation=0.3)


ops = File("ops.txt")

# ---- Row-wise norms ------------------------------------------------------------------------------

for name, shape, over in [("row", (4, 6), (6,)), ("rows", (2, 3, 5), (5,)),
                          ("matrix", (3, 4, 5), (4, 5)), ("image", (2, 3, 4, 2), (3, 4, 2))]:
    x = normal(*shape, mean=0.7, deviation=2.0)
    ops.case("layer_norm_" + name,
             lambda x, gamma, beta: F.layer_norm(x, over, gamma, beta, 1e-5),
             x=x, gamma=gamma_like(*over), beta=normal(*over))
ops.case("layer_norm_plain", lambda x: F.layer_norm(x, (6,), None, None, 1e-5), x=normal(4, 6))
ops.case("layer_norm_no_bias", lambda x, gamma: F.layer_norm(x, (6,), gamma, None, 1e-3),
         x=normal(4, 6), gamma=gamma_like(6))


def rms_norm(x, gamma, share=1.0, eps=1e-6):
    first = x[..., :int(x.shape[-1] * share)]
    return x * torch.rsqrt(first.pow(2).mean(-1, keepdim=True) + eps) * gamma


def unbiased_layer_norm(x, gamma, beta):
    var = x.var(-1, unbiased=True, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(var + 1e-5) * gamma + beta


ops.case("layer_norm_unbiased", unbiased_layer_norm,
         x=normal(4, 6), gamma=gamma_like(6), beta=normal(6))
ops.case("rms_norm", rms_norm, x=normal(4, 6), gamma=gamma_like(6))
ops.case("rms_norm_partial", lambda x, gamma: rms_norm(x, gamma, 0.5),
         x=normal(3, 8), gamma=gamma_like(8))


def plain_layer_norm(x):
    return F.layer_norm(x, x.shape[-1:], None, None, 1e-5)


ops.case("adaptive_projected",
         lambda x, gamma_weight, gamma_bias, beta_weight, beta_bias:
         F.linear(x, gamma_weight, gamma_bias) * plain_layer_norm(x)
         + F.linear(x, beta_weight, beta_bias),
         x=normal(3, 5), gamma_weight=normal(5, 5), gamma_bias=normal(5),
         beta_weight=normal(5, 5), beta_bias=normal(5))


def ada_norm(x, detach):
    xhat = plain_layer_norm(x)
    factor = 1.3 * (1 - 0.1 * xhat)
    return (factor.detach() if detach else factor) * xhat


ops.case("adanorm", lambda x: ada_norm(x, True), x=normal(3, 5))
ops.case("adanorm_differentiated", lambda x: ada_norm(x, False), x=normal(3, 5))

# ---- Batch normalization -------------------------------------------------------------------------

SHAPES = [("features", (6, 4)), ("1d", (3, 4, 5)), ("2d", (2, 3, 4, 3))]

for name, shape in SHAPES:
    channels = shape[1]
    ops.case("batch_norm_" + name,
             lambda x, gamma, beta: F.batch_norm(x, None, None, gamma, beta, True, 0.1, 1e-5),
             x=normal(*shape, mean=0.7, deviation=2.0),
             gamma=gamma_like(channels), beta=normal(channels))
    ops.case("batch_norm_eval_" + name,
             lambda x, gamma, beta, mean, var:
             F.batch_norm(x, mean, var, gamma, beta, False, 0.1, 1e-5),
             constants=("mean", "var"), x=normal(*shape),
             gamma=gamma_like(channels), beta=normal(channels),
             mean=normal(channels), var=0.5 + torch.rand(channels))

for name, momentum in [("momentum", 0.1), ("fast", 0.3), ("cumulative", None)]:
    for kind, shape in SHAPES:
        layer = torch.nn.BatchNorm2d(shape[1], momentum=momentum)
        layer._check_input_dim = lambda x: None
        case = "running_%s_%s" % (name, kind)
        for batch in range(3):
            x = normal(*shape, mean=batch - 0.5, deviation=1.0 + batch)
            ops.write("%s/x%d" % (case, batch), x)
            layer(x)
        ops.write(case + "/mean", layer.running_mean)
        ops.write(case + "/var", layer.running_var)

# ---- Activations ---------------------------------------------------------------------------------

ACTIVATIONS = {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "softplus": lambda x: F.softplus(x, threshold=1e9), "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
}
for name, function in ACTIVATIONS.items():
    ops.case(name, function, x=torch.cat([normal(24), normal(24, deviation=5.0)]))
for axis in range(3):
    ops.case("softmax_%d" % axis, lambda x: F.softmax(x, axis), x=normal(2, 3, 4, deviation=3.0))
    ops.case("log_softmax_%d" % axis, lambda x: F.log_softmax(x, axis),
             x=normal(2, 3, 4, deviation=3.0))

# ---- Losses --------------------------------------------------------------------------------------

LOSSES = {
    "mse": lambda x, target, reduction: F.mse_loss(x, target, reduction=reduction),
    "l1": lambda x, target, reduction: F.l1_loss(x, target, reduction=reduction),
    "huber": lambda x, target, reduction: F.huber_loss(x, target, reduction=reduction, delta=0.7),
    "binary_cross_entropy": lambda x, target, reduction:
        F.binary_cross_entropy_with_logits(x, target, reduction=reduction),
}
for reduction in ("mean", "sum", "none"):
    for name, function in LOSSES.items():
        target = torch.rand(4, 5) if name.startswith("binary") else normal(4, 5)
        ops.case("%s_%s" % (name, reduction), lambda x, target: function(x, target, reduction),
                 constants=("target",), x=normal(4, 5, deviation=2.0), target=target)
    for kind, smoothing, ignored in [("plain", 0.0, -100), ("smooth", 0.15, -100),
                                     ("ignore", 0.0, 2), ("smooth_ignore", 0.15, 2)]:
        ops.case("cross_entropy_%s_%s" % (kind, reduction),
                 lambda x, labels: F.cross_entropy(x, labels, reduction=reduction,
                                                   ignore_index=ignored,
                                                   label_smoothing=smoothing),
                 constants=("labels",), x=normal(6, 5, deviation=2.0),
                 labels=torch.tensor([0, 2, 4, 1, 2, 3]))

# ---- Training ------------------------------------------------------------------------------------

training = File("training.txt")
STEPS, BATCHES = 50, 4
batches = [(normal(16, 8), torch.randint(0, 5, (16,))) for _ in range(BATCHES)]
for i, (x, labels) in enumerate(batches):
    training.write("x%d" % i, x)
    training.write("labels%d" % i, labels)

OPTIMIZERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.05),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.005, momentum=0.5),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.005, centered=True),
}
for name, norm in [("layer_norm", torch.nn.LayerNorm), ("batch_norm", torch.nn.BatchNorm1d)]:
    bias = name != "batch_norm"
    net = torch.nn.Sequential(
        torch.nn.Linear(8, 12, bias), norm(12), torch.nn.ReLU(),
        torch.nn.Linear(12, 12, bias), norm(12), torch.nn.GELU(), torch.nn.Linear(12, 5))
    start = {key: x.clone() for key, x in net.state_dict().items()}
    for key, x in net.named_parameters():
        training.write(name + "/" + key, x)
    for optimizer_name, make in OPTIMIZERS.items():
        net.load_state_dict(start)
        net.train()
        optimizer = make(net.parameters())
        losses = []
        for step in range(STEPS):
            x, labels = batches[step % BATCHES]
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        training.write("%s/%s/losses" % (name, optimizer_name), losses)
        net.eval()
        training.write("%s/%s/eval" % (name, optimizer_name),
                       F.cross_entropy(net(batches[0][0]), batches[0][1]))
