# SPDX-License-Identifier: Apache-2.0
"""Training steps of the microllama-300m preset in PyTorch on a GPU, as gpu_bench takes them.

torch_step.py           eager, then compiled
torch_step.py --tuned   compiled with products tuned, too: minutes, by hand
torch_step.py --try     everything once, at sizes for a CPU, on it

Context 1024, 16384 tokens a step, activations and residual stream in bf16 over fp32 parameters,
AdamW fused, of PyTorch's attentions the fastest. A step of this size keeps the GPU busy for longer
than it takes to launch, so that CUDA graphs have nothing to save. Nothing waits for the device
while steps are timed. Prints a JSON object a line. Exit code 77 where PyTorch or a GPU is missing,
or PyTorch is older than 2.5."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))


class Effort:
    def __init__(self, device, documents, warm_steps, steps, **size):
        self.device, self.documents = device, documents
        self.warm_steps, self.steps, self.size = warm_steps, steps, size


FULL = Effort("cuda", documents=16, warm_steps=5, steps=10,
              V=32000, C=1024, E=12, H=16, K=4, F=5632, T=1024, tied=False)
TRIED = Effort("cpu", documents=2, warm_steps=2, steps=2,
               V=64, C=32, E=2, H=4, K=2, F=48, T=16, tied=False)


class Bench:
    def __init__(self, torch, model, effort):
        self.torch, self.model, self.effort = torch, model, effort
        self.size = model.Size(**effort.size)
        self.device = torch.device(effort.device)

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def seconds(self, call, times):
        self.wait()
        start = time.perf_counter()
        for _ in range(times):
            call()
        self.wait()
        return time.perf_counter() - start

    def fastest_attention(self):
        """Forward and backward of each kind at the sizes of a layer: a row, and a context that
        prefers the fastest, and has the others where a layer's strides are not to its taste."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        size, took = self.size, {}
        q, k, v = (self.torch.randn(self.effort.documents, heads, size.T, size.D,
                                    device=self.device, dtype=self.torch.bfloat16,
                                    requires_grad=True) for heads in (size.H, size.K, size.K))

        def both():
            self.model.attention(q, k, v, None).sum().backward()

        kinds = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
                 "efficient": SDPBackend.EFFICIENT_ATTENTION}
        for name, kind in kinds.items():
            try:
                with sdpa_kernel(kind):
                    self.seconds(both, self.effort.warm_steps)
                    took[name] = self.seconds(both, self.effort.steps) / self.effort.steps
            except RuntimeError:  # not for these sizes, this device or this build
                continue
        order = sorted(took, key=took.get)
        preferred = [kinds[name] for name in order] + [SDPBackend.MATH]
        try:
            context = sdpa_kernel(preferred, set_priority=True)
        except TypeError:  # PyTorch 2.5: in its own order
            context = sdpa_kernel(preferred)
        return {"name": "torch_attention", "fastest": order[0] if order else None,
                "time_s": {name: float(f"{took[name]:.4g}") for name in order}}, context

    def train(self, mode):
        """Tokens/s, the last loss, and seconds until the first step was done; mode: None: eager,
        else torch.compile's."""
        torch, size, effort = self.torch, self.size, self.effort
        torch.manual_seed(1)
        p = {name: (torch.ones(shape, device=self.device) if len(shape) == 1
                    else 0.02 * torch.randn(shape, device=self.device)).requires_grad_()
             for name, shape in size.tensors()}
        optimizer = torch.optim.AdamW(p.values(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                      fused=True)
        tables = tuple(t.to(self.device) for t in self.model.tables_of(size))
        windows = torch.randint(0, size.V, (effort.documents, size.T + 1), device=self.device)

        def loss_of(windows):
            with torch.autocast(self.device.type, torch.bfloat16):
                return self.model.loss_of(size, p, windows, tables, residual=torch.bfloat16)

        forward, losses = torch.compile(loss_of, mode=mode) if mode else loss_of, []

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = forward(windows)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())

        first_s = self.seconds(step, 1)
        self.seconds(step, effort.warm_steps)
        rate = effort.documents * size.T * effort.steps / self.seconds(step, effort.steps)
        return {"tokens_per_s": round(rate, 1), "loss": round(losses[-1].item(), 4),
                "first_step_s": round(first_s, 1)}


def main():
    if sys.argv[1:] not in ([], ["--tuned"], ["--try"]):
        print("usage: torch_step.py [--tuned | --try]", file=sys.stderr)
        return 2
    tried = sys.argv[1:] == ["--try"]
    try:
        import torch
        import train_torch as model
    except Exception as failure:  # not installed, or not whole
        print(f"no PyTorch: {type(failure).__name__}: {failure}")
        return 77
    if model.TORCH < (2, 5):
        print(f"PyTorch {torch.__version__} is older than 2.5")
        return 77
    if not tried and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no GPU")
        return 77
    torch.set_float32_matmul_precision("high")
    bench = Bench(torch, model, TRIED if tried else FULL)
    ways = [("torch_eager", None), ("torch_compiled", "default")]
    if sys.argv[1:] == ["--tuned"]:
        ways = [("torch_tuned", "max-autotune-no-cudagraphs")]
    row, attention = bench.fastest_attention()
    print(json.dumps(row), flush=True)
    failed = 0
    with attention:
        for name, mode in ways:
            row = {"name": name, "torch": torch.__version__}
            try:
                row.update(bench.train(mode))
            except Exception as failure:  # whatever the compiler of the day cannot do
                text = f"{type(failure).__name__}: {failure}"
                row["failed"] = text if len(text) < 800 else f"{text[:200]} ... {text[-600:]}"
                failed += 1
            print(json.dumps(row), flush=True)
    return 1 if failed == len(ways) else 0


if __name__ == "__main__":
    sys.exit(main())
