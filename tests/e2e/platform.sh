#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Platforms as a user meets them: shipped ones show and run; made ones too; broken ones get one
# line and exit code 2.
set -u
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp" || exit 1
failures=0
"$ADLOCO" --version | grep -q 'no SIMGRID' && exit 77

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
does() { # does ARGUMENTS...: exit code 0
    timeout 60 "$ADLOCO" "$@" >said 2>errors </dev/null
    local code=$?
    [ $code = 0 ] || fail "exit code $code: adloco $*: $(cat errors)"
}
refuses() { # refuses PATTERN ARGUMENTS...: exit code 2, one line on stderr
    local pattern=$1 code
    shift
    timeout 60 "$ADLOCO" "$@" >said 2>errors </dev/null
    code=$?
    [ $code = 2 ] || fail "exit code $code, not 2: adloco $*"
    [ "$(wc -l <errors)" = 1 ] || fail "not one line: adloco $*: $(cat errors)"
    grep -qE -- "$pattern" errors || fail "'$pattern' is not in $(cat errors)"
}
says() { grep -qE -- "$1" said || fail "'$1' is not in what was said: $(cat said)"; }
experiment() { # experiment PLATFORM
    cat >e.yaml <<END
name: small
transport: sim
method: diloco
cluster: {platform: $1}
model: {kind: quadratic, dim: 8, stand_in: {params: 1e6, tokens_per_sample: 16}}
inner: {optimizer: sgd, lr: 0.1, steps: 2}
outer: {steps: 2}
END
}

does platform list
cp said names
for path in "$ADL_SOURCE_DIR"/platforms/*.xml; do
    name=$(basename "$path" .xml)
    grep -qw -- "$name" names || fail "platform list lacks $name"
    does platform show "$name"
    says '^devices: [1-9]'
    experiment "$name"
    does run e.yaml --out "run-$name"
    devices=$("$ADLOCO" platform show "$name" | sed -n 's/^devices: \([0-9]*\),.*/\1/p')
    grep -q "\"devices\": $devices," "run-$name/summary.json" || fail "$name: not $devices devices"
done

does platform make fat_tree --gpus 64 --nics 4 --pod 2 -o made.xml
does platform show made.xml
says '^devices: 64, nodes: 8 of 8, .* interfaces of a node: 4$'
experiment made.xml
does run e.yaml --out run-made
refuses 'gpus: 12 is not a multiple of node_size 8' platform make fat_tree --gpus 12 -o no.xml
[ -e no.xml ] && fail "a refused platform was written"

sed 's/gpu1"/gpu0"/' made.xml >twice.xml
refuses 'twice.xml:[0-9]+: .*gpu0' platform show twice.xml
experiment twice.xml
refuses 'twice.xml:[0-9]+: .*gpu0' run e.yaml --out run-twice
head -c 3000 made.xml >cut.xml
refuses 'cut.xml:[0-9]+: Invalid XML' platform show cut.xml
sed 's/50GBps/50GBpz/' made.xml >unit.xml
refuses 'unit.xml:[0-9]+: .*GBpz' platform show unit.xml
: >empty.xml
refuses 'empty.xml: the file is empty' platform show empty.xml
mkdir folder.xml
refuses 'folder.xml: .*directory' platform show folder.xml
refuses 'absent' platform show absent.xml

[ $failures = 0 ] || exit 1
