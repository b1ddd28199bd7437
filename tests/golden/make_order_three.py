"""Derivatives of orders 1 to 4 of norms by PyTorch, for examples/claims/order_three.c, which computes
the exact ones: the k-th derivative at t = 0 of sum(c norm(x + t u)), in double.

    python3 tests/golden/make_order_three.py > tests/golden/order_three.txt
"""
import torch

SEEDS, ROWS, COLUMNS, ORDERS, EPS = 21, 6, 8, 4, 1e-5
F = torch.nn.functional
NORMS = [
    lambda x: F.layer_norm(x, (COLUMNS,), eps=EPS),
    lambda x: F.batch_norm(x, None, None, training=True, eps=EPS),
    lambda x: F.rms_norm(x, (COLUMNS,), eps=EPS),
]


def numbers(which, seed):
    """Multiples of 1/512 in [-2, 2) that C computes alike."""

    def number(place):
        mixed = (seed * 3 + which) * 1000 + place + 1
        mixed = (mixed ^ mixed >> 16) * 0x7FEB352D % 2**32
        mixed = (mixed ^ mixed >> 15) * 0x846CA68B % 2**32
        return (mixed >> 21) / 512 - 2

    values = [number(place) for place in range(ROWS * COLUMNS)]
    return torch.tensor(values, dtype=torch.float64).reshape(ROWS, COLUMNS)


print("norm seed order value")
for n, norm in enumerate(NORMS):
    for seed in range(SEEDS):
        x, u, c = (numbers(which, seed) for which in range(3))
        value = (c * norm(x.requires_grad_())).sum()
        for order in range(1, ORDERS + 1):
            (slope,) = torch.autograd.grad(value, x, create_graph=True)
            value = (slope * u).sum()
            print(n, seed, order, f"{value.item():.17g}")
