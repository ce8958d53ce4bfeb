#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `adloco sweep` as a user meets it: complete, resumed, refused, interrupted; failures recorded.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs YAML

sweep() { # sweep EXIT_CODE ARGUMENTS...
    does "$1" sweep "${@:2}"
}
refuse() { # refuse TEXT ARGUMENTS...: as bad input
    refused 2 "$1" sweep "${@:2}"
}
columns() { # columns FILE REGEX: the columns whose names do not match
    awk -F, -v drop="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i !~ drop) keep[++n] = i }
        { for (k = 1; k <= n; k++) printf "%s,", $keep[k]; print "" }' "$1"
}
has_runs() { [ "$(find "$1/runs" -name "$2" 2>/dev/null | wc -l)" = "$3" ]; }

cat >small.yaml <<'END'
# SPDX-License-Identifier: Apache-2.0
# Who waits for whom?
#
# Not this.
name: small
transport: threads
cluster: {workers: 4}
threads: {count: 1}
model: {kind: quadratic, dim: 8, condition: 10, noise: {total: 0.1}}
inner: {optimizer: sgd, lr: 0.2, steps: 5}
outer: {steps: 40}
stop: {loss: 1e-2}
seeds: [1, 2, 3]
variants:
  ddp: {method: ddp}
  diloco: {method: diloco, inner.optimizer: sgd}
END
# everything that follows the machine's clock
clocked='^(host_.*|time.*|.*_s|sync_delay.*|device_hours|.*_per_s|idle.*|compute_.*|mfu|goodput|accounting.*)$'

# complete, in the default directory
sweep 0 small.yaml --jobs 2
check "six runs" has_runs out/small summary.json 6
check "six lines" [ "$(wc -l <out/small/results.csv)" = 7 ]
check "the comment" grep -q '^Who waits for whom?$' said
check "no more of it" [ "$(grep -c 'Not this' said)" = 0 ]
check "a line a variant" grep -Eq '^diloco +3/3 ' said
check "the last progress" grep -q '^6/6 runs, 0 at work' errors
if command -v gnuplot >/dev/null; then
    check "a picture" [ -s out/small/loss-time.svg ]
    check "its name" grep -q '^out/small/loss-time.svg$' said
fi

# jobs and order change nothing
sweep 0 small.yaml --jobs 1 --out one --quiet
check "quiet" [ ! -s errors ]
columns one/results.csv "$clocked" >one.csv
columns out/small/results.csv "$clocked" >two.csv
check "20 columns and more are compared" [ "$(head -n 1 one.csv | tr -cd , | wc -c)" -gt 20 ]
check "the same results from 1 and 2 jobs" cmp one.csv two.csv

# resumed
rm -r "out/small/runs/$(sed -n '3s/,.*//p' out/small/results.csv)"
touch -d '2000-01-01' out/small/runs/*/summary.json
sweep 0 small.yaml --resume
check "five were kept" grep -q 'kept from before: 5 of 6 runs' errors
check "five were left alone" [ "$(find out/small/runs -name summary.json ! -newermt 2001-01-01 | wc -l)" = 5 ]
columns out/small/results.csv "$clocked" >two.csv
check "the same results after all" cmp one.csv two.csv

# refused
refuse "use --resume" small.yaml
refuse "another experiment" small.yaml --resume --set inner.lr=0.1
refuse "another experiment" small.yaml --resume --variant ddp
check "nothing was touched" has_runs out/small summary.json 6
touch file
refuse "file" small.yaml --out file
refuse "file" small.yaml --out file/below
refuse "/proc/adloco" small.yaml --out /proc/adloco
refuse "jobs" small.yaml --jobs 0
refuse "jobs" small.yaml --jobs many
refuse "an experiment FILE is needed"
refuse "no-such-variant" small.yaml --out none --variant no-such-variant
check "nothing was made" [ ! -e none ]
"$ADLOCO" run small.yaml --variant ddp --seed 1 --out single --quiet >/dev/null 2>&1
check "a run" [ -e single/summary.json ]
refuse "single run" small.yaml --out single

# a run that diverges is a result; one that fails is recorded, and the others go on
sweep 0 small.yaml --out wild --set inner.lr=90
check "diverged" [ "$(grep -c ',diverged,' wild/results.csv)" = 6 ]
cat >broken.yaml <<'END'
name: broken
transport: threads
cluster: {workers: 2}
model: {kind: quadratic, dim: 4}
inner: {optimizer: sgd, lr: 0.1, steps: 2}
outer: {steps: 4}
variants:
  whole: {method: diloco, inner.optimizer: sgd}
  broken: {method: diloco, inner.optimizer: sgd, batch: {policy: recorded, recorded: nowhere.jsonl}}
END
sweep 1 broken.yaml --out broken
check "recorded" grep -q 'nowhere.jsonl' broken/runs/*/failed.json
check "in the results" grep -q '^[0-9a-f]*,broken,broken,.*,failed,.*nowhere.jsonl' broken/results.csv
check "the other went on" grep -q '^[0-9a-f]*,broken,whole,.*,completed,' broken/results.csv
check "said so" grep -q '1 of 2 runs failed' errors
sweep 1 broken.yaml --out broken --resume
check "only the failed one is tried again" grep -q 'kept from before: 1 of 2' errors

# a long second run: interrupted, locked while at work, killed, resumed
cat >long.yaml <<'END'
name: long
transport: threads
cluster: {workers: 2}
threads: {count: 1}
model: {kind: quadratic, dim: 4}
method: diloco
inner: {optimizer: sgd, lr: 0.1, steps: 1}
variants:
  short: {outer.steps: 2}
  long: {outer.steps: 40000}
END
one_done() { has_runs "$1" summary.json 1; }
at_work() { one_done "$1" && pgrep -P "$2" >/dev/null; }
far_on() { [ -n "$(find "$1/runs" -name 'records.jsonl*' -size +200k 2>/dev/null)" ]; }
gone() { ! kill -0 "$1" 2>/dev/null; }
end_of() { # end_of WHAT PID: its exit code must be 1, and it must not hang
    check "it ends after $1" wait_for gone "$2"
    gone "$2" || kill -KILL "$2"
    wait "$2"
    check "exit code 1 after $1" [ $? = 1 ]
}
for signal in INT TERM; do
    rm -rf long
    # a shell ignores SIGINT for what it starts in the background
    env --default-signal=INT "$ADLOCO" sweep long.yaml --jobs 1 --out long >said 2>errors &
    sweep_pid=$!
    check "the first run ends" wait_for at_work long "$sweep_pid"
    child=$(pgrep -P "$sweep_pid")
    "$ADLOCO" sweep long.yaml --out long --resume >/dev/null 2>locked
    check "another is at work" grep -q "another sweep is at work" locked
    kill -"$signal" "$sweep_pid"
    end_of "$signal" "$sweep_pid"
    check "the child is gone" [ ! -e "/proc/$child" ]
    check "what is done is kept" one_done long
    check "how to go on" grep -q -- 'adloco sweep long.yaml --out long --resume' errors
done
sweep 0 long.yaml --out long --resume
check "the rest was done" grep -q 'kept from before: 1 of 2' errors
check "both runs" has_runs long summary.json 2

# a run that crashes is recorded with its signal
rm -rf long
"$ADLOCO" sweep long.yaml --jobs 1 --out long >said 2>errors &
sweep_pid=$!
check "the second run is under way" wait_for far_on long
pkill -SEGV -P "$sweep_pid"
end_of "a crash" "$sweep_pid"
check "the crash is recorded" grep -q "the run's process ended" long/runs/*/failed.json

# simulated time is the same on every machine: all columns but the host's
if ! has SIMGRID; then
    echo "SKIPPED sim: not in this build"
else
    sed 's/^transport: threads/transport: sim/; s/^cluster: .*/cluster: {platform: nvswitch-8}/; /^threads:/d' \
        small.yaml >sim.yaml
    sweep 0 sim.yaml --jobs 1 --out sim-1
    sweep 0 sim.yaml --jobs 2 --out sim-2
    columns sim-1/results.csv '^host_' >one.csv
    columns sim-2/results.csv '^host_' >two.csv
    check "the same simulation from 1 and 2 jobs" cmp one.csv two.csv
fi

finish
