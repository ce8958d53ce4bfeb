#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks that need a GPU, in under 8 minutes: builds with CUDA and whatever else is there, then
# every kernel, vector call and the network against the CPU, a run of the program, training steps
# beside PyTorch, tables of single operators, and the sanitizer on the small cases: what matters
# most comes first. Each step has a time limit, and the next one is tried whatever became of it.
#
# Two files come out, in $ADL_GPU_RESULTS (default: out/gpu). results.json is enough to know what
# happened: machine, steps, what they said last and of errors, all figures. It is whole after every
# step, however the script ends. log.txt holds what the steps printed. Exit code 0: nothing failed;
# 77: there is no usable device.
#   ADL_GPU_BUILD (build-gpu): build folder   ADL_GPU_BUDGET_S (470): time for all steps together
set -u
cd "$(dirname "$0")/../.." || exit 1
results=${ADL_GPU_RESULTS:-out/gpu}
build=${ADL_GPU_BUILD:-build-gpu}
work=$build/gpu-checks # a log for each step, runs of the program
ends=$((SECONDS + ${ADL_GPU_BUDGET_S:-470}))
rm -rf "$work" "$results/results.json" "$results/log.txt"
mkdir -p "$results" "$work" || exit 1
rows=() summary=() failed=0 skipped=0 running='' state='still running'
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:${CUDA_HOME:-/usr/local/cuda}/compute-sanitizer

# ---- results

strings() { # lines on stdin as JSON strings
    LC_ALL=C tr -c '\11\12\40-\176' '?' | cut -c 1-800 |
        sed -e 's/[\\"]/\\&/g' -e 's/\t/\\t/g' -e 's/.*/"&"/'
}

list() { # lines on stdin as the rows of a JSON list
    sed -e 's/^/    /' -e '$!s/$/,/'
}

objects_of() { # the JSON objects, one a line, that steps printed before they ended
    local name
    for name; do
        grep -hs '^{.*}$' "$work/$name.log"
    done | sed -E 's/: -?(nan|NaN|inf|Infinity)([,}])/: null\2/g'
}

told_by() { # told_by NAME CODE: what matters of a step's output
    local last=15
    [ "$2" = 0 ] && last=3
    {
        grep -hsiE '^-- adloco|error|warning|FAILED|hazard|invalid|spill' "$work/$1.log" "$work/$1.err" |
            head -n 40
        tail -qn $last "$work/$1.log" "$work/$1.err" 2>/dev/null
    } | awk 'NF && !seen[$0]++'
}

report() {
    {
        echo '{'
        echo "  \"date\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\","
        echo "  \"device\": $(strings <<<"$device"),"
        echo "  \"state\": \"$state\","
        echo "  \"time_s\": $SECONDS,"
        echo '  "machine": ['
        strings <<<"$machine" | list
        echo '  ],'
        echo '  "summary": ['
        [ ${#summary[@]} = 0 ] || printf '%s\n' "${summary[@]}" | strings | list
        echo '  ],'
        echo '  "steps": ['
        [ ${#rows[@]} = 0 ] || printf '%s\n' "${rows[@]}" | list
        echo '  ],'
        echo '  "bench": ['
        objects_of training tables | list
        echo '  ],'
        echo '  "torch": ['
        objects_of torch | list
        echo '  ]'
        echo '}'
    } >"$results/results.json.part" && mv "$results/results.json.part" "$results/results.json"
}

finish() {
    local code=$?
    trap '' TERM INT HUP
    [ -z "$running" ] || kill -KILL -- "-$running" || kill -KILL "$running"
    [ "$state" != 'still running' ] || state="ended with exit code $code"
    report
    echo "results: $results/results.json"
    [ ${#summary[@]} = 0 ] || printf '%s\n' "${summary[@]}"
} 2>/dev/null
trap finish EXIT
trap 'state="stopped by SIGTERM"; exit 143' TERM
trap 'state="stopped by SIGINT"; exit 130' INT
trap 'state="stopped by SIGHUP"; exit 129' HUP

# ---- steps

stage() { # stage NAME LIMIT_S COMMAND...; killed: a program that is told to stop goes on for a while
    local name=$1 limit=$2 code begin=$SECONDS left=$((ends - SECONDS)) file
    shift 2
    [ "$limit" -le "$left" ] || limit=$left
    if [ "$limit" -lt 1 ]; then
        limit=0 code=124
    else
        # in the background: a signal is heeded at once, and takes the step with it
        timeout --signal=KILL "$limit" "$@" >"$work/$name.log" 2>"$work/$name.err" </dev/null &
        running=$!
        wait "$running" 2>/dev/null
        code=$?
        running=''
    fi
    case $code in
    0) echo "passed: $name, $((SECONDS - begin)) s" ;;
    77)
        echo "skipped: $name: $(tail -qn 1 "$work/$name.log" "$work/$name.err")"
        skipped=$((skipped + 1))
        ;;
    124 | 137)
        if [ $((SECONDS - begin)) -lt "$limit" ]; then
            echo "FAILED: $name: killed after $((SECONDS - begin)) s"
        else
            echo "FAILED: $name: not done after $limit s"
        fi
        ;;
    *) echo "FAILED: $name, exit code $code: $(tail -qn 3 "$work/$name.log" "$work/$name.err" |
        tr '\n' ' ')" ;;
    esac
    [ $code = 0 ] || [ $code = 77 ] || failed=$((failed + 1))
    rows+=("{\"name\": \"$name\", \"exit_code\": $code, \"time_s\": $((SECONDS - begin)), \
\"limit_s\": $limit, \"said\": [$(told_by "$name" $code | strings | paste -sd ,)]}")
    for file in "$work/$name.log" "$work/$name.err"; do
        if [ -s "$file" ]; then
            echo "==== ${file##*/}"
            tail -c 300000 "$file"
        fi
    done >>"$results/log.txt"
    report
    return $code
}

ask_gpu() { # ask_gpu FIELDS: of the first device; nothing where there is none
    timeout --signal=KILL 30 nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>/dev/null |
        head -n 1
}
device=$(ask_gpu name,driver_version)
machine=$(
    echo "$(uname -sr), $(nproc) cores, $(sed -n 's/^MemTotal: *//p' /proc/meminfo)"
    sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release 2>/dev/null
    for tool in nvcc cc c++ cmake ninja python3 compute-sanitizer; do
        echo "$tool: $(command -v $tool || echo none): $($tool --version 2>/dev/null |
            grep -m 1 -E '[0-9]\.[0-9]')"
    done
    git log -1 --format=%H 2>/dev/null
)
report

# code for the device at hand only: half the build time
capability=$(ask_gpu compute_cap)
architecture=
[[ ! $capability =~ ^[0-9]+\.[0-9]+$ ]] ||
    architecture=-DCMAKE_CUDA_ARCHITECTURES=${capability/./}-real
! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja
export work build architecture
configure() {
    cmake --fresh -S . -B "$build" -DADL_WITH_CUDA=ON -DCMAKE_BUILD_TYPE=Release \
        ${architecture:+"$architecture"}
}
compile() { # what can be built is built
    local go_on=(-k) nccl=()
    grep -qs 'CMAKE_GENERATOR:INTERNAL=Ninja' "$build/CMakeCache.txt" && go_on=(-k 0)
    grep -qs 'NCCL_LIBRARY:.*libnccl' "$build/CMakeCache.txt" && nccl=(adloco_nccl)
    cmake --build "$build" --parallel "$(nproc)" --target adloco adloco_cuda gpu_cuda_ops \
        gpu_cuda_space gpu_cuda_wire gpu_cuda_network gpu_bench "${nccl[@]}" -- "${go_on[@]}"
}
export -f configure compile
stage configure 90 bash -c configure
stage build 200 bash -c compile

stage space 30 "$build/tests/gpu/gpu_cuda_space"
if [ $? = 77 ]; then
    summary+=("skipped: $(tail -qn 1 "$work/space.log" | sed 's/^skipped: //')")
    state='no usable device'
    exit 77
fi
stage wire 30 "$build/tests/gpu/gpu_cuda_wire"
stage operators 40 "$build/tests/gpu/gpu_cuda_ops"
stage network 40 "$build/tests/gpu/gpu_cuda_network"

# The program: the same decisions on the GPU as on the CPU, with several workers on the device.
# Flat lines: read without any library.
program() {
    local kind losses=()
    "$build/adloco" --version
    printf '%s\n' 'name: gpu' 'transport: threads' 'method: adloco' 'trainers: 2' \
        'cluster.workers: 4' 'cluster.workers_per_device: 4' 'model.preset: tiny' \
        'model.context: 64' 'inner.steps: 5' 'inner.lr: 0.003' 'outer.steps: 4' \
        'batch.initial: 2' 'batch.cap: 16' >"$work/e.yaml"
    for kind in llama llama_cuda; do
        "$build/adloco" run "$work/e.yaml" --quiet --set model.kind=$kind \
            --out "$work/run-$kind" || return 1
        losses+=("$(sed -n 's/.*"loss_final": \(.*\),/\1/p' "$work/run-$kind/summary.json")")
        grep -E '"(exchanges|samples|batch_final|outer_steps|status)":' \
            "$work/run-$kind/summary.json" >"$work/decided-$kind"
    done
    echo "losses: ${losses[*]}"
    diff "$work/decided-llama" "$work/decided-llama_cuda" || return 1
    awk -v a="${losses[0]}" -v b="${losses[1]}" 'BEGIN { exit !(a > 0 && (a-b)^2 < 1e-6) }'
}
# The same over NCCL, with one process: to the bit, but for wires that round.
nccl() {
    local wire losses=()
    [ -e "$build/libadloco_nccl.so" ] || { echo "NCCL is not in this build"; return 77; }
    for wire in f32 bf16 int8; do
        "$build/adloco" run "$work/e.yaml" --quiet --set model.kind=llama_cuda \
            --set transport=nccl --set nccl.wire=$wire --out "$work/run-nccl-$wire" || return 1
        losses+=("$(sed -n 's/.*"loss_final": \(.*\),/\1/p' "$work/run-nccl-$wire/summary.json")")
    done
    echo "losses: ${losses[*]}"
    awk -v a="${losses[0]}" -v b="${losses[1]}" -v c="${losses[2]}" 'BEGIN {
        exit !(a > 0 && b > 0 && c > 0 && (a - b)^2 < 1e-2 && (a - c)^2 < 1e-2) }' || return 1
    diff <(grep '"loss_final"' "$work/run-llama_cuda/summary.json") \
        <(grep '"loss_final"' "$work/run-nccl-f32/summary.json")
}
export -f program nccl
stage program 60 bash -c program
stage nccl 60 bash -c nccl

stage training 90 "$build/tests/gpu/gpu_bench" --training
pytorch() {
    command -v python3 >/dev/null || { echo "python3 is not installed"; return 77; }
    exec python3 tests/gpu/torch_step.py
}
export -f pytorch
stage torch 150 bash -c pytorch
stage tables 60 "$build/tests/gpu/gpu_bench" --tables

# API errors are what the tests look at themselves, and provoke some
sanitized() { # sanitized TOOL PROGRAM
    command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not installed"; return 77; }
    exec compute-sanitizer --error-exitcode 9 --tool "$1" --report-api-errors no \
        "$build/tests/gpu/gpu_cuda_$2"
}
export -f sanitized
stage memcheck_network 60 bash -c 'sanitized memcheck network'
stage memcheck_operators 60 bash -c 'sanitized memcheck ops'
stage racecheck_network 60 bash -c 'sanitized racecheck network'

# The figures that have targets.
value() { # value STEP NAME KEY: a number of a step's object
    objects_of "$1" | sed -n "s/.*\"name\": \"$2\".*\"$3\": \([-+0-9.e]*\).*/\1/p"
}
ours=$(value training train_bf16 tokens_per_s)
theirs=$({ value torch torch_compiled tokens_per_s; value torch torch_eager tokens_per_s; } |
    sort -g | tail -n 1)
ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN { print (a > 0 && b > 0 ? a / b : "unknown") }')
workers=$(value training workers ratio)
mfu=$(value training train_bf16 mfu)
summary+=(
    "tokens/s: ${ours:-unknown}, PyTorch's best ${theirs:-unknown}, ratio $ratio (target 0.9)"
    "model flops utilization ${mfu:-unknown}"
    "four workers beside one: ${workers:-unknown} (target 1.3)"
)
while read -r line; do
    summary+=("of the copy bandwidth, the three lowest (target 0.85): $line")
done < <(objects_of tables |
    sed -n 's/.*"name": "\([^"]*\)".*"of_copy": \([0-9.]*\).*/\2 \1/p' | sort -g | head -n 3)
summary+=("$((${#rows[@]} - failed - skipped)) passed, $failed failed, $skipped skipped")
state='all steps were tried'
[ $failed = 0 ]
