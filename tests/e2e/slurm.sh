#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Processes started by srun, in a Slurm of this test's own on this machine: over MPI, and over the
# double of NCCL, which meet by what Slurm tells them; told to stop, resumed, and one killed.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
for program in munged slurmctld slurmd srun; do
    command -v $program >/dev/null && continue
    echo "skipped: there is no $program (Debian: slurm-wlm, munge)"
    exit 77
done
if [ "$(id -u)" != 0 ] || ! getent passwd munge >/dev/null; then
    echo "skipped: a Slurm of one's own takes root, and munge's user"
    exit 77
fi

host=$(hostname -s)
port=$((20000 + RANDOM % 5000))
export SLURM_CONF=$temp/slurm.conf
cat >slurm.conf <<END
ClusterName=adloco
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$temp/munge/socket
SlurmctldPort=$port
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmctldPidFile=$temp/slurmctld.pid
SlurmdPidFile=$temp/slurmd.pid
SlurmdSpoolDir=$temp/spool
TmpFS=$temp/tmp
StateSaveLocation=$temp/state
SlurmctldLogFile=$temp/slurmctld.log
SlurmdLogFile=$temp/slurmd.log
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
NodeName=localhost NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=4 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES
END
echo 'CgroupPlugin=cgroup/v1' >cgroup.conf
chmod 755 "$temp"
mkdir munge spool tmp state
(umask 077 && head -c 1024 /dev/urandom >munge/key)
chown -R munge: munge
stop_slurm() {
    local file pid
    for file in slurmd.pid slurmctld.pid munge/pid; do
        pid=$(cat "$temp/$file" 2>/dev/null) || continue
        kill "$pid"
        for _ in $(seq 100); do
            grep -qs '^State:.[^Z]' "/proc/$pid/status" || break
            sleep 0.05
        done
    done
    rm -rf "$temp"
}
trap stop_slurm EXIT
runuser -u munge -- munged --key-file="$temp/munge/key" --socket="$temp/munge/socket" \
    --pid-file="$temp/munge/pid" --log-file="$temp/munge/log" --seed-file="$temp/munge/seed"
slurmctld -c
slurmd -N localhost
idle() { [ "$(sinfo -ho %T)" = idle ]; }
if ! wait_for idle; then
    tail -n 5 slurmctld.log slurmd.log
    finish
fi

# flat lines: read by every build
cat >e.yaml <<'END'
name: slurm
transport: threads
method: diloco
cluster.workers: 4
cluster.workers_per_device: 1
model.kind: quadratic
model.dim: 3000
model.condition: 30
inner.optimizer: sgd
inner.lr: 0.1
inner.steps: 3
outer.steps: 300
batch.policy: norm_test
batch.initial: 2
batch.cap: 500
checkpoint.every: 10
END
does 0 run e.yaml --quiet --out whole
without_times whole >expected
[ -s expected ] || fail "no records"
# processes of one node: shared memory between them does not work in a container
export OMPI_MCA_btl=tcp,self ASAN_OPTIONS=detect_leaks=0
export LD_LIBRARY_PATH=$ADL_NCCL_DOUBLED ADL_TEST_DIR=$temp
step() { # step CODE TRANSPORT ARGUMENTS...: four processes
    local want=$1 code
    did="srun adloco run, over $2"
    timeout -k 5 120 srun -n 4 "$ADLOCO" run e.yaml --quiet --set transport="$2" "${@:3}" \
        >said 2>errors </dev/null
    code=$?
    [ $code = "$want" ] || fail "exit code $code, not $want: $did: $(tail -n 5 errors)"
}
same_records() { # same_records DIR
    without_times "$1" | cmp -s - expected || fail "$1: other records than on threads, $did"
}
transports='nccl'
has MPI && transports='nccl mpi'
for transport in $transports; do
    step 0 $transport --out $transport
    says 'workers +4 on 4 devices'
    [ "$(grep -c completed said)" = 1 ] || fail "not one summary: $(cat said)"
    same_records $transport

    # what Slurm sends a job that is to make room
    srun -n 4 "$ADLOCO" run e.yaml --quiet --set transport=$transport --out told-$transport \
        >said 2>errors </dev/null &
    wait_for compgen -G "told-$transport/checkpoint-*.adl"
    scancel --signal=USR1 "$(squeue -ho %i)"
    wait $! || fail "told to stop, over $transport: exit code $?: $(cat errors)"
    [ ! -e told-$transport/summary.json ] || fail "it came to its end before it was stopped"
    step 0 $transport --out told-$transport --resume
    same_records told-$transport
done

# a process is gone: all end, and say who
ADL_NCCL_DOUBLE=die:2:60 step 137 nccl --out killed
logs 'rank 2 is gone'
step 0 nccl --out killed --resume
same_records killed

finish
