#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains a small language model on a real text, on this machine: a minute or two. Installs what is
# missing, builds, writes the text, runs text-threads.yaml, prints the comparison.
# The text is the King James Bible (public domain) from Debian's package bible-kjv; where that
# cannot be had, the model learns a text that it makes up itself.
set -eu
cd "$(dirname "$0")/.."
. cmake/install-deps.sh

text=out/data/kjv.txt
adl_need_text "$text"
adl_install
adl_build build

sets=()
if ! adl_write_text "$text"; then
    adl_say "no bible-kjv: going on with a synthetic text"
    sets=(--set model.data=synthetic)
fi
out=out/text-threads
if [ -e "$out/results.csv" ]; then
    rm -rf "$out"
fi
exec build/adloco sweep experiments/text-threads.yaml "${sets[@]}" --jobs 1 --out "$out" --resume
