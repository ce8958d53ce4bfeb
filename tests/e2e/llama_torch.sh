#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The golden numbers that tests/unit/llama.c goes by are still those of PyTorch, where it is; and
# what tests/gpu/run.sh compares with runs on PyTorchs that are young enough.
set -eu
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "$python has no torch (Debian: python3-torch); the stored golden numbers stand"
    exit 77
fi
OMP_NUM_THREADS=1 "$python" "$ADL_SOURCE_DIR/tests/bench/train_torch.py" \
    --check "$ADL_SOURCE_DIR/tests/include/llama_golden.h"
step="$ADL_SOURCE_DIR/tests/gpu/torch_step.py"
code=0
said=$("$python" "$step" --try 2>/dev/null) || code=$?
case $code in
0)
    for name in torch_eager torch_compiled; do
        grep -q "\"name\": \"$name\".*\"tokens_per_s\": [1-9]" <<<"$said" ||
            { echo "FAILED: $name: $said"; exit 1; }
    done
    ;;
77) echo "SKIPPED torch_step/try: $said" ;;
*)
    echo "FAILED: torch_step.py --try, exit code $code: $said"
    exit 1
    ;;
esac
