#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What do DDP, LocalSGD, DiLoCo and AdLoCo each pay for synchronization on the way to the same
# loss? Installs what is missing, builds, simulates, prints the comparison and names the pictures.
# An interrupted sweep is resumed; a finished one is made anew.
set -eu
cd "$(dirname "$0")/.."
. cmake/install-deps.sh

adl_install
adl_build build
out=out/quickstart
if [ -e "$out/results.csv" ]; then
    rm -rf "$out"
fi
exec build/adloco sweep experiments/quickstart.yaml --out "$out" --resume
