#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# adloco validate: table, JSON, exit codes.
set -u
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp" || exit 1
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

"$ADLOCO" validate >said 2>errors </dev/null || fail "exit code $?: $(cat errors)"
grep -q '0 failed$' said || fail "no closing line: $(tail -n 1 said)"
grep -q 'reality is systematically slower' said || fail "low bandwidth is not remarked upon"
[ "$(grep -c '  pass$' said)" -ge 48 ] || fail "fewer than 48 rows are judged"

"$ADLOCO" validate --json >json 2>errors </dev/null || fail "exit code $? with --json"
grep -q '"rows": \[' json || fail "no rows"
for key in source row published ours ratio band pass; do
    grep -q "\"$key\": " json || fail "no key $key"
done
grep -q '"pass": null' json || fail "nothing is left unjudged"
grep -q '"pass": false' json && fail "a row fails"

# a figure that does not agree: exit code 3, the rows are printed all the same
mkdir -p data/analysis data/platforms
cp -r "$ADL_SOURCE_DIR/analysis/published" data/analysis/
sed -i 's/^US,38,103,0.957/US,38,103,0.900/' data/analysis/published/intellect1.csv
ADL_DATA_DIR=$PWD/data "$ADLOCO" validate >said 2>errors </dev/null
[ $? = 3 ] || fail "a wrong figure is not exit code 3"
grep -q 'US: utilization .*FAIL$' said || fail "the failing row is not shown"
[ "$(wc -l <errors)" = 1 ] || fail "not one line: $(cat errors)"

# a broken table: one line that names file, line and value
sed -i 's/^US,38,103,0.900/US,38,many,0.900/' data/analysis/published/intellect1.csv
ADL_DATA_DIR=$PWD/data "$ADLOCO" validate >said 2>errors </dev/null
[ $? = 2 ] || fail "a broken table is not exit code 2"
grep -q "intellect1.csv:3:7: sync_s: 'many'" errors || fail "unclear: $(cat errors)"
"$ADLOCO" validate something >said 2>errors </dev/null
[ $? = 2 ] || fail "an argument is taken"

[ $failures = 0 ]
