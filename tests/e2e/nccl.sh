#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The nccl transport as a user meets it: refused in one line where there is no GPU; and, with the
# module of tests/nccl_double in place of the real one, started in each of its ways, killed, stopped
# and resumed.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT ADLOCO_RENDEZVOUS ADLOCO_TOKEN
unset "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}"
run_refused() { # run_refused CODE TEXT ARGUMENTS...: that exit code, and one line that holds TEXT
    refused "$1" "$2" run e.yaml --quiet "${@:3}"
}

# flat lines: read by every build
cat >e.yaml <<'END'
name: nccl
transport: nccl
method: diloco
cluster.workers_per_device: 1
model.kind: quadratic
model.dim: 3000
model.condition: 30
inner.optimizer: sgd
inner.lr: 0.1
inner.steps: 3
outer.steps: 150
batch.policy: norm_test
batch.initial: 2
batch.cap: 500
checkpoint.every: 10
END

# ---- no GPU, no module, a module that is none
export CUDA_VISIBLE_DEVICES=
if [ -e "$(dirname "$ADLOCO")/libadloco_nccl.so" ]; then
    run_refused 77 "no usable CUDA device"
else
    run_refused 77 "no NCCL here: "
fi
mkdir broken empty
echo nonsense >broken/libadloco_nccl.so
LD_LIBRARY_PATH=broken run_refused 77 "no NCCL here: "
library=$(ldd "$ADLOCO" | sed -n 's/.*libc\.so\.6 => \([^ ]*\) .*/\1/p')
if [ -n "$library" ]; then
    ln -s "$library" empty/libadloco_nccl.so
    LD_LIBRARY_PATH=empty run_refused 77 "undefined symbol: adl_nccl_module"
fi

# ---- the double: what goes wrong before anything runs
export LD_LIBRARY_PATH=$ADL_NCCL_DOUBLED ADL_TEST_DIR=$temp
for kind in no-driver no-device old-device; do
    ADL_NCCL_DOUBLE=$kind:-1 run_refused 77 "no usable CUDA device"
done
ADL_NCCL_DOUBLE=old-nccl:-1 run_refused 77 "no usable NCCL: version 2.17.1"
NCCL_COMM_BLOCKING=1 run_refused 77 "NCCL_COMM_BLOCKING is 1"
ADL_NCCL_DOUBLE=join-error:0 run_refused 1 "rank 0: NCCL: joining the world"
run_refused 2 "nccl.rendezvous: 'here' is neither tcp://HOST:PORT nor a file" --rendezvous here
run_refused 2 "set RANK and WORLD_SIZE" --rendezvous /tmp/x
export RANK=1 WORLD_SIZE=2
run_refused 2 "give --rendezvous"
run_refused 2 "ADLOCO_TOKEN is not set" --rendezvous tcp://127.0.0.1:2
ADLOCO_TOKEN=short run_refused 2 "ADLOCO_TOKEN has 5 characters" --rendezvous tcp://127.0.0.1:2
WORLD_SIZE=1 run_refused 2 "RANK=1 and WORLD_SIZE=1"
ADLOCO_TOKEN=0123456789abcdef run_refused 1 "rank 1 found no rank 0 at 127.0.0.1, port 2" \
    --rendezvous tcp://127.0.0.1:2 --set nccl.start=1
unset RANK WORLD_SIZE

# ---- the ways to start
same_records() { # same_records DIR WHAT
    without_times "$1" | cmp -s - expected || fail "$2: other records"
}
pids=()
start() { # start N DIRECTORY ARGUMENTS...: N ranks, told by $rank_name and $world_name
    local n=$1 dir=$2
    shift 2
    pids=()
    for ((rank = 0; rank < n; rank++)); do
        env "$rank_name=$rank" "$world_name=$n" timeout -s KILL 120 "$ADLOCO" run e.yaml --quiet \
            --out "$dir" "$@" >"said.$rank" 2>"errors.$rank" </dev/null &
        pids+=($!)
    done
}
wait_all() { # waits for all; exit codes are in $codes
    codes=''
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null
        codes="$codes $?"
    done
}
runs() { # runs WHAT ARGUMENTS...: three ranks, the same as on threads
    local what=$1
    shift
    rm -rf out
    start 3 out "$@"
    wait_all
    [ "$codes" = " 0 0 0" ] || fail "$what: exit codes$codes: $(cat errors.*)"
    same_records out "$what"
    [ "$(grep -c completed said.0)" = 1 ] || fail "$what: rank 0 printed no summary"
    [ ! -s said.1 ] || fail "$what: rank 1 prints too"
}
free_port() { # one that nobody uses now
    local port
    for _ in $(seq 50); do
        port=$((20000 + RANDOM % 10000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo $port
}
"$ADLOCO" run e.yaml --set transport=threads --set cluster.workers=3 --out whole --quiet \
    >/dev/null || fail "threads"
without_times whole >expected
[ -s expected ] || fail "no records"

rank_name=RANK world_name=WORLD_SIZE
runs "by a file" --rendezvous "file://$temp/meet"
[ ! -e meet ] || fail "the file is still there"
export ADLOCO_TOKEN=0123456789abcdef
runs "by TCP" --rendezvous "tcp://localhost:$(free_port)"
MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port) runs "as torchrun has it"
unset ADLOCO_TOKEN
export SLURM_JOB_ID=$((RANDOM + RANDOM)) SLURM_JOB_NODELIST='127.0.0.[1,3-5],x' SLURM_STEP_ID=0
rank_name=SLURM_PROCID world_name=SLURM_STEP_NUM_TASKS
runs "by Slurm's environment"
unset SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_STEP_ID
rank_name=RANK world_name=WORLD_SIZE
if command -v mpirun >/dev/null && has MPI; then
    rm -rf out
    timeout -k 5 120 "$ADL_SOURCE_DIR/tests/mpirun.sh" -n 3 "$ADLOCO" run e.yaml --quiet --out out \
        >said 2>errors </dev/null || fail "by mpirun: exit code $?: $(cat errors)"
    same_records out "by mpirun"
    ADL_NCCL_DOUBLE=die:1:20 timeout 120 "$ADL_SOURCE_DIR/tests/mpirun.sh" -n 3 "$ADLOCO" run \
        e.yaml --quiet >said 2>errors </dev/null
    code=$?
    case $code in 0 | 124) fail "by mpirun, one killed: exit code $code" ;; esac
else
    echo "SKIPPED by mpirun: no mpirun, or no MPI in this build"
fi

# ---- a wrong token, and one that never comes
port=$(free_port)
ADLOCO_TOKEN=0123456789abcdef RANK=0 WORLD_SIZE=2 timeout 60 "$ADLOCO" run e.yaml --quiet \
    --rendezvous "tcp://127.0.0.1:$port" --set nccl.start=2 >said.0 2>errors.0 &
first=$!
ADLOCO_TOKEN=0123456789abcdeg RANK=1 WORLD_SIZE=2 run_refused 1 "it named another token" \
    --rendezvous "tcp://127.0.0.1:$port" --set nccl.start=20
wait $first
code=$?
[ $code = 1 ] || fail "exit code $code where one never comes"
grep -q 'rank 1; one was refused: it named another token' errors.0 ||
    fail "nobody says who never came: $(cat errors.0)"

# ---- one is killed: the others say who, and the run goes on, on other numbers of processes
for victim in 2 0; do
    rm -rf out
    ADL_NCCL_DOUBLE=die:$victim:60 start 3 out --rendezvous "$temp/meet"
    wait_all
    for rank in 0 1 2; do
        [ $rank = $victim ] || grep -q "rank $victim is gone" errors.$rank ||
            fail "rank $rank does not say that rank $victim is gone: $(cat errors.$rank)"
    done
    case $codes in
    *0*) fail "one is killed: exit codes$codes" ;;
    esac
    start 3 out --rendezvous "$temp/meet" --resume
    wait_all
    [ "$codes" = " 0 0 0" ] || fail "resumed: exit codes$codes: $(cat errors.*)"
    same_records out "killed and resumed"
done

# ---- told to stop, and resumed alone
rm -rf out
start 3 out --rendezvous "$temp/meet"
have_checkpoint() { compgen -G 'out/checkpoint-*.adl'; }
wait_for have_checkpoint
for pid in "${pids[@]}"; do pkill -TERM -P "$pid"; done
wait_all
[ "$codes" = " 0 0 0" ] || fail "told to stop: exit codes$codes: $(cat errors.*)"
if [ ! -e out/summary.json ]; then
    "$ADLOCO" run e.yaml --quiet --out out --resume --set cluster.workers=3 >said 2>errors ||
        fail "resumed alone: $(cat errors)"
fi
same_records out "stopped and resumed alone"

# ---- vectors in a device's memory, with the emulator's kernels: sums, moves, checkpoints, wires
if [ -z "${ADL_CUDA_EMULATED:-}" ]; then
    echo "SKIPPED vectors on a device: the emulator is not in this build"
    finish
fi
export LD_LIBRARY_PATH=$ADL_NCCL_DOUBLED:$ADL_CUDA_EMULATED
cat >e.yaml <<'END'
name: nccl
transport: nccl
method: adloco
trainers: 2
cluster.workers_per_device: 1
model.kind: llama_cuda
model.preset: custom
model.vocab: 32
model.width: 8
model.layers: 1
model.heads: 2
model.hidden: 16
model.context: 4
model.eval_samples: 1
inner.steps: 1
inner.lr: 0.01
outer.steps: 3
batch.initial: 1
batch.cap: 6
merge.every: 2
checkpoint.every: 3
END
rm -rf whole
"$ADLOCO" run e.yaml --set transport=threads --set cluster.workers=3 --out whole --quiet \
    >/dev/null || fail "threads, on a device"
without_times whole >expected
grep -q '"row":"merge"' expected || fail "no merge"
runs "on a device" --rendezvous "$temp/meet"
for wire in bf16 int8; do
    rm -rf out
    start 3 out --rendezvous "$temp/meet" --set nccl.wire=$wire
    wait_all
    [ "$codes" = " 0 0 0" ] || fail "$wire: exit codes$codes: $(cat errors.*)"
    awk -v a="$(value loss_final whole)" -v b="$(value loss_final out)" \
        'BEGIN { d = a > b ? a - b : b - a; exit !(a > 1 && d > 0 && d < 0.01) }' ||
        fail "$wire: the loss is $(value loss_final out), without it $(value loss_final whole)"
done

finish
