#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The stored experiments: each begins by saying what it is and can be planned, grids of tuning too;
# of those about the simulator every variant runs on every platform, a round instead of all.
set -u
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export XDG_CACHE_HOME=$temp
failures=0
"$ADLOCO" --version | grep -qE 'no (SIMGRID|YAML)' && exit 77

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

for file in "$ADL_SOURCE_DIR"/experiments/*.yaml; do
    name=$(basename "$file" .yaml)
    head -n 1 "$file" | grep -q '^# .' || fail "$name does not begin with what it is"
    grep -q "^name: $name$" "$file" || fail "$name is named otherwise inside"
    # what another build or other data is needed for says so in a line
    if ! "$ADLOCO" plan "$file" >"$temp/plan" 2>"$temp/errors" &&
        ! { [ "$(wc -l <"$temp/errors")" = 1 ] &&
            grep -qE 'not in this build|model\.data' "$temp/errors"; }; then
        fail "$name cannot be planned: $(cat "$temp/errors")"
    fi
done

sets=(--set 'seeds=[1]' --set outer.steps=1 --set inner.steps=2)
for name in seed-20b-1024 wan-4dc stragglers mit-streams faults; do
    file=$ADL_SOURCE_DIR/experiments/$name.yaml
    sed '/^#/!q' "$file" | grep -q '?' || fail "$name does not say what it asks"
    sed '/^#/!q' "$file" | grep -q '^# Look at: ' || fail "$name does not say what to look at"
    "$ADLOCO" sweep "$file" --jobs 2 --quiet --out "$temp/$name" "${sets[@]}" >"$temp/said" 2>&1 ||
        fail "$name: $(tail -n 1 "$temp/said")"
    # variants that differ in steps only are one run here
    planned=$("$ADLOCO" plan "$file" "${sets[@]}" | tail -n +2 | cut -d ' ' -f 1 | sort -u | wc -l)
    ran=$(find "$temp/$name/runs" -name summary.json | wc -l)
    [ "$planned" = "$ran" ] || fail "$name: $ran of $planned runs"
done

[ $failures = 0 ] || exit 1
