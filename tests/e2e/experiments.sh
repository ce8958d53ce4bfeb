#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The stored experiments: each begins by saying what it is and can be planned, grids of tuning too;
# of those about the simulator every variant runs on every platform, a round instead of all.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs SIMGRID YAML
export XDG_CACHE_HOME=$temp

for file in "$ADL_SOURCE_DIR"/experiments/*.yaml; do
    name=$(basename "$file" .yaml)
    head -n 1 "$file" | grep -q '^# .' || fail "$name does not begin with what it is"
    grep -q "^name: $name$" "$file" || fail "$name is named otherwise inside"
    # what another build or other data is needed for says so in a line
    "$ADLOCO" plan "$file" >said 2>errors || complains 'not in this build|model\.data'
done

sets=(--set 'seeds=[1]' --set outer.steps=1 --set inner.steps=2)
for name in seed-20b-1024 wan-4dc stragglers mit-streams faults; do
    file=$ADL_SOURCE_DIR/experiments/$name.yaml
    sed '/^#/!q' "$file" | grep -q '?' || fail "$name does not say what it asks"
    sed '/^#/!q' "$file" | grep -q '^# Look at: ' || fail "$name does not say what to look at"
    does 0 sweep "$file" --jobs 2 --quiet --out "$name" "${sets[@]}"
    # variants that differ in steps only are one run here
    planned=$("$ADLOCO" plan "$file" "${sets[@]}" | tail -n +2 | cut -d ' ' -f 1 | sort -u | wc -l)
    ran=$(find "$name/runs" -name summary.json | wc -l)
    [ "$planned" = "$ran" ] || fail "$name: $ran of $planned runs"
done

finish
