# SPDX-License-Identifier: Apache-2.0
# Sourced by experiments/*.sh and tests/run.sh: what a build needs, the build, and a text to learn.
# Everything that is here already is left alone, however it came; without anything missing
# apt-get is never called.

adl_say() { printf '%s\n' "$*" >&2; }
adl_have() { command -v "$1" >/dev/null 2>&1; }
adl_have_library() { adl_have pkg-config && pkg-config --exists "$1"; }
adl_have_font() { adl_have fc-list && fc-list | grep -q 'DejaVu Sans'; }

adl_missing=()  # Debian packages
adl_need() { # adl_need PACKAGE WHY CHECK...: notes the package unless the check succeeds
    local package=$1 why=$2
    shift 2
    "$@" && return
    adl_missing+=("$package")
    adl_say "missing: $package ($why)"
}

adl_as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

# Installs what is noted. Where that is not possible the build goes on without the optional
# parts and says so itself.
adl_install_missing() {
    [ ${#adl_missing[@]} -gt 0 ] || return 0
    if ! adl_have apt-get || { [ "$(id -u)" != 0 ] && ! adl_have sudo; }; then
        adl_say "cannot install them: this needs apt-get, and root or sudo; going on without"
        return 0
    fi
    adl_say "installing with apt-get: ${adl_missing[*]}"
    local log
    log=$(mktemp)
    if ! { adl_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
        adl_as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get -q install -y --no-install-recommends "${adl_missing[@]}"; } \
        </dev/null >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        adl_say "apt-get failed; going on without"
    fi
    rm -f "$log"
}

# adl_install [tests]: the build's needs, and those of the tests.
adl_install() {
    adl_need gcc "C compiler" adl_have gcc
    adl_need g++ "the simulator's bindings" adl_have g++
    adl_need libc6-dev "C library headers" test -e /usr/include/stdio.h
    adl_need cmake "build" adl_have cmake
    adl_need make "build" eval 'adl_have ninja || adl_have make'
    adl_need pkg-config "finds libraries" adl_have pkg-config
    adl_need libfyaml-dev "reads experiments" adl_have_library libfyaml
    adl_need libsimgrid-dev "the simulator" adl_have_library simgrid
    adl_need libopenblas-dev "fast matrix products" adl_have_library openblas
    adl_need libgsl-dev "statistics" adl_have_library gsl
    adl_need libsqlite3-dev "results as a database" adl_have_library sqlite3
    adl_need gnuplot-nox "pictures" adl_have gnuplot
    adl_need fontconfig "pictures" adl_have fc-list
    adl_need fonts-dejavu-core "pictures" adl_have_font
    if [ "${1:-}" = tests ]; then
        adl_need libcriterion-dev "unit tests" adl_have_library criterion
        adl_need libopenmpi-dev "transport mpi" adl_have mpicc
        adl_need openmpi-bin "transport mpi" adl_have mpirun
        if [ "${CI:-false}" = true ]; then # services, which a person may not want
            adl_need slurm-wlm "processes started by srun" adl_have slurmctld
            adl_need munge "processes started by srun" adl_have munged
        fi
    fi
    adl_install_missing
}

# adl_build DIRECTORY [CMAKE_ARGUMENT...]: configures and builds; its log is shown only if it
# fails. A directory keeps the generator it was made with.
adl_build() {
    local dir=$1 log generator=()
    shift
    if [ ! -e "$dir/CMakeCache.txt" ] && adl_have ninja; then
        generator=(-G Ninja)
    fi
    mkdir -p "$dir"
    log=$dir/build.log
    adl_say "building in $dir"
    if { cmake -S . -B "$dir" "${generator[@]}" "$@" &&
        cmake --build "$dir" --parallel "$(nproc)"; } </dev/null >"$log" 2>&1; then
        sed -n 's/^-- adloco/adloco/p' "$log" >&2
        return 0
    fi
    tail -n 60 "$log" >&2
    adl_say "the build in $dir failed; all of its words: $log"
    return 1
}

# A text for language models, the King James Bible (public domain) from Debian's package bible-kjv:
# adl_need_text FILE before adl_install, adl_write_text FILE after it, which fails where it cannot be
# had.
adl_need_text() { adl_need bible-kjv "the text" eval "adl_have bible || [ -s $1 ]"; }
adl_write_text() {
    [ ! -s "$1" ] || return 0
    adl_have bible || return 1
    mkdir -p "$(dirname "$1")"
    bible Gen1:1-Rev22:21 </dev/null >"$1.part" && mv "$1.part" "$1"
}
