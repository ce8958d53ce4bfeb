# SPDX-License-Identifier: Apache-2.0
"""Training steps of the microllama-300m preset in PyTorch on a GPU, as gpu_bench takes them:
context 1024, 16384 tokens a step, bf16 autocast over fp32 parameters, fused AdamW, as it is and
compiled. Prints a JSON object a line. Exit code 77 where PyTorch or a GPU is missing."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))

DOCUMENTS, STEPS = 16, 10


def rate(torch, model, size, compiled):
    device = torch.device("cuda")
    torch.manual_seed(1)
    p = {name: (torch.ones(shape, device=device) if len(shape) == 1
                else 0.02 * torch.randn(shape, device=device)).requires_grad_()
         for name, shape in size.tensors()}
    optimizer = torch.optim.AdamW(p.values(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)
    tables = tuple(t.to(device) for t in model.tables_of(size))
    windows = torch.randint(0, size.V, (DOCUMENTS, size.T + 1), device=device)

    def loss_of(windows):
        with torch.autocast("cuda", torch.bfloat16):
            return model.loss_of(size, p, windows, tables)

    forward = torch.compile(loss_of) if compiled else loss_of
    for step in range(-4, STEPS):
        if step == 0:
            torch.cuda.synchronize()
            start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = forward(windows)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return DOCUMENTS * size.T * STEPS / (time.perf_counter() - start)


def main():
    try:
        import torch
        import train_torch as model
    except Exception as failure:  # not installed, or not whole
        print(f"no PyTorch: {type(failure).__name__}: {failure}")
        return 77
    if not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no GPU")
        return 77
    torch.set_float32_matmul_precision("high")
    size = model.Size(V=32000, C=1024, E=12, H=16, K=4, F=5632, T=1024, tied=False)
    failed = 0
    for name, compiled in ("torch_eager", False), ("torch_compiled", True):
        row = {"name": name, "torch": torch.__version__}
        try:
            row["tokens_per_s"] = rate(torch, model, size, compiled)
        except Exception as failure:  # whatever the compiler of the day cannot do
            row["failed"] = f"{type(failure).__name__}: {failure}"[:200]
            failed += 1
        print(json.dumps(row), flush=True)
    return 1 if failed == 2 else 0


sys.exit(main())
