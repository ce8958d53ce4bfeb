#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GPU models as a user meets them: refused in one line where there is no GPU, and, with the module
# of tests/cuda_emulator in place of the real one, the same run as on the CPU.
set -u
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
refused() { # refused CODE TEXT ARGUMENTS...: that exit code, and one line that holds TEXT
    local want=$1 text=$2
    shift 2
    timeout 60 "$ADLOCO" run e.yaml --quiet "$@" >said 2>errors </dev/null
    local code=$?
    # what AddressSanitizer says of the emulator's fibers is not the program's
    sed -i '/^==.*makecontext/d' errors
    [ $code = "$want" ] || fail "exit code $code instead of $want: adloco run $*"
    [ "$(wc -l <errors)" = 1 ] || fail "not one line: adloco run $*: $(cat errors)"
    grep -qF -- "$text" errors || fail "adloco run $*: '$text' is not in: $(cat errors)"
}

# flat lines: read by every build
cat >e.yaml <<'END'
name: cuda
transport: threads
method: diloco
cluster.workers: 2
model.kind: llama_cuda
model.preset: custom
model.vocab: 32
model.width: 8
model.layers: 1
model.heads: 2
model.hidden: 16
model.context: 6
model.eval_samples: 2
inner.steps: 2
inner.lr: 0.01
outer.steps: 2
batch.initial: 2
END

export CUDA_VISIBLE_DEVICES=
refused 77 "CUDA"
refused 77 "CUDA" --set model.precision=bf16
mkdir broken empty
echo nonsense >broken/libadloco_cuda.so
LD_LIBRARY_PATH=broken refused 77 "no CUDA here: "
library=$(ldd "$ADLOCO" | sed -n 's/.*libc\.so\.6 => \([^ ]*\) .*/\1/p')
if [ -n "$library" ]; then
    ln -s "$library" empty/libadloco_cuda.so
    LD_LIBRARY_PATH=empty refused 77 "undefined symbol: adl_cuda_module"
fi
refused 2 "model.precision: bf16 needs model.kind: llama_cuda" \
    --set model.kind=llama --set model.precision=bf16

if [ -z "${ADL_CUDA_EMULATED:-}" ]; then
    echo "SKIPPED emulated run: the emulator is not in this build"
    [ $failures = 0 ]
    exit
fi
export LD_LIBRARY_PATH=$ADL_CUDA_EMULATED
if "$ADLOCO" --version | grep -qE '(^|, )MPI '; then
    refused 2 "transport: mpi sums vectors in host memory" --set transport=mpi
fi
# what a device may lack, or do in the middle of a run
CUDA_EMULATOR='error=35' refused 77 "CUDA driver version is insufficient"
CUDA_EMULATOR='count=0' refused 77 "no usable CUDA device: there are none"
CUDA_EMULATOR='major=7' refused 77 "compute capability 7.0, needed is 8.0 or later"
CUDA_EMULATOR='runtime=12060' refused 77 "the CUDA runtime is 12.6, built for 13"
CUDA_EMULATOR='memory=100000' refused 1 "100000 bytes are free"
CUDA_EMULATOR='launches=60' refused 1 "failed: unspecified launch failure"
same=''
for run in cpu:llama:fp32 gpu:llama_cuda:fp32 half:llama_cuda:bf16; do
    IFS=: read -r name kind precision <<<"$run"
    timeout 300 "$ADLOCO" run e.yaml --quiet --out "$name" --set model.kind="$kind" \
        --set model.precision="$precision" >said 2>errors </dev/null ||
        fail "$kind in $precision: $(cat errors)"
    decided=$(grep -E '"(exchanges|samples|batch_final|outer_steps|status)":' "$name/summary.json")
    [ -n "$decided" ] || fail "$kind in $precision: no summary"
    [ "${same:=$decided}" = "$decided" ] || fail "$kind in $precision decides otherwise: $decided"
done
loss() { sed -n 's/.*"loss_final": \(.*\),/\1/p' "$1/summary.json"; }
awk -v cpu="$(loss cpu)" -v gpu="$(loss gpu)" -v half="$(loss half)" 'BEGIN {
    apart = cpu > gpu ? cpu - gpu : gpu - cpu
    wide = cpu > half ? cpu - half : half - cpu
    exit !(cpu > 1 && apart < 1e-5 && wide > 0 && wide < 0.02)
}' || fail "losses: $(loss cpu) on the CPU, $(loss gpu) in fp32, $(loss half) in bf16"

# stopped and taken up from its checkpoint, a run ends as if it had never stopped
more=(--quiet --set outer.steps=12 --set checkpoint.every=1)
"$ADLOCO" run e.yaml "${more[@]}" --out whole >said 2>errors </dev/null || fail "$(cat errors)"
"$ADLOCO" run e.yaml "${more[@]}" --out stopped >said 2>errors </dev/null &
stopped=$!
for _ in $(seq 600); do
    [ ! -e stopped/checkpoint-00000002.adl ] || break
    sleep 0.05
done
kill -TERM $stopped
wait $stopped || fail "told to stop: $(cat errors)"
[ ! -e stopped/summary.json ] || fail "it came to its end before it was stopped"
timeout 300 "$ADLOCO" run e.yaml "${more[@]}" --out stopped --resume >said 2>errors </dev/null ||
    fail "taken up again: $(cat errors)"
[ "$(loss whole)" = "$(loss stopped)" ] || fail "resumed: $(loss stopped), not $(loss whole)"
[ $failures = 0 ]
