# SPDX-License-Identifier: Apache-2.0
"""The llama model of kernels/llama.h in PyTorch.

train_torch.py [THREADS [STEPS [BATCH]]]: times training steps like train_step.c, at the sizes of
the preset 3m; prints tokens/s of the fastest and of the median step, and the last loss.
train_torch.py --golden: prints tests/include/llama_golden.h, which the network is held against.
train_torch.py --check HEADER: computes it anew and compares.
"""
import math
import re
import sys
import time

import torch
import torch.nn.functional as F

EPS = 1e-5
TORCH = tuple(int(x) for x in torch.__version__.split(".")[:2])


class Size:
    def __init__(self, V, C, E, H, K, F, T, tied):
        self.V, self.C, self.E, self.H, self.K, self.F, self.T = V, C, E, H, K, F, T
        self.tied = tied
        self.D = C // H
        self.W = (H + 2 * K) * self.D

    def tensors(self):
        """Name and shape of each tensor, in the order of the flat vector."""
        yield "embed", (self.V, self.C)
        for e in range(self.E):
            yield f"{e}.norm1", (self.C,)
            yield f"{e}.qkv", (self.W, self.C)
            yield f"{e}.out", (self.C, self.C)
            yield f"{e}.norm2", (self.C,)
            yield f"{e}.gate_up", (2 * self.F, self.C)
            yield f"{e}.down", (self.C, self.F)
        yield "norm", (self.C,)
        if not self.tied:
            yield "head", (self.V, self.C)


def turns(size):
    half = size.D // 2
    rate = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(size.T, dtype=torch.float64)[:, None] * rate
    return angle.cos().float(), angle.sin().float()


def rmsnorm(x, w):
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + EPS) * w


def rope(x, cos, sin):
    left, right = x.chunk(2, -1)
    return torch.cat((left * cos - right * sin, left * sin + right * cos), -1)


def attention(q, k, v, mask):
    """Keys and values of K heads for queries of H."""
    B, H, T, D = q.shape
    if TORCH >= (2, 5):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] < H)
    if k.shape[1] < H:
        k, v = (x.repeat_interleave(H // k.shape[1], 1) for x in (k, v))
    scores = torch.baddbmm(mask, q.reshape(B * H, T, D), k.reshape(B * H, T, D).transpose(1, 2),
                           alpha=1 / math.sqrt(D))
    return (scores.softmax(-1) @ v.reshape(B * H, T, D)).view(B, H, T, D)


def logits(size, p, tokens, cos, sin, mask, residual=torch.float32):
    """residual: the type of what blocks add to, which autocast leaves as it is."""
    B, T, H, K, D = tokens.shape[0], size.T, size.H, size.K, size.D
    x = F.embedding(tokens, p["embed"]).to(residual)
    for e in range(size.E):
        qkv = F.linear(rmsnorm(x, p[f"{e}.norm1"]), p[f"{e}.qkv"]).view(B, T, H + 2 * K, D)
        qkv = qkv.transpose(1, 2)
        q, k = rope(qkv[:, :H], cos, sin), rope(qkv[:, H:H + K], cos, sin)
        v = qkv[:, H + K:]
        mixed = attention(q.to(v.dtype), k.to(v.dtype), v, mask).transpose(1, 2).reshape(B, T, H * D)
        x = x + F.linear(mixed, p[f"{e}.out"])
        gate, up = F.linear(rmsnorm(x, p[f"{e}.norm2"]), p[f"{e}.gate_up"]).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, p[f"{e}.down"])
    return F.linear(rmsnorm(x, p["norm"]), p["embed" if size.tied else "head"])


def loss_of(size, p, windows, tables, **how):
    out = logits(size, p, windows[:, :-1], *tables, **how)
    return F.cross_entropy(out.reshape(-1, size.V), windows[:, 1:].reshape(-1))


def tables_of(size):
    mask = torch.full((size.T, size.T), float("-inf")).triu(1)
    return (*turns(size), mask)


def bench(threads, steps, batch):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    size = Size(V=256, C=256, E=4, H=4, K=4, F=688, T=256, tied=True)
    p = {name: (torch.ones(shape) if len(shape) == 1 else 0.02 * torch.randn(shape))
         .requires_grad_() for name, shape in size.tensors()}
    optimizer = torch.optim.AdamW(p.values(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    tables = tables_of(size)
    took = []
    for step in range(-2, steps):
        windows = torch.randint(0, 27, (batch, size.T + 1))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(size, p, windows, tables)
        loss.backward()
        optimizer.step()
        if step >= 0:
            took.append(time.perf_counter() - start)
    took.sort()
    tokens = batch * size.T
    print(f"{tokens / took[0]:.0f} {tokens / took[len(took) // 2]:.0f} {loss.item():.4f}")


# ---- golden numbers

GOLDEN_SIZES = (Size(V=23, C=24, E=2, H=4, K=2, F=40, T=9, tied=True),
                Size(V=23, C=24, E=2, H=2, K=2, F=40, T=9, tied=False))
GOLDEN_STEPS, GOLDEN_DOCUMENTS = 10, 3


def golden_number(i):
    """Element i of the start point: in -1..1, the same in C."""
    h = (i + 1) * 2654435761 % 2**32
    h = (h ^ h >> 15) * 2246822519 % 2**32
    return (h ^ h >> 13) / 2**31 - 1


def golden_run(size):
    """Log-probabilities after the first document, losses of ten AdamW steps on one batch."""
    p, at = {}, 0
    for name, shape in size.tensors():
        n = math.prod(shape)
        x = torch.tensor([golden_number(at + i) for i in range(n)], dtype=torch.float64)
        x = 1 + 0.2 * x if len(shape) == 1 else 0.3 * x
        p[name] = x.float().view(shape).requires_grad_()
        at += n
    T, V = size.T, size.V
    windows = torch.tensor([[(d * 31 + t * t * 7 + 3 * t) % V for t in range(T + 1)]
                            for d in range(GOLDEN_DOCUMENTS)])
    tables = tables_of(size)
    with torch.no_grad():
        after = logits(size, p, windows[:1, :-1], *tables)[0, -1].log_softmax(-1)
    optimizer = torch.optim.AdamW(p.values(), lr=1e-2, betas=(0.9, 0.95), eps=1e-5,
                                  weight_decay=0.1)
    losses = []
    for _ in range(GOLDEN_STEPS):
        optimizer.zero_grad()
        loss = loss_of(size, p, windows, tables)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return after.tolist(), losses


def golden():
    """The header's text."""
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */",
             "/* Written by tests/bench/train_torch.py --golden; do not edit. A tied network with",
             " * shared key heads, and one that is neither: log-probabilities of the token after",
             " * the first document, and the losses of AdamW steps on one batch. */",
             "#ifndef ADL_TESTS_LLAMA_GOLDEN_H", "#define ADL_TESTS_LLAMA_GOLDEN_H", ""]
    runs = [golden_run(size) for size in GOLDEN_SIZES]
    for name, column in (("log_probabilities", 0), ("losses", 1)):
        lines.append(f"static const double golden_{name}[2][{len(runs[0][column])}] = {{")
        for run in runs:
            numbers = [f"{x:.7f}" for x in run[column]]
            rows = [", ".join(numbers[i:i + 8]) for i in range(0, len(numbers), 8)]
            lines.append("    {" + ",\n     ".join(rows) + "},")
        lines.append("};")
    return "\n".join(lines + ["", "#endif", ""])


def numbers_of(text):
    return [float(x) for x in re.findall(r"-?\d+\.\d{7}", text)]


def check_golden(path):
    """Whether a stored header still says what PyTorch computes, to 1e-4."""
    stored, fresh = numbers_of(open(path).read()), numbers_of(golden())
    worst = max(abs(a - b) for a, b in zip(stored, fresh))
    if len(stored) != len(fresh) or not worst <= 1e-4:
        sys.exit(f"{path}: {len(stored)} numbers, {len(fresh)} computed; worst difference {worst}")
    print(f"{len(fresh)} numbers, worst difference {worst:.1e}")


def main():
    if sys.argv[1:] == ["--golden"]:
        print(golden(), end="")
    elif sys.argv[1:2] == ["--check"]:
        check_golden(sys.argv[2])
    else:
        arguments = [int(x) for x in sys.argv[1:]]
        bench(*(arguments + [1, 10, 8][len(arguments):]))


if __name__ == "__main__":
    main()
