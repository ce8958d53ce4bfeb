#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GPU models as a user meets them: refused in one line where there is no GPU, and, with the module
# of tests/cuda_emulator in place of the real one, the same run as on the CPU.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
run_refused() { # run_refused CODE TEXT ARGUMENTS...: that exit code, and one line that holds TEXT
    refused "$1" "$2" run e.yaml --quiet "${@:3}"
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
run_refused 77 "CUDA"
run_refused 77 "CUDA" --set model.precision=bf16
mkdir broken empty
echo nonsense >broken/libadloco_cuda.so
LD_LIBRARY_PATH=broken run_refused 77 "no CUDA here: "
library=$(ldd "$ADLOCO" | sed -n 's/.*libc\.so\.6 => \([^ ]*\) .*/\1/p')
if [ -n "$library" ]; then
    ln -s "$library" empty/libadloco_cuda.so
    LD_LIBRARY_PATH=empty run_refused 77 "undefined symbol: adl_cuda_module"
fi
run_refused 2 "model.precision: bf16 needs model.kind: llama_cuda" \
    --set model.kind=llama --set model.precision=bf16

if [ -z "${ADL_CUDA_EMULATED:-}" ]; then
    echo "SKIPPED emulated run: the emulator is not in this build"
    finish
fi
export LD_LIBRARY_PATH=$ADL_CUDA_EMULATED
if has MPI; then
    run_refused 2 "transport: mpi sums vectors in host memory" --set transport=mpi
fi
# what a device may lack, or do in the middle of a run
CUDA_EMULATOR='error=35' run_refused 77 "CUDA driver version is insufficient"
CUDA_EMULATOR='count=0' run_refused 77 "no usable CUDA device: there are none"
CUDA_EMULATOR='major=7' run_refused 77 "compute capability 7.0, needed is 8.0 or later"
CUDA_EMULATOR='runtime=12060' run_refused 77 "the CUDA runtime is 12.6, built for 13"
CUDA_EMULATOR='memory=100000' run_refused 1 "100000 bytes are free"
CUDA_EMULATOR='launches=60' run_refused 1 "failed: unspecified launch failure"
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
awk -v cpu="$(value loss_final cpu)" -v gpu="$(value loss_final gpu)" -v half="$(value loss_final half)" 'BEGIN {
    apart = cpu > gpu ? cpu - gpu : gpu - cpu
    wide = cpu > half ? cpu - half : half - cpu
    exit !(cpu > 1 && apart < 1e-5 && wide > 0 && wide < 0.02)
}' || fail "losses: $(value loss_final cpu) on the CPU, $(value loss_final gpu) in fp32, $(value loss_final half) in bf16"

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
[ "$(value loss_final whole)" = "$(value loss_final stopped)" ] || fail "resumed: $(value loss_final stopped), not $(value loss_final whole)"
finish
