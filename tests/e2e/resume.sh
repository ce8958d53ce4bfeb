#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `adloco run --resume` as a user meets it: told to stop, resumed, broken checkpoints, refusals.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs YAML
run() { # run EXIT_CODE ARGUMENTS...
    does "$1" run e.yaml --quiet "${@:2}"
}

cat >e.yaml <<'END'
name: resume
cluster: {workers: 8, workers_per_device: 2}
method: adloco
model: {kind: quadratic, dim: 5000, condition: 30, shortcut: never, noise: {kind: curvature, total: 4}}
inner: {lr: 0.1, steps: 5}
outer: {steps: 300}
batch: {initial: 2, max: 4, cap: 500}
merge: {every: 5}
checkpoint: {every: 20, keep: 3}
seeds: [3]
END
run 0 --out whole
without_times whole >expected
same() { without_times "$1" | cmp -s - expected || fail "$1: other records than the whole run"; }

# told to stop by each signal: a line that says how to go on, and exit code 0
for signal in TERM INT USR1; do
    env --default-signal=INT "$ADLOCO" run e.yaml --quiet --out $signal >said 2>errors &
    wait_for test -e $signal/checkpoint-00000020.adl
    kill -$signal $!
    wait $!
    code=$?
    [ $code = 0 ] || fail "exit code $code after $signal"
    logs '--resume'
    [ -e $signal/summary.json ] && fail "$signal: a stopped run has a summary"
    run 0 --out $signal --resume
    logs 'going on after round'
    same $signal
done
[ "$(find INT -name 'checkpoint-*' | wc -l)" = 3 ] || fail "checkpoint.keep: $(ls INT)"

# killed at any time; then the newest checkpoint is broken as well
"$ADLOCO" run e.yaml --quiet --out killed >said 2>errors &
wait_for test -e killed/checkpoint-00000040.adl
kill -KILL $!
wait $! 2>/dev/null
newest=$(find killed -name 'checkpoint-*.adl' | sort | tail -n 1)
run 2 --out killed
logs 'holds checkpoints'
cp -r killed other
cp -r killed broken
truncate -s -1 "broken/${newest#killed/}"
run 0 --out broken --resume
logs "${newest#killed/}"
same broken
find other -name 'checkpoint-*.adl' -exec truncate -s 100 {} +
run 2 --out other --resume
logs 'is whole'
run 2 --out killed --resume --set inner.lr=0.2
logs 'another run'
run 0 --out killed --resume --set checkpoint.every=50 # how often is no part of what it is
same killed
run 2 --out killed --resume
logs 'complete'

# nothing there yet: starts
run 0 --out fresh --resume
logs 'no checkpoint'
same fresh

finish
