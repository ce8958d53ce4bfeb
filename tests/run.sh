#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, runs every test; the last line is "N passed, N failed,
# N skipped". Exit code 0: none failed.
#   --sanitize  also the whole suite under ASan and UBSan, and tests/plain under TSan, where the
#               simulator stays out: its contexts are not threads. With CI=true this is the
#               default, and warnings are errors.
set -u
cd "$(dirname "$0")/.." || exit 1
. cmake/install-deps.sh

sanitize=${CI:-false}
strict=OFF
[ "${CI:-false}" = true ] && strict=ON
case "${1:-}" in
'') ;;
--sanitize) sanitize=true ;;
*)
    adl_say "tests/run.sh: unknown argument '$1'; allowed: --sanitize"
    exit 2
    ;;
esac

passed=0 failed=0 skipped=0

# A line for each thing that was not tested, and why. A whole test says why in its last line. A
# test that runs several cases prints "SKIPPED GROUP/CASE: REASON" for those it leaves out, or the
# reason in the line before; they are one line by group.
show_skips() { # show_skips CTEST_OUTPUT LAST_TEST_LOG
    awk '
        function flush_group() {
            if (n > 0)
                print "skipped: " name ": " group (n > 1 ? " (" n " cases)" : "") ": " reason
            n = 0
        }
        NR == FNR { if (/\*\*\*Skipped/) whole[$4] = 1; next }
        /^[0-9]+\/[0-9]+ Test: / { name = $3; last = "no reason given" }
        /^<end of output>/ {
            inside = 0
            flush_group()
            if (name in whole) print "skipped: " name ": " last
        }
        inside && /^SKIPPED / {
            of = substr($0, 9)
            colon = index(of, ": ")
            why = colon ? substr(of, colon + 2) : last
            sub(/[\/:].*/, "", of)
            if (of != group) flush_group()
            if (n++ == 0) { group = of; reason = why }
        }
        inside && NF { last = $0 }
        /^Output:/ { inside = 1; getline }
    ' "$1" "$2"
}

# stage NAME DIRECTORY CTEST_ARGUMENTS -- CMAKE_ARGUMENTS: builds and tests one configuration.
stage() {
    local name=$1 dir=$2 select=() log
    shift 2
    while [ "$1" != -- ]; do
        select+=("$1")
        shift
    done
    shift
    adl_say "== $name"
    if ! adl_build "$dir" -DADL_WERROR="$strict" "$@"; then
        failed=$((failed + 1))
        return
    fi
    log=$dir/tests.log
    (cd "$dir" && ctest --output-on-failure --parallel "$(nproc)" "${select[@]}") </dev/null 2>&1 | tee "$log"
    local total bad left_out skips
    total=$(sed -n 's/.* tests failed out of \([0-9]*\).*/\1/p' "$log")
    bad=$(sed -n 's/.*passed, \([0-9]*\) tests failed out of.*/\1/p' "$log")
    left_out=$(grep -c '\*\*\*Skipped' "$log")
    if [ -z "$total" ]; then
        adl_say "no tests ran in $dir"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + total - bad - left_out))
    failed=$((failed + bad))
    skips=$(show_skips "$log" "$dir/Testing/Temporary/LastTest.log")
    if [ -n "$skips" ]; then
        echo "$skips"
        skipped=$((skipped + $(echo "$skips" | wc -l)))
    fi
}

adl_install tests
stage "plain build" build -- -DADL_SANITIZE=
if [ "$sanitize" = true ]; then
    stage "address and undefined-behaviour sanitizers" build-asan -- \
        -DADL_SANITIZE=address,undefined
    stage "thread sanitizer" build-tsan -R '^plain_' -- -DADL_SANITIZE=thread \
        -DADL_WITH_SIMGRID=OFF
fi
adl_have_library criterion || adl_say "skipped: every unit test: criterion is not installed"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
