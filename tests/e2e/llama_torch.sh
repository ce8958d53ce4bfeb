#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The golden numbers that tests/unit/llama.c goes by are still those of PyTorch, where it is.
set -eu
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "$python has no torch (Debian: python3-torch); the stored golden numbers stand"
    exit 77
fi
OMP_NUM_THREADS=1 "$python" "$ADL_SOURCE_DIR/tests/bench/train_torch.py" \
    --check "$ADL_SOURCE_DIR/tests/include/llama_golden.h"
