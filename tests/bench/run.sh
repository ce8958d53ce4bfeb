#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Benchmarks, by hand: a table of CPU seconds, wall seconds and peak memory beside their targets.
#   tests/bench/run.sh [PROGRAM]    (build/adloco if none is given; a Release build is fair)
# Each simulated job has 4 trainers, 20 outer steps of H = 50, a quadratic of 64 dimensions, SGD.
# CPU is user and system time of the whole process, loading of the platform included.
set -eu
cd "$(dirname "$0")/../.."
program=$(realpath "${1:-build/adloco}")
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

write_experiment() { # write_experiment GPUS
    "$program" platform make fat_tree --gpus "$1" -o "$temp/fat-tree-$1.xml"
    cat >"$temp/bench-$1.yaml" <<END
name: bench-$1
transport: sim
cluster: {platform: fat-tree-$1.xml, workers_per_device: 1}
method: diloco
trainers: 4
model:
  kind: quadratic
  dim: 64
  condition: 1000
  noise: {kind: curvature, total: 10}
  stand_in: {params: 3e8, tokens_per_sample: 2048, wire_dtype: bf16}
inner: {optimizer: sgd, lr: 0.1, steps: 50}
outer: {steps: 20}
seeds: [1]
END
}

# measure NAME TARGETS COMMAND...: one line of the table, the best of three
measure() {
    local name=$1 targets=$2 best=
    shift 2
    for _ in 1 2 3; do
        rm -rf "$temp/out"
        if ! bash -c 'TIMEFORMAT="%U %S %R"; out=$1; shift; time "$@" >"$out" 2>&1' - \
            "$temp/said" "$@" 2>"$temp/times"; then
            printf '%-34s failed: %s\n' "$name" "$(tail -n 1 "$temp/said")"
            return
        fi
        best=$(printf '%s\n%s\n' "$best" "$(awk '{ print $1 + $2, $3 }' "$temp/times")" |
            sed '/^$/d' | sort -n | head -n 1)
    done
    local rss
    rss=$(sed -n 's/.*"host_peak_rss_bytes": *\([0-9.e+]*\).*/\1/p' "$temp/out/summary.json" \
        2>/dev/null | awk '{ printf "%.0f MB", $1 / 1e6 }')
    # shellcheck disable=SC2086
    printf '%-34s %7.2f s CPU %7.2f s wall %8s   target: %s\n' "$name" $best "${rss:--}" "$targets"
}

for gpus in 1024 4096; do
    write_experiment "$gpus"
done
measure "4 x 256 workers on 1024 GPUs" "1 s CPU, 250 MB" \
    "$program" run "$temp/bench-1024.yaml" --quiet --out "$temp/out"
measure "4 x 1024 workers on 4096 GPUs" "4 s CPU, 250 MB" \
    "$program" run "$temp/bench-4096.yaml" --quiet --out "$temp/out"
measure "quickstart sweep, all cores" "30 s wall on 2 cores" \
    "$program" sweep experiments/quickstart.yaml --quiet --out "$temp/out"
