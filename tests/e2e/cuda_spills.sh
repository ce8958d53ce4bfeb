#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No kernel of the built module keeps registers in memory: stack frames and local memory are 0.
# (The build asks ptxas the same; this reads the finished machine code.)
set -u
module=$(dirname "$ADLOCO")/libadloco_cuda.so
tool=$(command -v cuobjdump || ls /usr/local/cuda/bin/cuobjdump 2>/dev/null)
if [ ! -e "$module" ] || [ -z "$tool" ]; then
    echo "skipped: no CUDA module in this build, or no cuobjdump"
    exit 77
fi
"$tool" -res-usage "$module" 2>&1 | awk '
    /Function / { name = $2; kernels++ }
    /REG:/ && (!/STACK:0 / || !/LOCAL:0 /) { print "FAILED: " name " " $0; bad = 1 }
    END { if (!kernels) print "FAILED: no kernels in the module"; exit bad || !kernels }'
