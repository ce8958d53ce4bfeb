# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of tests/e2e begin with: a folder of its own, in which the test runs and which goes
# when it ends, and checks that count what failed. A test ends with `finish`.
set -u
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp" || exit 1
failures=0
did=adloco # what was run last

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
finish() {
    [ $failures = 0 ] || echo "$failures checks failed"
    exit $((failures > 0))
}
check() { # check WHAT COMMAND...: it succeeds
    local what=$1
    shift
    "$@" || fail "$what: $(tail -n 5 said errors 2>/dev/null)"
}
has() { # has PART: this build has it
    "$ADLOCO" --version | grep -qE "(^|, )$1 "
}
needs() { # needs PART...: else the test is skipped
    local part
    for part; do
        has "$part" && continue
        echo "skipped: this build has no $part"
        exit 77
    done
}
wait_for() { # wait_for COMMAND...: until it succeeds, half a minute at most
    for _ in $(seq 600); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    fail "waited in vain: $*"
    return 1
}

# ---- the program; what it says is in said and errors

does() { # does CODE ARGUMENTS...: it ends with this exit code
    local want=$1 code
    shift
    timeout 300 "$ADLOCO" "$@" >said 2>errors </dev/null
    code=$?
    # what AddressSanitizer says of the emulator's fibers is not the program's
    sed -i '/^==.*makecontext/d' errors
    did="adloco $*"
    [ $code = "$want" ] || fail "exit code $code, not $want: $did: $(tail -n 5 errors)"
}
says() { # says REGEX: on stdout
    grep -qE -- "$1" said || fail "'$1' is not in what $did said: $(head -n 30 said)"
}
logs() { # logs REGEX: on stderr
    grep -qE -- "$1" errors || fail "'$1' is not in what $did logged: $(cat errors)"
}
complains() { # complains REGEX: a line on stderr, and no other
    logs "$1"
    lines 1 errors
}
lines() { # lines N FILE
    [ "$(wc -l <"$2")" = "$1" ] || fail "$2 has not $1 lines after $did: $(head -n 5 "$2")"
}
refused() { # refused CODE TEXT ARGUMENTS...: nothing on stdout, one line that holds the text
    local code=$1 text=$2
    shift 2
    does "$code" "$@"
    lines 0 said
    lines 1 errors
    grep -qF -- "$text" errors || fail "'$text' is not in what $did logged: $(cat errors)"
}

# ---- what a run left

value() { # value KEY DIRECTORY: of its summary, or a text that no other directory has
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$2/summary.json" | head -n 1 | grep . ||
        echo "no $1 in $2"
}
without_times() { # without_times DIRECTORY: its records, but for times and the first line, which names the transport
    sed -E '1d; s/"(time|start|end)_s":[^,}]*//g' "$1/records.jsonl"
}
