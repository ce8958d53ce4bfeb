#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A network learns, `adloco record` makes a table of what it measured, the model `recorded` takes
# it; a schedule is replayed by batch.policy: recorded.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs YAML

# a network learns at a constant batch, its gradients observed
cat >learn.yaml <<'END'
transport: threads
method: ddp
cluster.workers: 4
model: {kind: llama, width: 16, context: 8}
inner: {optimizer: adamw, lr: 0.01, steps: 2}
outer.steps: 40
batch: {initial: 8, observe: true}
eval.every: 4
END
does 0 run learn.yaml --quiet --out learned
[ "$(grep -c '"row":"round".*"statistic":"gradient","noise_scale":[0-9.e+-]*,"gradient_norm":[0-9.]' \
    learned/records.jsonl)" = 40 ] || fail "noise scale and gradient norm are not in every round"
grep '"row":"round"' learned/records.jsonl | grep -qv '"request":32' && fail "the batch changed"
does 0 run learn.yaml --quiet --set batch.observe=false --out blind
grep -q '"noise_scale":[0-9]' blind/records.jsonl && fail "measured without being asked"
[ "$(value loss_final learned)" = "$(value loss_final blind)" ] || fail "observing changed the run"

# its table: tokens, a row an evaluation, the loss that falls
does 0 record learned -o learned.csv
[ "$(wc -c <said)" = 0 ] && [ ! -e learned.csv.part ] || fail "learned.csv is not there alone"
does 0 record learned
cmp -s said learned.csv || fail "stdout and file differ"
head -n 1 said | grep -qx 'tokens,loss,noise_scale_tokens,batch_tokens,gradient_norm' || fail "names"
awk -F, 'NR > 1 { n++; bad += $1 <= last && n > 1 || $3 <= 0 || $4 != 256 || $5 <= 0; last = $1 }
    END { exit bad > 0 || n < 3 || last != 20480 }' said || fail "rows: $(cat said)"
does 0 record learned --window 20
[ "$(wc -l <said)" = 4 ] || fail "not a row for 20 rounds: $(cat said)"

# the sum over a window's rounds: the last row's noise scale from the records themselves
awk -F'[:,]' '/"row":"round"/ { for (i = 1; i < NF; i++) { if ($i == "\"S\"") S[++n] = $(i + 1);
    if ($i == "\"U\"") U[n] = $(i + 1) } }
    END { for (k = n - 19; k <= n; k++) { s += S[k]; u += U[k] } printf "%.4g\n", 8 * s / u }' \
    learned/records.jsonl >want
tail -n 1 said | awk -F, '{ printf "%.4g\n", $3 }' | cmp -s - want ||
    fail "noise scale: $(tail -n 1 said), not $(cat want)"

# it stands for a model: at its own batch its losses come back
cat >replay.yaml <<'END'
transport: threads
method: ddp
cluster.workers: 4
model: {kind: recorded, data: learned.csv, stand_in.tokens_per_sample: 8}
inner.steps: 2
outer.steps: 40
batch.initial: 8
END
does 0 run replay.yaml --quiet --json
final=$(tail -n 1 learned.csv | cut -d, -f2)
awk -v want="$final" '/"loss_final"/ { gsub(/[",]/, ""); exit !($2 - want < 1e-6 && want - $2 < 1e-6) }' \
    said || fail "replayed: $(grep loss_final said), not $final"

# a schedule of another run is replayed, requests and all
does 0 run replay.yaml --quiet --set batch.policy=norm_test --set batch.eta=0.3 --out adapted
does 0 run replay.yaml --quiet --set batch.policy=recorded \
    --set batch.recorded=adapted/records.jsonl --out replayed
for run in adapted replayed; do
    grep -o '"request":[0-9]*,"batch":[0-9]*' "$run/records.jsonl" >"$run.requests"
done
cmp -s adapted.requests replayed.requests || fail "another schedule"
[ "$(sort -u adapted.requests | wc -l)" -gt 5 ] || fail "the schedule never changed"
[ "$(value loss_final adapted)" = "$(value loss_final replayed)" ] || fail "another loss under the same schedule"

# the record that is shipped, and the experiment on it
does 0 run replay.yaml --quiet --set model.recorded_tokens=64 \
    --set model.data="$ADL_SOURCE_DIR/experiments/data/kjv-tiny.csv"
names='record-text logistic'
has SIMGRID && names="$names recorded-noise"
for name in $names; do
    does 0 plan "$ADL_SOURCE_DIR/experiments/$name.yaml"
    [ ! -s errors ] || fail "$name: $(cat errors)"
done

# what is no record is said
does 2 record learned --window 0
complains "--window: .0. is not an integer .1"
does 2 record
complains "a run's directory is needed"
does 2 record nowhere
complains 'nowhere/summary.json'
does 2 record blind
complains 'blind/records.jsonl: no gradient noise was measured'
does 0 run replay.yaml --quiet --set method=local_sgd --set batch.policy=norm_test --out local
does 2 record local
complains 'pseudo-gradients of 2 steps'
does 0 run replay.yaml --quiet --set trainers=2 --set batch.observe=true --out two
does 2 record two -o two.csv
complains 'a run of 2 trainers'
[ ! -e two.csv ] && [ ! -e two.csv.part ] || fail "a table of what is no record"

finish
