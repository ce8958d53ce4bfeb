#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The simulator's speed, by hand: CPU seconds and peak memory beside their targets, and how time
# grows with the number of workers.
#   tests/bench/sim.sh [PROGRAM]    (build/adloco if none is given; a Release build is fair)
# Jobs have 4 trainers, 20 outer steps of H = 50, a quadratic of 64 dimensions, SGD, and pods of 20
# nodes under a 4:1 spine, so that trainers share uplinks. CPU is user and system time of the whole
# process and its children, loading of the platform included; the best of three, of which the first
# also checks the platform, which later ones find checked (core/cache.h).
set -eu
cd "$(dirname "$0")/../.."
program=$(realpath "${1:-build/adloco}")
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

cat >"$temp/job.yaml" <<END
name: bench
transport: sim
collective: auto
method: diloco
trainers: 4
model: {kind: quadratic, dim: 64, condition: 1000, noise: {kind: curvature, total: 10},
        stand_in: {params: 3e8, tokens_per_sample: 2048, wire_dtype: bf16}}
inner: {optimizer: sgd, lr: 0.1, steps: 50}
batch: {initial: 8}
outer: {steps: 20}
END

make_tree() { # make_tree GPUS [DETAIL]
    "$program" platform make fat_tree --gpus "$1" --pod 20 --oversubscription 4 \
        --detail "${2:-auto}" -o "$temp/tree-$1${2:+-$2}.xml"
}

# run_job [KEY=VALUE]...: "CPU_S RSS_MB", the best of three
run_job() {
    local best="" sets=()
    for set in "$@"; do
        sets+=(--set "$set")
    done
    for _ in 1 2 3; do
        bash -c 'TIMEFORMAT="%U %S"; time "$@" >"$0" 2>"$0.err"' "$temp/out" \
            "$program" run "$temp/job.yaml" --quiet --json "${sets[@]}" 2>"$temp/times" || {
            tail -n 1 "$temp/out.err" >&2
            exit 1
        }
        best=$(printf '%s\n%s\n' "$best" "$(awk 'END { printf "%.3f", $1 + $2 }' "$temp/times")" |
            sed '/^$/d' | sort -n | head -n 1)
    done
    echo "$best $(sed -n 's/.*"host_peak_rss_bytes": *\([0-9.e+]*\).*/\1/p' "$temp/out" |
        awk '{ printf "%.0f", $1 / 1e6 }')"
}

line() { # line NAME TARGET "CPU_S RSS_MB"
    # shellcheck disable=SC2086
    printf '%-52s %8.3f s %6d MB   target: %s\n' "$1" $3 "$2"
}

one="outer.steps=1 inner.steps=1 trainers=1 collective=ring model.stand_in.params=20e9 device.memory=0"
make_tree 1024
make_tree 1024 gpu
make_tree 16384
# shellcheck disable=SC2086
line "1024-GPU ring all-reduce, flow" "0.05 s with loading" \
    "$(run_job cluster.platform=tree-1024.xml $one)"
# shellcheck disable=SC2086
line "the same, the inside of nodes left out" "0.05 s with loading" \
    "$(run_job cluster.platform=tree-1024-gpu.xml $one)"
# shellcheck disable=SC2086
line "the same, message by message" "12 s: twice of 6 s" \
    "$(run_job cluster.platform=tree-1024.xml $one sim.fidelity=message sim.message_devices=1024)"
line "4 x 256 workers, shared uplinks" "0.5 s, 100 MB" \
    "$(run_job cluster.platform=tree-1024.xml)"
line "4 x 4096 workers, a NIC each" "5 s, 500 MB" "$(run_job cluster.platform=tree-16384.xml)"
line "16 x 512 workers of 8 GPUs (65,536)" "5 s, 500 MB" \
    "$(run_job 'cluster.platform=fat_tree(gpus=65536, oversubscription=4)' \
        cluster.gpus_per_worker=8 trainers=16)"

echo
echo "growth: CPU seconds over workers x log2(workers), relative to 1024"
base=
for gpus in 1024 2048 4096 8192 16384; do
    make_tree "$gpus"
    read -r cpu rss < <(run_job "cluster.platform=tree-$gpus.xml")
    base=${base:-$cpu}
    awk -v n="$gpus" -v t="$cpu" -v b="$base" -v m="$rss" 'BEGIN {
        printf "%8d workers %8.3f s %6d MB   %.2f   target: at most 1\n", n, t, m,
               t / b / (n * log(n) / (1024 * log(1024))) }'
done
