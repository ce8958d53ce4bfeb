#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What bad input gets: one line with the place, the value found and what is allowed, exit code 2.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs YAML
refuse() { # refuse TEXT ARGUMENTS...: as bad input
    refused 2 "$@"
}
refuse_file() { # refuse_file TEXT LINE...: an experiment of these lines
    local text=$1
    shift
    printf '%s\n' "$@" >e.yaml
    refuse "$text" plan e.yaml
    refuse "$text" run e.yaml
}

# the command line
refuse "a command is needed"
refuse "unknown command 'rnu'; did you mean 'run'?" rnu
refuse "unknown command 'xyzzy'; see 'adloco help'" xyzzy
refuse "an experiment FILE is needed" run

# several processes, where one is meant
printf 'transport: threads\nouter.steps: 1\n' >one.yaml
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3
refuse "sweep: started as 3 processes (OMPI_COMM_WORLD_SIZE), it is for one" sweep one.yaml
refuse "claims: started as 3 processes" claims
refuse "transport: threads hosts all workers in one process, but 3 were started" run one.yaml
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
export RANK=1 WORLD_SIZE=2 # torchrun
refuse "sweep: started as 2 processes (WORLD_SIZE)" sweep one.yaml
unset RANK WORLD_SIZE
refuse "one argument too many" run a.yaml b.yaml
refuse "unknown option '--vairant'; did you mean '--variant'?" run --vairant x
refuse "unknown option '-x'" plan -x
refuse "option '--set' needs a value" run --set
refuse "option '--json' takes no value" plan --json=yes
refuse "no command and no key 'inner.rl'; did you mean 'inner.lr'?" help inner.rl
refuse "takes no argument" list everything
refuse "list, show or make is needed" platform
refuse "'hsow' is not one of list, show, make" platform hsow
refuse "a platform's name or file is needed" platform show
refuse "is no shipped platform" platform show h100-46
refuse "there are: fat_tree" platform make thin_tree
refuse "--gpus is needed" platform make fat_tree
refuse "gpus: 'many' is not an integer" platform make fat_tree --gpus many
refuse "unknown option '--gpsu'; did you mean '--gpus'?" platform make fat_tree --gpsu 8
refuse "no/such/dir/p.xml: cannot be written" platform make fat_tree --gpus 64 -o no/such/dir/p.xml

# files
mkdir directory
printf 'a: %%\xff\n' >invalid.yaml
printf 'a: \x01\n' >control.yaml
: >empty.yaml
refuse "none.yaml: no such file" plan none.yaml
refuse "directory: is a directory, a file is needed" plan directory
refuse "/dev/null: is not a regular file" plan /dev/null
refuse "invalid.yaml:1:5: byte 0xff is not valid UTF-8" plan invalid.yaml
refuse "control.yaml:1:4: control byte 0x01" plan control.yaml
refuse "empty.yaml: is empty" plan empty.yaml
refuse_file "e.yaml:2:2: missing comma" 'a: {b: 1' 'c: 2}'
refuse_file "e.yaml:2:5: aliases (*) are not supported" 'a: &x 1' 'b: *x'
refuse_file "more than one document" 'trainers: 1' '---' 'trainers: 2'
refuse_file "e.yaml:2:1: key 'trainers' stands twice, first in line 1" 'trainers: 1' 'trainers: 2'
refuse_file "e.yaml:2:1: key 'inner.lr' stands twice" 'inner: {lr: 1}' 'inner.lr: 2'

# keys and values
refuse_file "e.yaml:1:9: unknown key 'inner.setps'; did you mean 'inner.steps'?" 'inner: {setps: 5}'
refuse_file "e.yaml:1:1: inner: is a section of keys" 'inner: 5'
refuse_file "e.yaml:1:1: inner.steps: 'eight' is not an integer (1..1e9, default 50)" 'inner.steps: eight'
refuse_file "inner.steps: '0' is not an integer (1..1e9" 'inner.steps: 0'
refuse_file "stop.time: '5GB' is not a number in s, as in 50us" 'stop.time: 5GB'
refuse_file "inner.keep_state: 'maybe' is not true or false" 'inner.keep_state: maybe'
refuse_file "collective: 'rnig' is not one of auto, ring, hierarchical, multi_ring, recursive_doubling, halving_doubling, tree, star (default ring)" 'collective: rnig'
refuse_file "method: 'dilocoo' is not one of custom, ddp, local_sgd, diloco" 'method: dilocoo'
refuse_file "needs a value or a list of values" 'inner.lr: [[1]]'

# sweeps and variants
refuse_file "'sweep' is empty" 'sweep: {}'
refuse_file "e.yaml:1:9: 'inner.lr' sweeps over an empty list" 'sweep: {inner.lr: []}'
refuse_file "needs a list of values to sweep over" 'sweep: {inner.lr: 0.1}'
refuse_file "'variants' needs at least one" 'variants: {}'
printf 'seeds: [1, 2]\nvariants: {a: {}, b: {inner.lr: 0.2}}\nsweep: {inner.steps: [3, 4]}\n' >many.yaml
refuse "choose one with --variant NAME (a, b), --set KEY=VALUE (inner.steps), --seed N" run many.yaml
refuse "many.yaml: no variant 'c'; there are a, b" run many.yaml --variant c
refuse "--set: 'inner.lr' is not of the form KEY=VALUE" run many.yaml --set inner.lr
refuse "--set: unknown key 'iner.lr'; did you mean 'inner.lr'?" run many.yaml --set iner.lr=1
refuse "--set: seeds: 'x' is not a list of integers" run many.yaml --seed x

# worlds
refuse_file "trainers: 5 (e.yaml:1), but there are only 4 workers" 'trainers: 5' 'cluster.workers: 4'
refuse_file "is not a multiple of cluster.workers_per_device" 'cluster: {workers: 3, workers_per_device: 2}'
refuse_file "transport: sim needs cluster.platform" 'transport: sim'
refuse_file "'h100-46' is no shipped platform" 'transport: sim' 'cluster.platform: h100-46'
refuse_file "did you mean 'h100-64'?" 'transport: sim' 'cluster.platform: h100-46'
refuse_file "none.xml: No such file or directory" 'transport: sim' 'cluster.platform: none.xml'
refuse_file "is a directory, a file is needed" 'transport: sim' 'cluster.platform: ./directory'
refuse_file "needs batch.recorded" 'batch.policy: recorded'
refuse_file "batch.balance: steps" 'method: ddp' 'batch.balance: steps'

# platforms, where the simulator can read them
if has SIMGRID; then
    printf '<?xml version="1.0"?>\n<platform version="4.1">\n' >broken.xml
    refuse_file "broken.xml" 'transport: sim' 'cluster.platform: broken.xml'
    refuse "broken.xml" platform show ./broken.xml
    refuse_file "has 64 devices of 1 workers: at most 64" 'transport: sim' 'cluster: {platform: h100-64, workers: 65}'
    refuse_file "but platform h100-64 has 8" 'transport: sim' 'cluster: {platform: h100-64, layout.nics_per_node: 1}'
fi

# output directories
printf 'model.dim: 4\nouter.steps: 2\n' >run.yaml
printf 'model.dim: 5\nouter.steps: 2\n' >other.yaml
refuse "run.yaml" run run.yaml --quiet --out run.yaml/inside
does 0 run run.yaml --quiet --out taken
refuse "taken" run run.yaml --quiet --out ./taken
refuse "holds another run" run other.yaml --quiet --out taken

# no beginning of a good file crashes or hangs
size=$(wc -c <"$ADL_SOURCE_DIR/experiments/quickstart.yaml")
for ((n = 1; n < size; n += 97)); do
    head -c "$n" "$ADL_SOURCE_DIR/experiments/quickstart.yaml" >cut.yaml
    timeout 20 "$ADLOCO" plan cut.yaml >said 2>errors
    code=$?
    [ $code = 0 ] || [ $code = 2 ] || [ $code = 77 ] || fail "exit code $code after $n bytes"
    [ $code = 0 ] || [ "$(wc -l <errors)" = 1 ] || fail "not one line after $n bytes"
done

finish
