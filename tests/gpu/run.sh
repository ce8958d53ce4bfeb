#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks that need a GPU, in under 8 minutes: builds with CUDA and whatever else is there, then
# every kernel, vector call and the network against the CPU, a run of the program, the
# sanitizer on the small cases, and the bench beside PyTorch. Each writes a log, and results.json
# says how it went, into $ADL_GPU_RESULTS (default: out/gpu). Exit code 0: nothing failed; 77: there
# is no usable device.
set -u
cd "$(dirname "$0")/../.." || exit 1
results=${ADL_GPU_RESULTS:-out/gpu}
build=${ADL_GPU_BUILD:-build-gpu}
mkdir -p "$results" || exit 1
rows=() failed=0 started=$(date +%s)

stage() { # stage NAME LIMIT_S COMMAND...: its output goes to NAME.log
    local name=$1 limit=$2 code begin=$SECONDS
    shift 2
    timeout "$limit" "$@" >"$results/$name.log" 2>&1 </dev/null
    code=$?
    case $code in
    0) echo "passed: $name, $((SECONDS - begin)) s" ;;
    77) echo "skipped: $name: $(tail -n 1 "$results/$name.log")" ;;
    124) echo "FAILED: $name: not done after $limit s" ;;
    *) echo "FAILED: $name, exit code $code: $(tail -n 3 "$results/$name.log" | tr '\n' ' ')" ;;
    esac
    [ $code = 0 ] || [ $code = 77 ] || failed=$((failed + 1))
    rows+=("    {\"name\": \"$name\", \"exit_code\": $code, \"time_s\": $((SECONDS - begin))}")
    return $code
}

json_of() { # the JSON that a stage printed, or null
    if [ -s "$results/$1.log" ] && grep -q '^{' "$results/$1.log"; then
        sed -n '/^{/,$p' "$results/$1.log"
    else
        echo null
    fi
}

report() {
    {
        echo '{'
        echo "  \"date\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\","
        echo "  \"device\": \"$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader \
            2>/dev/null | head -n 1)\","
        echo "  \"time_s\": $(($(date +%s) - started)),"
        echo '  "stages": ['
        local IFS=$'\n' joined
        joined=$(printf '%s,\n' "${rows[@]}")
        echo "${joined%,}"
        echo '  ],'
        echo "  \"bench\": $(json_of bench),"
        echo "  \"torch\": $(json_of torch)"
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
compile() {
    cmake --build "$build" --parallel "$(nproc)" --target adloco adloco_cuda gpu_cuda_ops \
        gpu_cuda_space gpu_cuda_wire gpu_cuda_network gpu_bench
}
export -f configure compile
stage configure 60 bash -c configure || exit 1
stage build 300 bash -c compile || exit 1

stage space 60 "$build/tests/gpu/gpu_cuda_space"
if [ $? = 77 ]; then
    exit 77
fi
stage wire 60 "$build/tests/gpu/gpu_cuda_wire"
stage operators 60 "$build/tests/gpu/gpu_cuda_ops"
stage network 60 "$build/tests/gpu/gpu_cuda_network"

# The program: the same decisions on the GPU as on the CPU, with several workers on the device.
program() {
    local kind losses=()
    printf '%s\n' 'name: gpu' 'transport: threads' 'method: adloco' 'trainers: 2' \
        'cluster.workers: 4' 'cluster.workers_per_device: 4' 'model.preset: tiny' \
        'inner.steps: 5' 'inner.lr: 0.003' 'outer.steps: 4' 'batch.initial: 2' 'batch.cap: 16' \
        >"$results/e.yaml"
    for kind in llama llama_cuda; do
        "$build/adloco" run "$results/e.yaml" --quiet --set model.kind=$kind \
            --out "$results/run-$kind" || return 1
        losses+=("$(sed -n 's/.*"loss_final": \(.*\),/\1/p' "$results/run-$kind/summary.json")")
    done
    echo "losses: ${losses[*]}"
    awk -v a="${losses[0]}" -v b="${losses[1]}" 'BEGIN { exit !(a > 0 && (a-b)^2 < 1e-6) }'
}
rm -rf "$results"/run-*
export -f program
stage program 60 bash -c program

if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        stage "$tool" 90 compute-sanitizer --tool $tool --error-exitcode 9 \
            "$build/tests/gpu/gpu_cuda_network"
    done
else
    echo "skipped: compute-sanitizer is not installed"
fi

stage bench 90 "$build/tests/gpu/gpu_bench"
stage torch 120 python3 tests/gpu/torch_step.py
[ $failed = 0 ]
