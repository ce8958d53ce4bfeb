#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Theorem T3-Q against the simulator: rounds predicted for the exact norm test over rounds that the
# norm test of a run, which sees its workers only, takes. 96 configurations of five seeds; the ratio
# must lie in 0.95..1.15. Usage: ADLOCO=build/adloco tests/bench/t3q.sh
set -u
: "${ADLOCO:?the program}"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

cat >"$temp/t3q.yaml" <<'END'
name: t3q
transport: threads
method: local_sgd
model: {noise.total: 1, start: 1.0}
inner.lr: 0.5
outer.steps: 100000
batch: {policy: norm_test, statistic: gradient, initial: 1}
seeds: [11, 12, 13, 14, 15]
sweep:
  model.spectrum: [log, linear, two_clusters]
  model.condition: [10, 300]
  model.dim: [32, 256]
  inner.steps: [1, 8]
  cluster.workers: [4, 32]
  batch.eta: [0.3, 0.7]
stop.loss: 1e-3
END
"$ADLOCO" bounds "$temp/t3q.yaml" --measure --quiet >"$temp/said" || exit 1
awk '
    /^experiment, / { point = substr($0, 13) }
    /T3-Q over measured:/ {
        n++; ratio = $NF; sum += log(ratio)
        low = n == 1 || ratio < low ? ratio : low
        high = ratio > high ? ratio : high
        if (ratio < 0.95 || ratio > 1.15) { bad++; print "out of 0.95..1.15: " ratio "  " point }
    }
    END {
        printf "T3-Q: %d configurations, predicted over measured rounds %.3f..%.3f, geometric mean %.4f\n",
               n, low, high, exp(sum / n)
        exit bad > 0 || n < 80
    }' "$temp/said"
