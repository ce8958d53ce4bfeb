#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command as a user meets it, but for sweep, which has a test of its own.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs YAML

# --version names every optional part
does 0 --version
says '^adloco [0-9]+\.[0-9]+\.[0-9]+$'
for part in YAML SIMGRID MPI CUDA NCCL GSL SQLITE; do
    grep -qE "(no )?$part " said || fail "--version does not name $part"
done

# help: commands, their options, keys
does 0 help
for command in run plan sweep record platform list help; do says "^  $command "; done
cp said help
does 0 --help
cmp -s help said || fail "--help differs from help"
does 0 run --help
says '--set=KEY=VALUE'
cp said help
does 0 help run
cmp -s help said || fail "help run differs from run --help"
does 0 help platform
does 0 help keys
says '^  inner.lr '
says '^  model.dim '
does 0 help inner.steps
says 'default  50'
says 'allowed  an integer \(1\.\.1e9, default 50\)'
says 'owner    experiment'
does 0 help model.dim
says 'owner    model quadratic'

# the option reference is the one in the tree
does 0 help --markdown
cmp -s said "$ADL_SOURCE_DIR/experiments/OPTIONS.md" ||
    fail "experiments/OPTIONS.md is stale: adloco help --markdown > experiments/OPTIONS.md"

# list names what experiments may name
does 0 list
for name in threads sim quadratic logistic recorded diloco adloco norm_test h100-64 fat_tree results; do
    says "^  $name( |$)"
done

# platforms
does 0 platform list
says '^two_hosts +Two nodes of one device'
does 0 platform make fat_tree --gpus 64
says '<platform'
does 0 platform make fat_tree --gpus=64 -o made.xml
lines 0 said
[ -s made.xml ] && [ ! -e made.xml.part ] || fail "made.xml is not there alone"
if has SIMGRID; then
    does 0 platform show ./made.xml
    says '64'
    does 0 platform show h100-64
    says '64'
fi

# plan
cat >e.yaml <<'END'
name: lesson
model: {dim: 8}
outer.steps: 4
seeds: [1, 2]
sweep: {inner.steps: [3, 4]}
variants:
  a: {method: local_sgd}
  b: {method: diloco, inner.steps: 5}
END
does 0 plan e.yaml
lines 7 said
says '^[0-9a-f]{16}  a        inner.steps=3  1     threads    local_sgd$'
lines 0 errors
does 0 plan e.yaml --variant a --set inner.steps=3 --seed 2
lines 2 said
logs "swept key 'inner.steps' changes no run"
does 0 plan e.yaml --json
says '"name": "lesson"'
says '"swept": \["inner.steps"\]'
does 0 plan e.yaml --layout --set model.kind=llama --set model.width=32
says '^embed +256 +32 +0$'
says '^1.down +32 +96 '

# run: a summary for people, JSON for programs, progress on stderr
does 0 run e.yaml -v a -S 2 --set inner.steps=3 --out one
says 'completed'
says 'exchanges'
logs 'round 4/4'
for file in experiment.yaml records.jsonl summary.json; do
    [ -s "one/$file" ] || fail "one/$file is missing"
done
does 0 run e.yaml -v a -S 2 --set inner.steps=3 --quiet --json
says '"variant": *"a"'
says '"method": *"local_sgd"'
says '"seed": *2'
does 0 run e.yaml -v a -S 2 --set inner.steps=3 --quiet --out one --overwrite

# what a run wrote can be run again, and is the same run
does 0 plan one/experiment.yaml
lines 2 said
id=$(sed -n 2p said | cut -d' ' -f1)
grep -q "\"run_id\": *\"$id\"" one/summary.json || fail "one/experiment.yaml plans another run"

# interrupted: one line, exit code 1, at once
printf 'model.dim: 4096\ninner: {optimizer: adamw}\nouter.steps: 1e8\n' >long.yaml
# (bash starts background jobs with SIGINT ignored; one that comes before the handler is lost)
env --default-signal=INT "$ADLOCO" run long.yaml --quiet >said 2>errors &
pid=$!
for _ in $(seq 100); do
    sleep 0.2
    kill -INT $pid 2>/dev/null || break
done
wait $pid
code=$?
[ $code = 1 ] || fail "exit code $code instead of 1 after an interrupt"
lines 1 errors
lines 0 said

# what cannot be printed is not done
"$ADLOCO" list >/dev/full 2>errors
[ $? = 1 ] || fail "a full disk went unnoticed"
lines 1 errors

finish
