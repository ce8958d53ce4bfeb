#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run.sh, which is to run once on a machine nobody has seen: with stand-ins for cmake, the
# device's programs and PyTorch, and the emulated module in place of a GPU. A step that fails or
# hangs takes no other with it, and the results are JSON whatever happened.
set -u
if [ -z "${ADL_CUDA_EMULATED:-}" ]; then
    echo "skipped: the emulator is not in this build"
    exit 77
fi
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
python=$(command -v python3)
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
stand_in() { # stand_in FILE LINES...
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$temp/$1"
    chmod +x "$temp/$1"
}
mkdir -p "$temp/bin" "$temp/build/tests/gpu"
stand_in bin/cmake 'exit 0'
stand_in bin/nvidia-smi 'case $* in *compute_cap*) echo 9.0 ;; *) echo "Stand-in \"1\"" ;; esac'
# shellcheck disable=SC2016
stand_in bin/compute-sanitizer 'for last; do :; done' 'exec "$last"'
stand_in bin/python3 'echo "a warning" >&2' 'echo "{\"name\": \"torch_eager\", \"tokens_per_s\": 50}"' \
    'echo "{\"name\": \"torch_compiled\", \"tokens_per_s\": 80}"'
for name in ops space wire network; do
    stand_in build/tests/gpu/gpu_cuda_$name 'exit 0'
done
# shellcheck disable=SC2016
stand_in build/tests/gpu/gpu_bench \
    'if [ "$1" = --training ]; then' \
    'echo "{\"name\": \"train_bf16\", \"loss\": nan, \"tokens_per_s\": 100, \"mfu\": 0.4}"' \
    'echo "{\"name\": \"workers\", \"ratio\": 1.5}"' 'else' \
    'echo "{\"name\": \"axpy\", \"of_copy\": 0.91}"' 'echo "{\"name\": \"swiglu\", \"of_copy\": 0.5}"' \
    "printf '{\"name\": \"cut'" 'fi'
# a network that the emulator can carry
small='--set model.width=8 --set model.heads=2 --set model.layers=1 --set model.hidden=16'
stand_in build/adloco "exec '$ADLOCO' \"\$@\" $small --set model.context=6 --set model.eval_samples=2"
script() { # script EXIT_CODE
    PATH=$temp/bin:$PATH LD_LIBRARY_PATH=$ADL_CUDA_EMULATED ADL_GPU_BUILD=$temp/build \
        ADL_GPU_RESULTS=$temp/out timeout 120 bash "$ADL_SOURCE_DIR/tests/gpu/run.sh" >"$temp/said" 2>&1
    local code=$?
    [ $code = "$1" ] || fail "exit code $code, not $1: $(cat "$temp/said")"
    whole
}
whole() { # the two files, one of which is JSON
    [ -z "$python" ] || "$python" -m json.tool "$temp/out/results.json" >/dev/null ||
        fail "no JSON: $(cat "$temp/out/results.json")"
    [ "$(echo "$temp"/out/*)" = "$temp/out/log.txt $temp/out/results.json" ] ||
        fail "what came out: $(echo "$temp"/out/*)"
}
says() { grep -q -- "$1" "$temp/said" || fail "'$1' is not in: $(cat "$temp/said")"; }
holds() { # holds TEXT: results.json does
    grep -qF -- "$1" "$temp/out/results.json" ||
        fail "'$1' is not in: $(cat "$temp/out/results.json")"
}

# the bench itself, at sizes for the emulator: every line an object
"$ADL_CUDA_EMULATED/cuda_emulated_bench" --try >"$temp/bench" 2>&1 || fail "bench: $(cat "$temp/bench")"
sed -i '/^==.*makecontext/d' "$temp/bench" # AddressSanitizer, of the emulator's fibers
[ "$(grep -c '^{"name": .*}$' "$temp/bench")" = "$(wc -l <"$temp/bench")" ] ||
    fail "the bench says more: $(cat "$temp/bench")"
for name in train_bf16 train_fp32 workers adamw 'attention bf16' 'matmul_backward fp32'; do
    grep -q "\"name\": \"$name\"" "$temp/bench" || fail "the bench lacks $name"
done

script 0
says 'tokens/s: 100, PyTorch.s best 80, ratio 1.25'
says 'model flops utilization 0.4'
says 'four workers beside one: 1.5'
says 'lowest (target 0.85): 0.5 swiglu'
says '^13 passed, 0 failed, 1 skipped'
for step in configure build space wire operators network program training torch tables \
    memcheck_network memcheck_operators racecheck_network; do
    says "^passed: $step,"
    holds "{\"name\": \"$step\", \"exit_code\": 0, "
done
holds '"device": "Stand-in \"1\""'
holds '"loss": null, "tokens_per_s": 100'
holds '"state": "all steps were tried"'

# what fails, dies, is killed, or is not even there; what it said is in the results
stand_in bin/cmake 'printf "no\tcompiler: \"x\" \\\\ \303\251\033\n" >&2' 'exit 1'
stand_in bin/nvidia-smi 'echo "NVIDIA-SMI has failed: no driver"'
stand_in build/tests/gpu/gpu_cuda_wire 'kill -SEGV $$'
stand_in build/tests/gpu/gpu_cuda_network 'echo "FAILED: far above"' 'seq 100' 'kill -KILL $$'
stand_in build/tests/gpu/gpu_bench 'echo "{\"name\": \"axpy\", \"of_copy\": 0.9}"' 'exit 1'
rm "$temp/build/tests/gpu/gpu_cuda_ops" "$temp/bin/compute-sanitizer"
stand_in bin/python3 'echo "python3: No such file or directory" >&2' 'exit 127'
stand_in build/adloco 'echo "no memory" >&2' 'exit 1'
script 1
says '^FAILED: configure, exit code 1: no.compiler'
says '^FAILED: wire, exit code 139'
says '^FAILED: operators, exit code 127'
says '^FAILED: network: killed after'
says '^FAILED: training, exit code 1'
says '^FAILED: torch, exit code 127'
says '^FAILED: tables, exit code 1'
says '^FAILED: program, exit code 1: no memory'
[ -n "$(command -v compute-sanitizer)" ] ||
    says '^skipped: memcheck_operators: compute-sanitizer is not installed'
says 'tokens/s: unknown, PyTorch.s best unknown, ratio unknown'
holds '"axpy", "of_copy": 0.9'
holds '["no\tcompiler: \"x\" \\ ???"]'
holds '"FAILED: far above"'
holds '"100"'
grep -q '^==== network.log' "$temp/out/log.txt" || fail "the log lacks a step"

# a step that hangs is ended, and what there is no time left for is said
stand_in bin/cmake 'exit 0'
stand_in build/tests/gpu/gpu_cuda_wire 'exec sleep 100'
ADL_GPU_BUDGET_S=8 script 1
says '^passed: space,'
says '^FAILED: wire: not done after'
says '^FAILED: torch: not done after 0 s'

# stopped from outside, at once and with what runs; killed, it leaves what it knew
for signal in TERM INT HUP KILL; do
    stand_in build/tests/gpu/gpu_cuda_wire "echo \$\$ >$temp/hangs" 'exec sleep 100'
    rm -f "$temp/hangs"
    PATH=$temp/bin:$PATH ADL_GPU_BUILD=$temp/build ADL_GPU_RESULTS=$temp/out \
        "${python:-python3}" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execvp("bash", ["bash"] + sys.argv[1:])' \
        "$ADL_SOURCE_DIR/tests/gpu/run.sh" >"$temp/said" 2>&1 &
    script=$!
    for ((i = 0; i < 300; i++)); do
        [ -s "$temp/hangs" ] && break
        sleep 0.1
    done
    kill -s $signal $script
    wait $script 2>/dev/null
    code=$?
    [ $code = $((128 + $(kill -l $signal))) ] || fail "after SIG$signal: exit code $code"
    whole
    holds '"name": "space", "exit_code": 0'
    if [ $signal = KILL ]; then
        holds '"state": "still running"'
        kill -KILL "$(cat "$temp/hangs")"
    else
        holds "\"state\": \"stopped by SIG$signal\""
        case $(ps -o stat= -p "$(cat "$temp/hangs")") in # a zombie is nobody's
        '' | Z*) ;;
        *) fail "SIG$signal leaves a step behind" ;;
        esac
    fi
done

stand_in build/tests/gpu/gpu_cuda_space 'echo "skipped: no usable CUDA device"' 'exit 77'
script 77
[ "$(tail -n 1 "$temp/said")" = 'skipped: no usable CUDA device' ] ||
    fail "the last line is: $(tail -n 1 "$temp/said")"
[ $failures = 0 ]
