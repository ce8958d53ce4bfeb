#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# adloco validate: table, JSON, exit codes.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"

does 0 validate
says '0 failed$'
says 'reality is systematically slower'
[ "$(grep -c '  pass$' said)" -ge 48 ] || fail "fewer than 48 rows are judged"

does 0 validate --json
says '"rows": \['
for key in source row published ours ratio band pass; do says "\"$key\": "; done
says '"pass": null'
grep -q '"pass": false' said && fail "a row fails"

# a figure that does not agree: exit code 3, the rows are printed all the same
mkdir -p data/analysis data/platforms
cp -r "$ADL_SOURCE_DIR/analysis/published" data/analysis/
sed -i 's/^US,38,103,0.957/US,38,103,0.900/' data/analysis/published/intellect1.csv
ADL_DATA_DIR=$PWD/data does 3 validate
says 'US: utilization .*FAIL$'
lines 1 errors

# a broken table: one line that names file, line and value
sed -i 's/^US,38,103,0.900/US,38,many,0.900/' data/analysis/published/intellect1.csv
ADL_DATA_DIR=$PWD/data refused 2 "intellect1.csv:3:7: sync_s: 'many'" validate
refused 2 'takes no argument' validate something

finish
