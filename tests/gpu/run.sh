#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks that need a GPU, in under 8 minutes: builds with CUDA and whatever else is there, then
# every kernel, vector call and the network against the CPU, a run of the program, the bench beside
# PyTorch, and the sanitizer on the small cases. Each step has a time limit, writes NAME.log (and
# NAME.err), and the next one is tried whatever became of it. results.json says how it went, in
# $ADL_GPU_RESULTS (default: out/gpu). Exit code 0: nothing failed; 77: there is no usable device.
#   ADL_GPU_BUILD (build-gpu): build folder   ADL_GPU_BUDGET_S (470): time for all steps together
set -u
cd "$(dirname "$0")/../.." || exit 1
results=${ADL_GPU_RESULTS:-out/gpu}
build=${ADL_GPU_BUILD:-build-gpu}
ends=$((SECONDS + ${ADL_GPU_BUDGET_S:-470}))
mkdir -p "$results" || exit 1
rm -rf "$results"/*.log "$results"/*.err "$results"/run-* "$results"/results.json
rows=() failed=0
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

stage() { # stage NAME LIMIT_S COMMAND...; killed: a program that is told to stop goes on for a while
    local name=$1 limit=$2 code begin=$SECONDS left=$((ends - SECONDS))
    shift 2
    [ "$limit" -le "$left" ] || limit=$left
    if [ "$limit" -lt 1 ]; then
        code=124
    else
        timeout --signal=KILL "$limit" "$@" >"$results/$name.log" 2>"$results/$name.err" </dev/null
        code=$?
    fi
    case $code in
    0) echo "passed: $name, $((SECONDS - begin)) s" ;;
    77) echo "skipped: $name: $(tail -qn 1 "$results/$name.log" "$results/$name.err")" ;;
    124 | 137) echo "FAILED: $name: not done after $((limit < 0 ? 0 : limit)) s" ;;
    *) echo "FAILED: $name, exit code $code: $(tail -qn 3 "$results/$name.log" \
        "$results/$name.err" | tr '\n' ' ')" ;;
    esac
    [ $code = 0 ] || [ $code = 77 ] || failed=$((failed + 1))
    rows+=("{\"name\": \"$name\", \"exit_code\": $code, \"time_s\": $((SECONDS - begin))}")
    return $code
}

list() { # lines on stdin as the rows of a JSON list
    sed -e 's/^/    /' -e '$!s/$/,/'
}

objects_of() { # the JSON objects, one a line, that a step printed before it ended
    grep -hs '^{.*}$' "$results/$1.log"
}

report() {
    {
        echo '{'
        echo "  \"date\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\","
        echo "  \"device\": \"$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader \
            2>/dev/null | head -n 1)\","
        echo "  \"time_s\": $SECONDS,"
        echo '  "steps": ['
        [ ${#rows[@]} = 0 ] || printf '%s\n' "${rows[@]}" | list
        echo '  ],'
        echo '  "bench": ['
        objects_of bench | list
        echo '  ],'
        echo '  "torch": ['
        objects_of torch | list
        echo '  ]'
        echo '}'
    } >"$results/results.json.part" && mv "$results/results.json.part" "$results/results.json"
    echo "results: $results/results.json"
}
trap report EXIT

# code for the device at hand only: half the build time
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1)
architecture=${capability:+-DCMAKE_CUDA_ARCHITECTURES=${capability/./}-real}
if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then
    export CMAKE_GENERATOR=Ninja
fi
export results build architecture
configure() {
    cmake -S . -B "$build" -DADL_WITH_CUDA=ON -DCMAKE_BUILD_TYPE=Release \
        ${architecture:+"$architecture"}
}
compile() { # what can be built is built
    local go_on=(-k) nccl=()
    grep -q 'CMAKE_GENERATOR:INTERNAL=Ninja' "$build/CMakeCache.txt" && go_on=(-k 0)
    grep -q 'NCCL_LIBRARY:.*libnccl' "$build/CMakeCache.txt" && nccl=(adloco_nccl)
    cmake --build "$build" --parallel "$(nproc)" --target adloco adloco_cuda gpu_cuda_ops \
        gpu_cuda_space gpu_cuda_wire gpu_cuda_network gpu_bench "${nccl[@]}" -- "${go_on[@]}"
}
export -f configure compile
stage configure 120 bash -c configure
stage build 240 bash -c compile

stage space 30 "$build/tests/gpu/gpu_cuda_space"
if [ $? = 77 ]; then
    exit 77
fi
stage wire 30 "$build/tests/gpu/gpu_cuda_wire"
stage operators 60 "$build/tests/gpu/gpu_cuda_ops"
stage network 60 "$build/tests/gpu/gpu_cuda_network"

# The program: the same decisions on the GPU as on the CPU, with several workers on the device.
# Flat lines: read without any library.
program() {
    local kind losses=()
    printf '%s\n' 'name: gpu' 'transport: threads' 'method: adloco' 'trainers: 2' \
        'cluster.workers: 4' 'cluster.workers_per_device: 4' 'model.preset: tiny' \
        'model.context: 64' 'inner.steps: 5' 'inner.lr: 0.003' 'outer.steps: 4' \
        'batch.initial: 2' 'batch.cap: 16' >"$results/e.yaml"
    for kind in llama llama_cuda; do
        "$build/adloco" run "$results/e.yaml" --quiet --set model.kind=$kind \
            --out "$results/run-$kind" || return 1
        losses+=("$(sed -n 's/.*"loss_final": \(.*\),/\1/p' "$results/run-$kind/summary.json")")
        grep -E '"(exchanges|samples|batch_final|outer_steps|status)":' \
            "$results/run-$kind/summary.json" >"$results/decided-$kind.log"
    done
    echo "losses: ${losses[*]}"
    cmp "$results/decided-llama.log" "$results/decided-llama_cuda.log" || return 1
    awk -v a="${losses[0]}" -v b="${losses[1]}" 'BEGIN { exit !(a > 0 && (a-b)^2 < 1e-6) }'
}
# The same over NCCL, with one process: to the bit, but for wires that round.
nccl() {
    local wire losses=()
    [ -e "$build/libadloco_nccl.so" ] || { echo "NCCL is not in this build"; return 77; }
    for wire in f32 bf16 int8; do
        "$build/adloco" run "$results/e.yaml" --quiet --set model.kind=llama_cuda \
            --set transport=nccl --set nccl.wire=$wire --out "$results/run-nccl-$wire" || return 1
        losses+=("$(sed -n 's/.*"loss_final": \(.*\),/\1/p' \
            "$results/run-nccl-$wire/summary.json")")
    done
    echo "losses: ${losses[*]}"
    awk -v a="${losses[0]}" -v b="${losses[1]}" -v c="${losses[2]}" 'BEGIN {
        exit !(a > 0 && b > 0 && c > 0 && (a - b)^2 < 1e-2 && (a - c)^2 < 1e-2) }' || return 1
    cmp <(grep '"loss_final"' "$results/run-llama_cuda/summary.json") \
        <(grep '"loss_final"' "$results/run-nccl-f32/summary.json")
}
export -f program nccl
stage program 60 bash -c program
stage nccl 60 bash -c nccl

stage bench 90 "$build/tests/gpu/gpu_bench"
stage torch 120 python3 tests/gpu/torch_step.py

if command -v compute-sanitizer >/dev/null; then
    check=(compute-sanitizer --error-exitcode 9)
    stage memcheck 60 "${check[@]}" --tool memcheck "$build/tests/gpu/gpu_cuda_network"
    stage racecheck 60 "${check[@]}" --tool racecheck "$build/tests/gpu/gpu_cuda_network"
    # these tests provoke refusals of the API, which is no fault of theirs
    stage memcheck_operators 60 "${check[@]}" --tool memcheck --report-api-errors no \
        "$build/tests/gpu/gpu_cuda_ops"
else
    echo "skipped: compute-sanitizer is not installed"
fi

# The figures that have targets.
value() { # value STEP NAME KEY: a number of a step's object
    objects_of "$1" | sed -n "s/.*\"name\": \"$2\".*\"$3\": \([-+0-9.e]*\).*/\1/p"
}
ours=$(value bench train_bf16 tokens_per_s)
theirs=$({ value torch torch_compiled tokens_per_s; value torch torch_eager tokens_per_s; } |
    sort -g | tail -n 1)
echo "tokens/s: ${ours:-unknown}, PyTorch's best ${theirs:-unknown}; model flops utilization" \
    "$(value bench train_bf16 mfu); four workers beside one: $(value bench workers ratio)"
objects_of bench | sed -n 's/.*"name": "\([^"]*\)".*"of_copy": \([0-9.]*\).*/\2 \1/p' | sort -g |
    head -n 3 | sed 's/^/of the copy bandwidth, the three lowest: /'
[ $failed = 0 ]
