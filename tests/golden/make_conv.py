"""Writes conv.txt: what PyTorch computes in double, for test_conv.c.

    python3 tests/golden/make_conv.py

The format is make_golden.py's. In a case of second order, g is the sum of the squares of the
gradients to all inputs, and gg<name> its gradient to <name>.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20240301)
HERE = os.path.dirname(os.path.abspath(__file__))


class File:
    def __init__(self, name):
        self.out = open(os.path.join(HERE, name), "w")
        self.out.write("# PyTorch %s, float64; written by make_conv.py\n" % torch.__version__)

    def write(self, name, x):
        x = x.detach()
        self.out.write(" ".join([name, *map(str, x.shape)]) + "\n")
        self.out.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")

    def case(self, name, function, order=2, **inputs):
        """Inputs, y = function(inputs...), a random cotangent, the gradient to each input, and the
        gradient of the sum of their squares."""
        for key, x in inputs.items():
            self.write(name + "/" + key, x)
            x.requires_grad_()
        y = function(*inputs.values())
        dy = torch.randn(y.shape)
        self.write(name + "/y", y)
        self.write(name + "/dy", dy)
        gradients = torch.autograd.grad(y, list(inputs.values()), dy, create_graph=order == 2)
        for key, gradient in zip(inputs, gradients):
            self.write(name + "/d" + key, gradient)
        if order == 1:
            return
        g = sum(gradient.square().sum() for gradient in gradients)
        self.write(name + "/g", g)
        again = torch.autograd.grad(g, list(inputs.values()), allow_unused=True)
        for (key, x), gradient in zip(inputs.items(), again):
            self.write(name + "/gg" + key, torch.zeros_like(x) if gradient is None else gradient)


def normal(*shape):
    return torch.randn(shape)


conv = File("conv.txt")

CONVOLUTIONS = {  # x, weight, settings
    "plain": ((2, 3, 5, 6), (4, 3, 3, 2), {}),
    "same": ((2, 3, 5, 6), (4, 3, 3, 3), dict(padding=1)),
    "pointwise": ((2, 6, 3, 4), (5, 6, 1, 1), {}),
    "pointwise_stride": ((2, 3, 5, 4), (4, 3, 1, 1), dict(stride=2)),
    "stride": ((2, 3, 7, 6), (4, 3, 3, 3), dict(stride=2, padding=1)),
    "dilation": ((2, 2, 7, 8), (3, 2, 3, 3), dict(dilation=2, padding=2)),
    "groups": ((2, 6, 4, 5), (9, 2, 3, 3), dict(groups=3, padding=1)),
    "depthwise": ((2, 4, 5, 4), (8, 1, 3, 3), dict(groups=4, padding=1)),
    "all": ((18, 4, 4, 6), (4, 2, 2, 3),
            dict(stride=(1, 2), padding=(2, 1), dilation=(3, 2), groups=2)),
}
for name, (shape, weight, settings) in CONVOLUTIONS.items():
    conv.case("conv_" + name, lambda x, weight, bias: F.conv2d(x, weight, bias, **settings),
              x=normal(*shape), weight=normal(*weight), bias=normal(weight[0]))
conv.case("conv_no_bias", lambda x, weight: F.conv2d(x, weight),
          x=normal(2, 3, 4, 4), weight=normal(2, 3, 2, 2))

conv.case("max_pool", lambda x: F.max_pool2d(x, 2), 1, x=normal(2, 3, 5, 6))
conv.case("max_pool_all", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), (1, 2)), 1,
          x=normal(2, 3, 7, 8))
conv.case("avg_pool", lambda x: F.avg_pool2d(x, 2), 1, x=normal(2, 3, 5, 6))
conv.case("avg_pool_all", lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0)), 1,
          x=normal(2, 3, 7, 8))
conv.case("global_avg_pool", lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), 1,
          x=normal(2, 3, 4, 5))
WINDOW = dict(stride=(2, 1), padding=(2, 1), dilation=(1, 2))
conv.case("unfold", lambda x: F.unfold(x, (3, 2), **WINDOW), 1,
          x=normal(2, 3, 7, 8))
conv.case("fold", lambda x: F.fold(x, (7, 8), (3, 2), **WINDOW), 1,
          x=normal(2, 18, 40))


def residual(x, first, gamma, beta, second, weight):
    """Conv, BatchNorm, ReLU and a skip, at half the size; then a mean and a Linear."""
    y = F.relu(F.batch_norm(F.conv2d(x, first, padding=1), None, None, gamma, beta, True))
    y = F.max_pool2d(x + y, 2)
    y = F.silu(F.conv2d(y, second, stride=2, padding=1))
    return F.linear(F.adaptive_avg_pool2d(y, 1).flatten(1), weight)


conv.case("residual", residual, x=normal(3, 4, 6, 6), first=normal(4, 4, 3, 3),
          gamma=1 + 0.3 * normal(4), beta=normal(4), second=normal(6, 4, 3, 3),
          weight=normal(5, 6))

LINES = {  # x, weight, settings
    "plain": ((2, 3, 7), (4, 3, 3), {}),
    "all": ((3, 4, 9), (6, 2, 3), dict(stride=2, padding=3, dilation=2, groups=2)),
}
for name, (shape, weight, settings) in LINES.items():
    conv.case("line_" + name, lambda x, weight, bias: F.conv1d(x, weight, bias, **settings),
              x=normal(*shape), weight=normal(*weight), bias=normal(weight[0]))

TRANSPOSED = {  # x, weight, settings
    "plain": ((2, 3, 4, 5), (3, 4, 3, 2), {}),
    "pointwise": ((2, 3, 4, 5), (3, 4, 1, 1), {}),
    "twice": ((2, 3, 4, 5), (3, 2, 4, 4), dict(stride=2, padding=1)),
    "groups": ((2, 6, 4, 3), (6, 3, 3, 3), dict(groups=3, padding=1)),
    "all": ((18, 4, 3, 4), (4, 3, 2, 3),
            dict(stride=(2, 3), padding=(1, 2), output_padding=(1, 2), dilation=(3, 2), groups=2)),
}
for name, (shape, weight, settings) in TRANSPOSED.items():
    conv.case("transposed_" + name,
              lambda x, weight, bias: F.conv_transpose2d(x, weight, bias, **settings),
              x=normal(*shape), weight=normal(*weight),
              bias=normal(weight[1] * settings.get("groups", 1)))
conv.case("transposed_no_bias", lambda x, weight: F.conv_transpose2d(x, weight, stride=2),
          x=normal(2, 3, 2, 3), weight=normal(3, 2, 2, 3))
conv.case("transposed_line",
          lambda x, weight, bias: F.conv_transpose1d(x, weight, bias, stride=3, padding=2,
                                                     output_padding=1, dilation=2, groups=2),
          x=normal(2, 4, 5), weight=normal(4, 3, 3), bias=normal(6))

SIZES = {  # x, settings
    "nearest": ((2, 3, 4, 5), dict(scale_factor=2)),
    "nearest_size": ((2, 3, 5, 7), dict(size=(8, 3))),
    "nearest_line": ((2, 3, 5), dict(scale_factor=3)),
    "linear": ((2, 3, 4, 5), dict(scale_factor=2, mode="bilinear", align_corners=False)),
    "linear_size": ((2, 3, 5, 7), dict(size=(9, 4), mode="bilinear", align_corners=False)),
    "linear_line": ((2, 3, 5), dict(scale_factor=3, mode="linear", align_corners=False)),
    "corners": ((2, 3, 4, 5), dict(scale_factor=3, mode="bilinear", align_corners=True)),
    "corners_size": ((2, 3, 5, 7), dict(size=(1, 10), mode="bilinear", align_corners=True)),
}
for name, (shape, settings) in SIZES.items():
    conv.case("size_" + name, lambda x: F.interpolate(x, **settings), 1, x=normal(*shape))
