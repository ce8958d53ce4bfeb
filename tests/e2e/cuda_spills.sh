#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No kernel of the built module keeps registers in memory: stack frames and local memory are 0.
# (The build asks ptxas the same; this reads the finished machine code.) Where the disassembler is
# at hand too: nothing reads or writes local memory, and what streams over vectors reads 16 bytes a
# time, and writes as many, or 8 where elements shrink.
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
    END { if (!kernels) print "FAILED: no kernels in the module"; exit bad || !kernels }' || exit 1
if ! command -v nvdisasm >/dev/null && [ ! -x "$(dirname "$tool")/nvdisasm" ]; then
    echo "SKIPPED machine code: no nvdisasm"
    exit 0
fi
"$tool" -sass "$module" 2>&1 | awk '
    function check() {
        if (name !~ /(map|sum|pack|round|add)_kernel/)
            return
        streams++
        if (!wide_reads || (stores && !wide_stores)) {
            print "FAILED: " name ": reads of 16 bytes: " wide_reads + 0 \
                ", stores: " wide_stores + 0
            bad = 1
        }
    }
    /Function : / { check(); name = $3; wide_reads = wide_stores = stores = 0 }
    / (LDL|STL)/ { print "FAILED: " name ": " $0; bad = 1 }
    /LDG[.A-Z]*[.]128/ { wide_reads++ }
    # a partial sum of doubles is not a vector: STG.E.64 there says nothing
    /STG/ && !/STG[.A-Z]*[.]64/ { stores++ }
    /STG[.A-Z]*[.]128/ || (name ~ /[0-9]pack_kernel/ && /STG[.A-Z]*[.]64/) { wide_stores++ }
    END {
        check()
        if (!streams)
            print "FAILED: no machine code in the module"
        exit bad || !streams
    }'
