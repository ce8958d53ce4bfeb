#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Platforms as a user meets them: shipped ones show and run; made ones too; broken ones get one
# line and exit code 2.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs SIMGRID YAML
export XDG_CACHE_HOME=$temp

refuses() { # refuses REGEX ARGUMENTS...: as bad input
    does 2 "${@:2}"
    complains "$1"
}
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

does 0 platform list
cp said names
says '^two-dc +Two data centers of 4 nodes of 8 H100'
for path in "$ADL_SOURCE_DIR"/platforms/*.xml; do
    name=$(basename "$path" .xml)
    grep -qw -- "$name" names || fail "platform list lacks $name"
    does 0 platform show "$name"
    says '^devices: [1-9]'
    experiment "$name"
    does 0 run e.yaml --out "run-$name"
    devices=$("$ADLOCO" platform show "$name" | sed -n 's/^devices: \([0-9]*\),.*/\1/p')
    grep -q "\"devices\": $devices," "run-$name/summary.json" || fail "$name: not $devices devices"
done

does 0 platform make fat_tree --gpus 64 --nics 4 --pod 2 -o made.xml
does 0 platform show made.xml
says '^devices: 64, nodes: 8 of 8, .* interfaces of a node: 4$'
experiment made.xml
does 0 run e.yaml --out run-made
does 0 platform show two-dc --picture two.svg
grep -q '^<svg ' two.svg && grep -q '^</svg>' two.svg || fail "two.svg is no picture"
[ "$(grep -c '>node [0-9]*<' two.svg)" = 8 ] || fail "not 8 nodes in two.svg"
[ "$(grep -c 'fill="#2a6f97"' two.svg)" = 64 ] || fail "not 64 devices in two.svg"
grep -q '>between sites: 1.25 GB/s, 20 ms<' two.svg || fail "no wide-area link in two.svg"
does 0 platform show 'fat_tree(gpus=16384)' --picture big.svg
grep -q '>and 58 groups more<' big.svg || fail "big.svg does not say what it leaves out"
[ "$(wc -c <big.svg)" -lt 100000 ] || fail "big.svg is not small"
refuses 'none/x.svg: cannot be written' platform show two-dc --picture none/x.svg
refuses 'gpus: 12 is not a multiple of node_size 8' platform make fat_tree --gpus 12 -o no.xml
[ -e no.xml ] && fail "a refused platform was written"

# made platforms are what the shipped one is, in every detail of nodes: the same times
near() { awk "BEGIN { exit !(($1 - $2)^2 <= (1e-12 * $2)^2) }"; }
experiment h100-64
for method in diloco ddp adloco; do
    keys="--set method=$method --set cluster.workers_per_device=1"
    # shellcheck disable=SC2086
    does 0 run e.yaml $keys --out "shipped-$method"
    for made in 'fat_tree(gpus=64)' 'fat_tree(gpus=64, detail=gpu)' 'fat_tree(gpus=64, detail=node)'; do
        # shellcheck disable=SC2086
        does 0 run e.yaml $keys --set "cluster.platform=$made" --out out
        near "$(value time_s out)" "$(value time_s "shipped-$method")" ||
            fail "$method on $made: $(value time_s out) s, not $(value time_s "shipped-$method")"
        for key in loss_final exchanges messages wire_bytes; do
            [ "$(value $key out)" = "$(value $key "shipped-$method")" ] ||
                fail "$method on $made: $key $(value $key out)"
        done
        grep -qF "cluster.platform: $made" out/experiment.yaml ||
            grep -qF "cluster.platform: '$made'" out/experiment.yaml ||
            grep -qF "cluster.platform: \"$made\"" out/experiment.yaml ||
            fail "$made is not in $(grep platform out/experiment.yaml)"
        does 0 run out/experiment.yaml --out again
        near "$(value time_s again)" "$(value time_s out)" || fail "$made: not the same again"
        rm -r out again
    done
done
# also where trainers meet on uplinks
for collective in ring multi_ring star halving_doubling; do
    for detail in full gpu node; do
        does 0 run e.yaml --set trainers=5 --set model.stand_in.params=1e8 --set collective=$collective --out "meet-$detail" \
            --set "cluster.platform=fat_tree(gpus=64, pod=1, oversubscription=8, detail=$detail)"
        near "$(value time_s "meet-$detail")" "$(value time_s meet-full)" ||
            fail "$collective, $detail: $(value time_s "meet-$detail") s, $(value time_s meet-full) in full"
    done
    does 0 run e.yaml --set trainers=5 --set model.stand_in.params=1e8 --set collective=$collective --out apart \
        --set "cluster.platform=fat_tree(gpus=64, pod=1)"
    awk "BEGIN { exit !($(value time_s meet-full) > 1.1 * $(value time_s apart)) }" ||
        fail "$collective: thin uplinks cost nothing: $(value time_s meet-full) s"
    rm -r meet-* apart
done
# two instances on each node, whose interfaces they share, whatever is known of its inside
for detail in full gpu node; do
    does 0 run e.yaml --set trainers=2 --set cluster.workers_per_device=2 --set cluster.gpus_per_worker=8 \
        --set batch.initial=8 --set model.stand_in.params=1e8 --out "two-$detail" \
        --set "cluster.platform=fat_tree(gpus=128, pod=4, oversubscription=4, detail=$detail)"
    near "$(value time_s "two-$detail")" "$(value time_s two-full)" ||
        fail "two instances a node, $detail: $(value time_s "two-$detail") s, $(value time_s two-full) in full"
done
refuses 'workers_per_device: 4, but hosts of .* stand for nodes' \
    run e.yaml --set cluster.workers_per_device=4 \
    --set 'cluster.platform=fat_tree(gpus=64, detail=node)' --out no
refuses "'pods' is none of its options; did you mean 'pod'" \
    run e.yaml --set 'cluster.platform=fat_tree(gpus=64, pods=2)' --out no

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

finish
