# SPDX-License-Identifier: Apache-2.0
# NCCL_FOUND, NCCL_VERSION, NCCL::NCCL. Hints, in this order: NCCL_ROOT, the CUDA toolkit, pip's
# nvidia/nccl of the python that is activated and of all on PATH: the first may be the system's
# beside an environment with the wheel. The library is taken from where the header is, if it is there.
set(_hints ${NCCL_ROOT} $ENV{NCCL_ROOT} ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_LIBRARY_ROOT}
           $ENV{CUDA_HOME} /usr/local/cuda)
set(_pythons "")
if(DEFINED ENV{VIRTUAL_ENV})
  list(APPEND _pythons $ENV{VIRTUAL_ENV}/bin/python3)
endif()
string(REPLACE ":" ";" _path "$ENV{PATH}")
foreach(_folder ${_path})
  if(EXISTS ${_folder}/python3)
    list(APPEND _pythons ${_folder}/python3)
  endif()
endforeach()
list(REMOVE_DUPLICATES _pythons)
foreach(_python ${_pythons})
  execute_process(COMMAND ${_python} -c "from importlib.util import find_spec as find
s = find('nvidia.nccl')
print(*(s.submodule_search_locations if s else []), sep=';')"
    OUTPUT_VARIABLE _pip OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET TIMEOUT 20)
  list(APPEND _hints ${_pip})
endforeach()
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${_hints} PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
  get_filename_component(_beside ${NCCL_INCLUDE_DIR} DIRECTORY)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h _v REGEX "#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" NCCL_VERSION "${_v}")
endif()
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${_beside} ${_hints}
             PATH_SUFFIXES lib lib64)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
