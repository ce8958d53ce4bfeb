#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training steps of the llama model beside the same in PyTorch, by hand:
#   tests/bench/train.sh [BUILD_DIRECTORY]     ($PYTHON: a python3 that has torch)
# d = 256, 4 layers, 4 heads, context 256, batch 8, bytes; forward, backward, AdamW. The two sides
# take turns, so that both see the same machine; each gets the fastest step of all turns. Both
# sides choose OpenBLAS's kernels by themselves. Memory: what the process holds at its peak beside
# activations, over parameters, gradient and optimizer state.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
python=${PYTHON:-/usr/bin/python3}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
turns=5 steps=10

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: $python has no torch (Debian: apt-get install python3-torch)"
    exit 77
fi

best() { sort -n | tail -n 1; }

printf '%-8s %15s %15s %13s %14s\n' threads 'ours, tokens/s' 'torch, tokens/s' \
    'ratio (1.20)' 'memory (1.50)'
for threads in 1 2; do
    ours=() torch=() memory=
    for ((i = 0; i < turns; i++)); do
        read -r fastest _ _ peak state activations < <(OPENBLAS_NUM_THREADS=1 \
            "$build/tests/bench_train_step" "$threads" "$steps")
        ours+=("$fastest")
        memory=$(echo "($peak - $activations) / $state" | bc -l)
        torch+=("$(OPENBLAS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads \
            "$python" tests/bench/train_torch.py "$threads" "$steps" | cut -d ' ' -f 1)")
    done
    a=$(printf '%s\n' "${ours[@]}" | best)
    b=$(printf '%s\n' "${torch[@]}" | best)
    printf '%-8s %15s %15s %13.2f %14.2f\n' "$threads" "$a" "$b" "$(echo "$a / $b" | bc -l)" \
        "$memory"
done
