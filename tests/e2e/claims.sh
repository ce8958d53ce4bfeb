#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `adloco claims` as a user meets it: run, resumed, judged alike however it is run, refused.
. "$ADL_SOURCE_DIR/tests/include/e2e.sh"
needs SIMGRID GSL YAML

claims() { # claims EXIT_CODE ARGUMENTS...
    does "$1" claims "${@:2}"
}
refuse() { # refuse TEXT ARGUMENTS...: as bad input
    refused 2 "$1" claims "${@:2}"
}

mkdir tiny
cat >tiny/E2.yaml <<'END'
# SPDX-License-Identifier: Apache-2.0
name: E2
transport: sim
cluster: {platform: two_hosts}
model: {kind: quadratic, dim: 8, condition: 10, noise: {total: 0.1}}
inner: {optimizer: sgd, lr: 0.2, steps: 5}
outer: {steps: 60}
stop: {loss: 1e-2}
seeds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
sweep: {inner.steps: [5, 10]}
claim:
  title: Long rounds need few exchanges
  says: Local SGD exchanges less than half as often as data parallelism.
  regime: Two hosts.
  tuning: None.
  curve: {y: exchanges, of: [local, ddp], at: {inner.steps: 5}}
  quick: {outer.steps: 59}
  asks:
    - {regime: "five steps, 100%", measure: exchanges, of: local, over: ddp, at: {inner.steps: 5}, below: 0.5}
    - {regime: ten steps, measure: exchanges, of: local, over: ddp, at: {inner.steps: 10}, below: 0.05}
    - {regime: ten steps, measure: samples, of: local, over: ddp, at: {inner.steps: 10}, below: 0.5}
    - {regime: never there, measure: samples, of: slow, over: ddp, at: {inner.steps: 10}, below: 2}
    - {regime: a line, measure: linear_r2, of: slow, at: {inner.steps: 10}, above: 0.999}
variants:
  ddp: {method: ddp}
  local: {method: local_sgd}
  slow: {method: local_sgd, inner.lr: 1e-4}
END
sed 's/^name: E2/name: E10/; s/Long rounds/The same again, long rounds/' tiny/E2.yaml >tiny/E10.yaml
sed 's/^name: E2/name: E2-more/; s/Long rounds/Once more, long rounds/' tiny/E2.yaml >tiny/E2-more.yaml
echo 'name: no claim' >tiny/grid.yaml

# all of it, twice, then resumed: the same report, to the byte
claims 0 --from tiny --jobs 2 --out two
check "in the order of numbers" [ "$(grep -o '^E[^ ]*' said | tr '\n' ' ')" = "E2 E2-more E10 " ]
claims 0 --from tiny --jobs 1 --out one --quiet
check "quiet" [ ! -s errors ]
check "the same report from one and two jobs" cmp one/CLAIMS.md two/CLAIMS.md
check "the same picture" cmp one/claims/E2.svg two/claims/E2.svg
cp one/CLAIMS.md before.md
rm -r "one/E2/runs/$(ls one/E2/runs | head -n 1)" one/CLAIMS.md one/claims
claims 0 --from tiny --out one --resume
check "the same report after all" cmp one/CLAIMS.md before.md
check "runs that no question asks for are left out" \
    [ "$(find one/E2/runs -name summary.json | wc -l)" = 50 ]
check "no clock in it" [ "$(grep -c 'host_' before.md)" = 0 ]
check "it holds" grep -Eq '^\| \*\*five steps, 100%.*\*\*holds\*\*' before.md
check "0.2 of the exchanges, and Holm's p" grep -Eq '^\| ten steps \| samples.*does not hold' before.md
check "a run that fell short" grep -q '10 of 10 runs fell short' before.md
if command -v gnuplot >/dev/null; then
    check "a picture of curves" [ -s one/claims/E2-curve.svg ]
    check "it is shown" grep -q 'claims/E2-curve.svg' before.md
    check "a picture of the law" grep -q 'slow: C = a + b N, R² 1<' one/claims/E2-laws.svg
    check "it is shown" grep -q 'claims/E2-laws.svg' before.md
fi

# killed in the middle, at once or not, it goes on: the same report
for signal in TERM KILL; do
    "$ADLOCO" claims --from tiny --jobs 1 --out "cut-$signal" --quiet >said 2>errors </dev/null &
    for _ in $(seq 500); do
        [ "$(find "cut-$signal" -name summary.json 2>/dev/null | wc -l)" -lt 5 ] || break
        sleep 0.02
    done
    kill -s "$signal" $!
    wait $! 2>/dev/null
    check "$signal stopped it" [ ! -e "cut-$signal/CLAIMS.md" ]
    claims 0 --from tiny --out "cut-$signal" --resume --quiet
    check "the same report after $signal" cmp "cut-$signal/CLAIMS.md" before.md
    check "the same pictures after $signal" diff -r "cut-$signal/claims" two/claims
done

# quick: the primary question on three seeds; a report elsewhere; some claims only
claims 0 --from tiny --quick --only E10 --out quick --report elsewhere
check "six runs" [ "$(find quick/E10/runs -name summary.json | wc -l)" = 6 ]
check "only E10" [ ! -e quick/E2 ]
check "set for a quick look" grep -q '^outer.steps: 59' "$(find quick -name experiment.yaml | head -n 1)"
check "said to be quick" grep -q 'quick look' elsewhere/CLAIMS.md
check "secondary questions were not run" grep -q '| ten steps .* not run' elsewhere/CLAIMS.md
check "t below ten seeds" grep -q 't on logs' elsewhere/CLAIMS.md

# refused
refuse "no claim 'E3'" --from tiny --only E3
refuse "nowhere" --from nowhere
refuse "use --resume" --from tiny --out one
refuse "one argument too many" E2
refuse "jobs" --jobs 0
broken() { # broken TEXT SED: E2 changed, and what the message says
    rm -rf broken other
    mkdir broken
    sed "$2" tiny/E2.yaml >broken/E2.yaml
    refuse "$1" --from broken --out other
}
broken "measure: 'exchange' is none of exchanges" 's/measure: exchanges/measure: exchange/'
broken "unknown key 'belo'" 's/below: 0.5}/belo: 0.5}/'
broken "one of them is needed" 's/, below: 0.5}/}/'
broken "variant 'nobody'" 's/of: slow/of: nobody/'
broken "at that point" 's/at: {inner.steps: 10}, below: 2/at: {inner.steps: 20}, below: 2/'
broken "more than one run of a seed" 's/, at: {inner.steps: 10}, below: 2/, below: 2/'
broken "E2.yaml:" "s/title: Long/title: Long: /"
broken "title is missing" '/title:/d'
broken "needs a number above 0" 's/below: 2/below: 0/'
broken "window is empty" 's/below: 2}/below: 2, window: [3, 2]}/'
broken "is not above 'above'" 's/below: 2}/below: 2, above: 3}/'
broken "quick needs a map of keys" 's/quick: .*/quick: 3/'

# what is shipped can be planned
for file in "$ADL_SOURCE_DIR"/experiments/claims/*.yaml; do
    check "a plan of $file" "$ADLOCO" plan "$file" >planned 2>errors
    check "no warning about $file" [ ! -s errors ]
done

claims 0 --quick --out shipped --quiet
shipped=$(grep -l '^claim:' "$ADL_SOURCE_DIR"/experiments/claims/*.yaml | wc -l)
check "E1 to E10, and four of them with a language model" [ "$shipped" = 14 ]
check "all of them" [ "$(grep -c '^## E' shipped/CLAIMS.md)" = "$shipped" ]
check "all were run" [ "$(grep -c '^| \*\*.*not run' shipped/CLAIMS.md)" = 0 ]
cp shipped/CLAIMS.md before.md
cp -r shipped/claims before
claims 0 --quick --out shipped --quiet --resume
check "the report from the same runs: the same bytes" cmp shipped/CLAIMS.md before.md
check "and the same pictures" diff -r shipped/claims before
check "no time or place in it" \
    [ "$(grep -cwE "$temp|[0-9]{2}:[0-9]{2}:[0-9]{2}" before.md)" = 0 ]

# the report in the tree is that of the files in the tree: every claim and question is there
for file in "$ADL_SOURCE_DIR"/experiments/claims/E*.yaml; do
    title=$(sed -n 's/^  title: //p' "$file")
    [ -z "$title" ] || check "$title is in analysis/CLAIMS.md" \
        grep -qF "**$title.**" "$ADL_SOURCE_DIR/analysis/CLAIMS.md"
    sed -nE 's/^ *- \{regime: ("[^"]*"|[^,]*), measure: ([a-z_0-9]*),.*/\1/p' "$file" | tr -d '"' >asked
    [ -z "$title" ] || check "questions in $file" [ -s asked ]
    while read -r regime; do
        check "'$regime' of $file is in analysis/CLAIMS.md" \
            grep -qF -- "| ${regime}" <(tr -d '*' <"$ADL_SOURCE_DIR/analysis/CLAIMS.md")
    done <asked
done

finish
