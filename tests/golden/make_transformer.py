"""Writes transformer.txt: what PyTorch computes in double, for test_transformer.c.

    python3 tests/golden/make_transformer.py

The format is make_golden.py's; parameters have the names of our modules, masks are 1 where a key
is seen.
"""
import os
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20240307)
HERE = os.path.dirname(os.path.abspath(__file__))
OUT = open(os.path.join(HERE, "transformer.txt"), "w")
OUT.write("# PyTorch %s, float64; written by make_transformer.py\n" % torch.__version__)


def write(name, x):
    x = torch.as_tensor(x).detach()
    OUT.write(" ".join([name, *map(str, x.shape)]) + "\n")
    OUT.write(" ".join("%.17g" % v for v in x.flatten().tolist()) + "\n")


def randomise(module):
    """PyTorch starts biases at 0 and gammas at 1, which would hide a mistake."""
    for name, p in module.named_parameters():
        if p.dim() == 1:
            p.data = torch.randn(p.shape) * 0.3 + (1 if "norm" in name and "weight" in name else 0)


def case(name, y, x, parameters, **more):
    """x, whatever more, the parameters, y, a random cotangent, and all gradients."""
    for key, value in more.items():
        write("%s/%s" % (name, key), value)
    inputs = dict(parameters)
    if x is not None:
        inputs["x"] = x
    dy = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, list(inputs.values()), dy)
    write(name + "/y", y)
    write(name + "/dy", dy)
    for (key, value), gradient in zip(inputs.items(), gradients):
        write("%s/%s" % (name, key), value)
        write("%s/d%s" % (name, key), gradient)


def attention_names(prefix, attention):
    return {prefix + "in_weight": attention.in_proj_weight,
            prefix + "in_bias": attention.in_proj_bias,
            prefix + "out_weight": attention.out_proj.weight,
            prefix + "out_bias": attention.out_proj.bias}


def block_names(prefix, layer):
    return {**attention_names(prefix + "attention.", layer.self_attn),
            prefix + "attention_norm.weight": layer.norm1.weight,
            prefix + "attention_norm.bias": layer.norm1.bias,
            prefix + "feed_forward.in_weight": layer.linear1.weight,
            prefix + "feed_forward.in_bias": layer.linear1.bias,
            prefix + "feed_forward.out_weight": layer.linear2.weight,
            prefix + "feed_forward.out_bias": layer.linear2.bias,
            prefix + "feed_forward_norm.weight": layer.norm2.weight,
            prefix + "feed_forward_norm.bias": layer.norm2.bias}


def hidden_future(length):
    return torch.triu(torch.ones(length, length, dtype=torch.bool), 1)


N, T, C, H = 3, 5, 6, 2
SEEN = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 1, 0]])

# ---- Embedding -----------------------------------------------------------------------------------

embedding = torch.nn.Embedding(7, 3)
ids = torch.tensor([[1, 6, 0, 1], [3, 3, 1, 5]])
case("embedding", embedding(ids), None, {"weight": embedding.weight}, ids=ids)

# ---- Attention -----------------------------------------------------------------------------------

for causal in (False, True):
    for masked in (False, True):
        attention = torch.nn.MultiheadAttention(C, H, batch_first=True)
        randomise(attention)
        x = torch.randn(N, T, C, requires_grad=True)
        y, _ = attention(x, x, x, need_weights=False,
                         attn_mask=hidden_future(T) if causal else None,
                         key_padding_mask=SEEN == 0 if masked else None)
        name = "attention" + ("_causal" if causal else "") + ("_masked" if masked else "")
        case(name, y, x, attention_names("", attention), mask=SEEN if masked else torch.ones(N, T))

# ---- Blocks --------------------------------------------------------------------------------------

for placement in ("pre", "post"):
    for activation in ("relu", "gelu"):
        layer = torch.nn.TransformerEncoderLayer(C, H, 8, 0.0, activation, batch_first=True,
                                                 norm_first=placement == "pre")
        randomise(layer)
        for masked in (False, True):
            x = torch.randn(N, T, C, requires_grad=True)
            y = layer(x, src_mask=hidden_future(T),
                      src_key_padding_mask=SEEN == 0 if masked else None)
            case("block_%s_%s%s" % (placement, activation, "_masked" if masked else ""), y, x,
                 block_names("", layer), mask=SEEN if masked else torch.ones(N, T))

# ---- Twenty steps of AdamW -----------------------------------------------------------------------

VOCABULARY, STEPS, BATCHES = 11, 20, 4
batches = [torch.randint(0, VOCABULARY, (N, T + 1)) for _ in range(BATCHES)]
for i, batch in enumerate(batches):
    write("training/ids%d" % i, batch[:, :-1])
    write("training/labels%d" % i, batch[:, 1:])


class Net(torch.nn.Module):
    def __init__(self, pre):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, C)
        self.positions = torch.nn.Embedding(T, C)
        self.blocks = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(C, H, 4 * C, 0.0, "gelu", batch_first=True,
                                             norm_first=pre) for _ in range(2))
        self.norm = torch.nn.LayerNorm(C) if pre else torch.nn.Identity()
        self.head = torch.nn.Linear(C, VOCABULARY)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x, src_mask=hidden_future(T))
        return self.head(self.norm(x))

    def names(self):
        names = {"embedding.weight": self.embedding.weight,
                 "positions.weight": self.positions.weight,
                 "head.weight": self.head.weight, "head.bias": self.head.bias}
        for i, block in enumerate(self.blocks):
            names.update(block_names("blocks.%d." % i, block))
        names.update({"norm." + key: p for key, p in self.norm.named_parameters()})
        return names


for placement in ("pre", "post"):
    net = Net(placement == "pre")
    for key, p in net.names().items():
        write("training_%s/%s" % (placement, key), p)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
    losses = []
    for step in range(STEPS):
        batch = batches[step % BATCHES]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batch[:, :-1]).reshape(-1, VOCABULARY),
                               batch[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    write("training_%s/losses" % placement, losses)

# ---- Attention across sequences, and with heads that share keys and values -------------------------
# torch.nn.MultiheadAttention has kdim and vdim; shared heads are its ordinary ones, repeated.

S, K, V = 4, 3, 7
SEEN_KEYS = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1]])


def cross_names(attention):
    return {"q_weight": attention.q_proj_weight, "k_weight": attention.k_proj_weight,
            "v_weight": attention.v_proj_weight, "in_bias": attention.in_proj_bias,
            "out_weight": attention.out_proj.weight, "out_bias": attention.out_proj.bias}


for masked in (False, True):
    attention = torch.nn.MultiheadAttention(C, H, kdim=K, vdim=V, batch_first=True)
    randomise(attention)
    x = torch.randn(N, T, C, requires_grad=True)
    keys = torch.randn(N, S, K, requires_grad=True)
    values = torch.randn(N, S, V, requires_grad=True)
    y, _ = attention(x, keys, values, need_weights=False,
                     key_padding_mask=SEEN_KEYS == 0 if masked else None)
    case("cross" + ("_masked" if masked else ""), y, x,
         {**cross_names(attention), "keys": keys, "values": values},
         mask=SEEN_KEYS if masked else torch.ones(N, S))


def split(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def shared(x, mask, causal, heads, kv_heads, p):
    """Self-attention whose k and v heads are repeated for the queries that share them."""
    dim, kv = x.shape[-1], x.shape[-1] // heads * kv_heads
    q, k, v = F.linear(x, p["in_weight"], p["in_bias"]).split([dim, kv, kv], -1)
    q = split(q, heads)
    k, v = (split(part, kv_heads).repeat_interleave(heads // kv_heads, 1) for part in (k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill((mask == 0)[:, None, None, :], -torch.inf)
    if causal:
        scores = scores.masked_fill(hidden_future(x.shape[1]), -torch.inf)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
    return F.linear(y, p["out_weight"], p["out_bias"])


for kv_heads in (1, 2):
    dim, heads = 12, 4
    kv = dim // heads * kv_heads
    p = {"in_weight": torch.randn(dim + 2 * kv, dim) * 0.4, "in_bias": torch.randn(dim + 2 * kv),
         "out_weight": torch.randn(dim, dim) * 0.4, "out_bias": torch.randn(dim)}
    for tensor in p.values():
        tensor.requires_grad_()
    x = torch.randn(N, T, dim, requires_grad=True)
    mask = SEEN if kv_heads == 2 else torch.ones(N, T)
    case("shared_%d" % kv_heads, shared(x, mask, True, heads, kv_heads, p), x, p, mask=mask)
