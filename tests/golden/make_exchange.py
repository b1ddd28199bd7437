"""Networks that go between PyTorch and the library as files, for test_files.c.

    python3 tests/golden/make_exchange.py              writes exchange.txt and *.safetensors
    python3 tests/golden/make_exchange.py read FOLDER  reads what the library has saved there

The files are written by hand, byte by byte as Python's safetensors package writes them, with the
digest that the library adds. exchange.txt holds, for each network, an input x and the output y that
PyTorch computes in double.
"""
import json
import os
import struct
import sys
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.manual_seed(20240317)
HERE = os.path.dirname(os.path.abspath(__file__))

# In the order in which the format sorts them.
KINDS = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16",
         torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32", torch.float32: "F32",
         torch.float64: "F64", torch.int64: "I64"}
ORDER = list(KINDS.values())


def content(x):
    x = x.detach().contiguous()
    if x.dtype == torch.bfloat16:
        x = x.view(torch.int16)
    return x.numpy().tobytes()


def digest(tensors):
    h = 0xcbf29ce484222325
    for name, x in tensors:
        numbers = struct.pack("<Q", x.dim()) + b"".join(struct.pack("<Q", n) for n in x.shape)
        for byte in name.encode() + b"\0" + KINDS[x.dtype].encode() + b"\0" + numbers + content(x):
            h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return "fnv1a:%016x" % h


def save(path, tensors, with_digest=True):
    tensors = sorted(tensors.items(),
                     key=lambda item: (-ORDER.index(KINDS[item[1].dtype]), item[0].encode()))
    header = {"__metadata__": {"digest": digest(tensors)}} if with_digest else {}
    offset = 0
    for name, x in tensors:
        end = offset + len(content(x))
        header[name] = {"dtype": KINDS[x.dtype], "shape": list(x.shape),
                        "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(content(x) for _, x in tensors))


def load(path):
    data = open(path, "rb").read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    dtypes = {name: dtype for dtype, name in KINDS.items()}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + at for at in entry["data_offsets"])
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=dtypes[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Transformer(nn.Module):
    """Ids to logits; blocks with the norm first, learned positions."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.positions = nn.Parameter(torch.randn(6, 8))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(2))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 11)

    def forward(self, ids):
        x = self.embed(ids) + self.positions[:ids.shape[1]]
        mask = torch.triu(torch.full((ids.shape[1],) * 2, float("-inf")), 1)
        for layer in self.layers:
            x = layer(x, src_mask=mask)
        return self.head(self.norm(x))


NETWORKS = {
    "mlp": nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3)),
    "conv": nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Conv2d(4, 4, 2, groups=2), nn.Flatten(),
                          nn.Linear(16, 3)),
    "transformer": Transformer(),
}
INPUTS = {
    "mlp": torch.randn(6, 5),
    "conv": torch.randn(3, 2, 6, 6),
    "transformer": torch.randint(11, (3, 6)),
}
NETWORKS["lstm"] = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
NETWORKS["gru"] = nn.GRU(4, 3, bidirectional=True, batch_first=True)
INPUTS["lstm"] = torch.randn(3, 5, 4)
INPUTS["gru"] = torch.randn(3, 5, 4)


def output(net, x):
    """That of all steps, without the last state."""
    y = net(x)
    return y[0] if isinstance(y, tuple) else y


def train(net, x):
    """A few steps, so that nothing is what it was made as."""
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        sgd.zero_grad()
        output(net, x).pow(2).mean().backward()
        sgd.step()
    net.eval()


def write_all():
    with open(os.path.join(HERE, "exchange.txt"), "w") as out:
        out.write("# PyTorch %s, float64; written by make_exchange.py\n" % torch.__version__)

        def write(name, x):
            out.write(" ".join([name, *map(str, x.shape)]) + "\n")
            out.write(" ".join("%.17g" % v for v in x.detach().flatten().tolist()) + "\n")

        for name, net in NETWORKS.items():
            train(net, INPUTS[name])
            save(os.path.join(HERE, name + ".safetensors"), net.state_dict())
            write(name + "/x", INPUTS[name])
            write(name + "/y", output(net, INPUTS[name]))

        bits = [0, 0x8000, 1, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3555, 0x7bff, 0xfbff, 0x7c00, 0xfc00]
        half = torch.tensor([b - 65536 * (b >> 15) for b in bits], dtype=torch.int16)
        brain = torch.tensor([0, 1, 0x7f, 0x80, 0x3f80, 0x3eab, 0x7f7f, 0x7f80, -0x80, -0x4080],
                             dtype=torch.int16)
        kinds = {"f16": half.view(torch.float16), "bf16": brain.view(torch.bfloat16),
                 "bool": torch.tensor([True, False]), "u8": torch.tensor([0, 255]).byte(),
                 "i8": torch.tensor([-128, 127]).to(torch.int8),
                 "i16": torch.tensor([-32768, 32767]).to(torch.int16),
                 "i32": torch.tensor([-2**31, 2**31 - 1]).to(torch.int32),
                 "i64": torch.tensor([-2**53, 2**53]),
                 "größe \"\\\t": torch.tensor(1.5, dtype=torch.float32)}
        save(os.path.join(HERE, "kinds.safetensors"), kinds, with_digest=False)
        for name, x in kinds.items():
            if x.dim():
                write("kinds/" + name, x.double())


def read_all(folder):
    for name, net in NETWORKS.items():
        train(net, INPUTS[name])
        expected = output(net, INPUTS[name])
        path = os.path.join(folder, name + ".safetensors")
        tensors = load(path)
        if name == "transformer":
            names = [("embedding.weight", "embed.weight"), ("positions.weight", "positions")]
            for i in range(2):
                ours, theirs = "blocks.%d." % i, "layers.%d." % i
                names += [(ours + "attention.in_weight", theirs + "self_attn.in_proj_weight"),
                          (ours + "attention.in_bias", theirs + "self_attn.in_proj_bias"),
                          (ours + "attention.out_weight", theirs + "self_attn.out_proj.weight"),
                          (ours + "attention.out_bias", theirs + "self_attn.out_proj.bias"),
                          (ours + "feed_forward.in_weight", theirs + "linear1.weight"),
                          (ours + "feed_forward.in_bias", theirs + "linear1.bias"),
                          (ours + "feed_forward.out_weight", theirs + "linear2.weight"),
                          (ours + "feed_forward.out_bias", theirs + "linear2.bias")]
                for kind in "weight", "bias":
                    names += [(ours + "attention_norm." + kind, theirs + "norm1." + kind),
                              (ours + "feed_forward_norm." + kind, theirs + "norm2." + kind)]
            for ours, theirs in names:
                tensors[theirs] = tensors.pop(ours)
        other = Transformer() if name == "transformer" else NETWORKS[name]
        for p in other.parameters():
            nn.init.zeros_(p)
        other.load_state_dict(tensors)
        other.eval()
        print("%-12s largest difference %.3g" %
              (name, (output(other, INPUTS[name]) - expected).abs().max().item()))


if len(sys.argv) == 3 and sys.argv[1] == "read":
    read_all(sys.argv[2])
else:
    write_all()
