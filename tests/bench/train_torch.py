# SPDX-License-Identifier: Apache-2.0
"""The llama model of kernels/llama.h in PyTorch.

train_torch.py [THREADS [STEPS [BATCH]]]: times training steps like train_step.c, at the sizes of
the preset 3m; prints tokens/s of the fastest and of the median step, and the last loss.
train_torch.py --golden: writes what tests/unit/llama.c holds the network against.
"""
import math
import sys
import time

import torch
import torch.nn.functional as F

EPS = 1e-5


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
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w


def rope(x, cos, sin):
    left, right = x.chunk(2, -1)
    return torch.cat((left * cos - right * sin, left * sin + right * cos), -1)


def attention(q, k, v, mask):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


def logits(size, p, tokens, cos, sin, mask):
    B, T, H, K, D = tokens.shape[0], size.T, size.H, size.K, size.D
    x = F.embedding(tokens, p["embed"])
    for e in range(size.E):
        qkv = F.linear(rmsnorm(x, p[f"{e}.norm1"]), p[f"{e}.qkv"]).view(B, T, H + 2 * K, D)
        qkv = qkv.transpose(1, 2)
        q, k = rope(qkv[:, :H], cos, sin), rope(qkv[:, H:H + K], cos, sin)
        v = qkv[:, H + K:]
        if K < H:
            k, v = k.repeat_interleave(H // K, 1), v.repeat_interleave(H // K, 1)
        mixed = attention(q, k, v, mask).transpose(1, 2).reshape(B, T, H * D)
        x = x + F.linear(mixed, p[f"{e}.out"])
        gate, up = F.linear(rmsnorm(x, p[f"{e}.norm2"]), p[f"{e}.gate_up"]).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, p[f"{e}.down"])
    return F.linear(rmsnorm(x, p["norm"]), p["embed" if size.tied else "head"])


def loss_of(size, p, windows, tables):
    out = logits(size, p, windows[:, :-1], *tables)
    return F.cross_entropy(out.reshape(-1, size.V), windows[:, 1:].reshape(-1))


def tables_of(size):
    mask = torch.ones(size.T, size.T, dtype=torch.bool).triu(1)
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


def main():
    arguments = [int(x) for x in sys.argv[1:]]
    bench(*(arguments + [1, 10, 8][len(arguments):]))


main()
