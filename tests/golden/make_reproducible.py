"""Losses of one training in PyTorch on several instruction sets and numbers of threads, for
examples/claims/reproducible.c: each in a process of its own, with the variables that tell ATen,
oneDNN and OpenBLAS what processor to expect.

    python3 tests/golden/make_reproducible.py > tests/golden/reproducible.txt
"""
import os
import subprocess
import sys
from pathlib import Path

SEEDS, STEPS = 8, 100
WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 64, 4, 2, 32, 8
AVX512 = {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
          "OPENBLAS_CORETYPE": "SkylakeX"}
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}
RUNS = [(AVX512, 1), (AVX2, 1), (AVX512, 2)]


def losses(seed):
    import torch

    data = (Path(__file__).parent / "../../examples/data/opticks.txt").read_bytes()
    number = {byte: i for i, byte in enumerate(sorted(set(data)))}
    ids = torch.tensor([number[byte] for byte in data])
    torch.manual_seed(seed)
    order = torch.randperm((len(ids) - 1) // CONTEXT)
    block = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, dropout=0, activation="gelu", batch_first=True, norm_first=True)
    net = torch.nn.ModuleDict({
        "embedding": torch.nn.Embedding(len(number), WIDTH),
        "positions": torch.nn.Embedding(CONTEXT, WIDTH),
        "blocks": torch.nn.TransformerEncoder(
            block, LAYERS, torch.nn.LayerNorm(WIDTH), enable_nested_tensor=False),
        "head": torch.nn.Linear(WIDTH, len(number))})
    future = torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1)
    adam = torch.optim.Adam(net.parameters(), lr=2e-2)
    for step in range(STEPS):
        starts = order[step * BATCH:(step + 1) * BATCH] * CONTEXT
        x = torch.stack([ids[s:s + CONTEXT] for s in starts])
        y = torch.stack([ids[s + 1:s + CONTEXT + 1] for s in starts])
        h = net["embedding"](x) + net["positions"](torch.arange(CONTEXT))
        logits = net["head"](net["blocks"](h, mask=future, is_causal=True))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        yield loss.item()


if len(sys.argv) > 1:
    for seed in range(SEEDS):
        for loss in losses(seed):
            print(f"{loss:.9g}", flush=True)
else:
    runs = []
    for settings, threads in RUNS:
        env = {**os.environ, **settings, "OMP_NUM_THREADS": str(threads),
               "OPENBLAS_NUM_THREADS": "1", "GOMP_SPINCOUNT": "0"}
        runs.append(subprocess.Popen([sys.executable, __file__, "run"], env=env,
                                     stdout=subprocess.PIPE, text=True))
    columns = [run.communicate()[0].split() for run in runs]
    print("seed step avx512 avx2 threads2")
    for i, row in enumerate(zip(*columns)):
        print(i // STEPS, i % STEPS + 1, *row)
