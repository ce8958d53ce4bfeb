#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a real training to policies and networks: trains a small language model on this machine for
# some minutes (record-text.yaml), makes a table of the gradient noise that it measured, and sweeps
# batch policies and networks over that table (recorded-noise.yaml). Installs what is missing. The
# text is the King James Bible; where it cannot be had, a text that the model makes up itself.
set -eu
cd "$(dirname "$0")/.."
. cmake/install-deps.sh

text=out/data/kjv.txt
run=out/record-text
adl_need_text "$text"
adl_install
adl_build build

sets=()
if ! adl_write_text "$text"; then
    adl_say "no bible-kjv: going on with a synthetic text"
    sets=(--set model.data=synthetic)
fi
if [ ! -e "$run/summary.json" ]; then
    build/adloco run experiments/record-text.yaml "${sets[@]}" --out "$run"
fi
build/adloco record "$run" --window 20 -o "$run.csv"
# to the loss that the training reached after three quarters of its way
loss=$(awk -F, '{ loss[NR] = $2 } END { print loss[int(NR * 3 / 4)] }' "$run.csv")
rm -rf out/recorded-noise
exec build/adloco sweep experiments/recorded-noise.yaml --set model.data="$PWD/$run.csv" \
    --set stop.loss="$loss" --out out/recorded-noise
