#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without any optional part the program builds, says so, and runs a resolved experiment with the
# same result; what needs a part is refused with exit code 77.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

fail() {
    printf 'bare: %s\n' "$*" >&2
    exit 1
}

off=()
for part in YAML SIMGRID MPI CUDA NCCL GSL SQLITE BLAS; do
    off+=("-DADL_WITH_$part=OFF")
done
cmake -S "$ADL_SOURCE_DIR" -B "$temp/build" -DADL_WERROR=ON -DCMAKE_BUILD_TYPE=Debug "${off[@]}" \
    >"$temp/log" 2>&1 || { cat "$temp/log"; fail "does not configure"; }
cmake --build "$temp/build" --target adloco --parallel "$(nproc)" >"$temp/log" 2>&1 ||
    { tail -n 30 "$temp/log"; fail "does not build"; }
bare=$temp/build/adloco
"$bare" --version | grep -q 'no SIMGRID' || fail "--version does not say what is missing"

printf 'name: bare\nmethod: adloco\ntrainers: 2\ncluster.workers: 8\nouter.steps: 6\n' >"$temp/e.yaml"
"$ADLOCO" run "$temp/e.yaml" --out "$temp/full" --quiet >"$temp/said" || fail "the full build fails"
"$bare" run "$temp/full/experiment.yaml" --out "$temp/bare" --quiet >"$temp/said" ||
    fail "a resolved experiment does not run"
final() { sed -n 's/.*"loss_final": \(.*\),/\1/p' "$1/summary.json"; }
[ -n "$(final "$temp/bare")" ] || fail "no loss"
[ "$(final "$temp/bare")" = "$(final "$temp/full")" ] ||
    fail "losses differ: $(final "$temp/bare"), $(final "$temp/full")"

code=0
"$bare" run "$temp/full/experiment.yaml" --set transport=sim --set cluster.platform=two_hosts \
    >"$temp/said" 2>&1 || code=$?
[ "$code" = 77 ] || fail "the missing simulator gives code $code, not 77"
code=0
"$bare" run "$temp/full/experiment.yaml" --set transport=mpi >"$temp/said" 2>&1 || code=$?
[ "$code" = 77 ] || fail "the missing MPI gives code $code, not 77"
grep -q 'mpi is not in this build' "$temp/said" || fail "the refusal does not say what is missing"
code=0
printf 'name: x\ninner: {lr: 0.1}\n' >"$temp/nested.yaml"
"$bare" run "$temp/nested.yaml" >"$temp/said" 2>&1 || code=$?
[ "$code" = 2 ] || fail "nested keys without the YAML library give code $code, not 2"
grep -q 'without libfyaml' "$temp/said" || fail "the refusal does not say what is missing"
