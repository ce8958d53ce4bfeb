#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine that has CUDA and nothing else, as machines with a GPU are: the CUDA module and the
# programs of tests/gpu/run.sh are linked, and find the toolkit's libraries where the loader does
# not know them. NCCL is found in a wheel, too.
set -eu
nvcc=$(command -v "${CUDACXX:-nvcc}" || command -v /usr/local/cuda/bin/nvcc || true)
if [ -z "$nvcc" ]; then
    echo "skipped: no nvcc"
    exit 77
fi
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

fail() {
    printf 'cuda_link: %s\n' "$*" >&2
    exit 1
}

off=()
for part in YAML SIMGRID MPI NCCL GSL SQLITE BLAS; do
    off+=("-DADL_WITH_$part=OFF")
done
# newer CMakes take the toolkit's folders for known to the loader: here all do
toolkit=$(dirname "$(dirname "$nvcc")")
folders=("$toolkit/lib" "$toolkit/lib64" "$toolkit/targets/$(uname -m)-linux/lib")
echo "list(APPEND CMAKE_PLATFORM_IMPLICIT_LINK_DIRECTORIES ${folders[*]})" >"$temp/known.cmake"
CUDACXX=$nvcc cmake -S "$ADL_SOURCE_DIR" -B "$temp/build" -G 'Unix Makefiles' -DADL_WITH_CUDA=ON \
    "${off[@]}" "-DCMAKE_PROJECT_adloco_INCLUDE=$temp/known.cmake" >"$temp/log" 2>&1 ||
    { cat "$temp/log"; fail "does not configure"; }
library=$(sed -n 's/^CUDA_CUDART:FILEPATH=//p' "$temp/build/CMakeCache.txt")
[ -e "$library" ] || fail "the runtime library is not in CMake's cache: '$library'"
for target in adloco_cuda tests/gpu/gpu_cuda_ops tests/gpu/gpu_bench; do
    name=${target##*/}
    files=$temp/build/${target%"$name"}CMakeFiles/$name.dir
    link=$(cat "$files/link.txt" "$files"/linkLibs.rsp 2>/dev/null || true)
    [[ $link == *"-o "*"$name"* ]] || fail "$name is not linked: '$link'"
    knows=
    IFS=: read -ra rpath < <(grep -o -m 1 -- '-rpath,[^ ]*' <<<"$link" | cut -d , -f 2)
    for folder in "${rpath[@]}"; do
        [ -z "$folder" ] || [ ! -e "$folder/libcudart.so" ] || knows=$folder
    done
    [ -n "$knows" ] || fail "$name does not know where $library is: $link"
done

# NCCL as a wheel of an environment's python, with another python before it on PATH, and none in the
# toolkit
mkdir -p "$temp/other" "$temp/env" "$temp/nccl/include" "$temp/nccl/lib" "$temp/project"
printf '#!/bin/sh\necho\n' >"$temp/other/python3"
printf '#!/bin/sh\necho "%s"\n' "$temp/nccl" >"$temp/env/python3"
chmod +x "$temp/other/python3" "$temp/env/python3"
printf '#define NCCL_%s\n' 'MAJOR 2' 'MINOR 99' 'PATCH 1' >"$temp/nccl/include/nccl.h"
: >"$temp/nccl/lib/libnccl.so.2"
cat >"$temp/project/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(wheel LANGUAGES NONE)
list(APPEND CMAKE_MODULE_PATH "$ADL_SOURCE_DIR/cmake")
set(CMAKE_IGNORE_PATH ${folders[*]} "$toolkit/include" "$toolkit/targets/$(uname -m)-linux/include"
    /usr/local/cuda/lib /usr/local/cuda/lib64 /usr/local/cuda/include /usr/lib /usr/include
    "/usr/lib/$(uname -m)-linux-gnu" /usr/local/lib /usr/local/include)
find_package(NCCL)
message(STATUS "\${NCCL_LIBRARY} \${NCCL_INCLUDE_DIR} \${NCCL_VERSION}")
EOF
PATH=$temp/other:$temp/env:$PATH cmake -S "$temp/project" -B "$temp/project/build" >"$temp/log" 2>&1 ||
    { cat "$temp/log"; fail "the wheel's project does not configure"; }
grep -q -- "-- $temp/nccl/lib/libnccl.so.2 $temp/nccl/include 2.99.1" "$temp/log" ||
    fail "the wheel is not found: $(cat "$temp/log")"
