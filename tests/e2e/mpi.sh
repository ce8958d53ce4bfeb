#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several processes: conformance, identity and resumption on 1 to 8 of them; runs as a user starts
# and stops them; processes that are killed or stand still.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs MPI YAML
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
export ASAN_OPTIONS=detect_leaks=0 # see mpirun.sh
programs=$(dirname "$ADLOCO")/tests

mpi() { # mpi N COMMAND...: never longer than two minutes; its output is in said and errors
    local n=$1
    shift
    timeout -k 5 120 "$ADL_SOURCE_DIR/tests/mpirun.sh" -n "$n" "$@" >said 2>errors </dev/null
}
passes() { # passes N PROGRAM...
    mpi "$@" || fail "exit code $? on $*: $(grep -h FAILED said errors | head -n 5)"
}
same_records() { # same_records DIR WHAT
    without_times "$1" | cmp -s - expected || fail "$2: other records"
}

# the suites
for n in 2 3 4 8; do passes $n "$programs/plain_mpi_conformance"; done
for n in 2 3 4; do passes $n "$programs/plain_mpi_identity"; done
for pair in "2 4" "4 1" "1 2"; do
    mkdir stopped
    passes "${pair% *}" "$programs/plain_mpi_resume" stop "$temp/stopped"
    passes "${pair#* }" "$programs/plain_mpi_resume" resume "$temp/stopped"
    rm -rf stopped
done

cat >e.yaml <<'END'
name: mpi
transport: mpi
cluster: {workers: 8, workers_per_device: 2}
method: adloco
model: {kind: quadratic, dim: 4000, condition: 30, shortcut: never, noise: {kind: curvature, total: 4}}
inner: {lr: 0.1, steps: 5}
outer: {steps: 250}
batch: {initial: 2, max: 4, cap: 500}
merge: {every: 5}
checkpoint: {every: 10, keep: 3}
seeds: [3]
END
does 0 run e.yaml --set transport=threads --out whole --quiet
without_times whole >expected
[ -s expected ] || fail "no records"

# one process prints; the world follows from the processes; without mpirun there is one
mpi 3 "$ADLOCO" run e.yaml --quiet --out three || fail "exit code $? on 3: $(cat errors)"
[ "$(grep -c completed said)" = 1 ] || fail "not one summary: $(cat said)"
same_records three "three processes"
sed '/^cluster/d; /^outer/d' e.yaml >free.yaml
few="--set outer.steps=2 --set trainers=1 --set merge.policy=none --set cluster.workers_per_device=2"
# shellcheck disable=SC2086
mpi 2 "$ADLOCO" run free.yaml --quiet $few || fail "exit code $?: $(cat errors)"
grep -qE 'workers +4 on 2 devices' said || fail "not 2 x 2 workers: $(head -n 3 said)"
# shellcheck disable=SC2086
"$ADLOCO" run free.yaml --quiet $few >said 2>errors || fail "without mpirun: $(cat errors)"
grep -qE 'workers +2 on 1 devices' said || fail "not 2 workers: $(head -n 3 said)"

# MPI's own sums: another order, nearly the same numbers
mpi 3 "$ADLOCO" run e.yaml --quiet --json --set reduction=fast --set outer.steps=40 ||
    fail "fast: $(cat errors)"
grep -q '"status": "completed"' said || fail "fast: $(head -n 9 said)"

# processes that read different experiments
sed 's/lr: 0.1/lr: 0.2/' e.yaml >other.yaml
timeout -k 5 60 "$ADL_SOURCE_DIR/tests/mpirun.sh" -n 1 "$ADLOCO" run e.yaml --quiet : \
    -n 1 "$ADLOCO" run other.yaml --quiet >said 2>errors </dev/null
[ $? = 2 ] || fail "two experiments were run as one"
[ "$(grep -c 'rank 1 plans run' errors)" = 1 ] || fail "two experiments: $(cat errors)"

# bad input: one line, its exit code
mpi 3 "$ADLOCO" run e.yaml --quiet --out whole --set transport=mpi
[ $? = 2 ] || fail "a taken directory is no bad input"
[ "$(grep -c 'holds another run' errors)" = 1 ] || fail "a taken directory: $(cat errors)"

start() { # start N DIRECTORY ARGUMENTS...: in the background; its launcher is $launcher
    local n=$1 dir=$2
    shift 2
    "$ADL_SOURCE_DIR/tests/mpirun.sh" -n "$n" "$ADLOCO" run e.yaml --quiet --out "$dir" "$@" \
        >said 2>errors </dev/null &
    launcher=$!
}
ranks() { pgrep -P "$launcher" adloco; }
have_ranks() { [ "$(ranks | wc -l)" = "$1" ]; }
ended() { ! kill -0 "$launcher" 2>/dev/null; }
end() { # end WHAT: waits for the launcher; its exit code is in $code
    wait_for ended
    ended || { fail "$1: still running"; ranks | xargs -r kill -KILL; kill -KILL "$launcher"; }
    wait "$launcher"
    code=$?
}
resumes() { # resumes N DIRECTORY WHAT
    mpi "$1" "$ADLOCO" run e.yaml --quiet --out "$2" --resume || fail "$3: $(cat errors)"
    same_records "$2" "$3"
}

# told to stop, and resumed on another number of processes
start 2 told
wait_for test -e told/checkpoint-00000010.adl
kill -USR1 "$launcher"
end "told to stop"
[ $code = 0 ] || fail "told to stop: exit code $code: $(cat errors)"
[ "$(grep -c -- '--resume' errors)" = 1 ] || fail "no line says how to resume: $(cat errors)"
resumes 3 told "told to stop"

# a process killed at any moment of a run, $ADL_KILLS times: the others end, and what there is can
# be resumed. (One killed while MPI starts up is its launcher's to notice, which now and then it
# does not.)
for i in $(seq "${ADL_KILLS:-5}"); do
    start 3 killed$i
    wait_for have_ranks 3
    wait_for test -e killed$i/experiment.yaml
    sleep "0.$((RANDOM % 10))"
    victim=$(ranks | sed -n "$((RANDOM % 3 + 1))p")
    [ -n "$victim" ] && kill -KILL "$victim"
    end "killed"
    if [ -e killed$i/summary.json ]; then
        same_records killed$i "killed after its end"
        continue
    fi
    [ $code != 0 ] || fail "killed, and exit code 0"
    resumes $((i % 3 + 1)) killed$i "killed $i"
done

# a process that stands still is named within the deadline
start 3 still --set mpi.deadline=2
wait_for have_ranks 3
wait_for test -e still/records.jsonl.part
victim=$(ranks | sed -n 2p)
kill -STOP "$victim"
end "standing still"
[ $code = 1 ] || fail "standing still: exit code $code"
grep -q 'rank 1 has given no sign of life for 2 s' errors || fail "no name: $(cat errors)"
kill -KILL "$victim" 2>/dev/null

finish
