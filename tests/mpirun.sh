#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mpirun as it is needed on one machine: as root, with more processes than cores, one thread each
# for BLAS.   tests/mpirun.sh -n 4 build/adloco run FILE --set transport=mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1
# what MPI leaves at its end lies in modules that are gone by then: no telling whose it was
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}
if ! command -v mpirun >/dev/null; then
    echo "mpirun.sh: mpirun is not installed (openmpi-bin)" >&2
    exit 77
fi
exec mpirun "$@"
