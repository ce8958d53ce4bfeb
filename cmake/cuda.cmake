# SPDX-License-Identifier: Apache-2.0
# The CUDA module, which the program opens at run time (kernels/cuda_module.h). Sanitized builds
# leave it out: its kernels run under the sanitizers in tests/cuda_emulator.
target_link_libraries(adl_kernels PUBLIC ${CMAKE_DL_LIBS})
set(CMAKE_BUILD_RPATH ${CMAKE_BINARY_DIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(NOT ADL_HAVE_CUDA OR ADL_SANITIZE)
  return()
endif()

enable_language(CUDA)
# said aloud: CMake takes the compiler's own folders for known to the loader, which they need not be
set(cuda_folders "")
foreach(library cudart cublasLt)
  get_target_property(file CUDA::${library} IMPORTED_LOCATION)
  get_filename_component(folder ${file} DIRECTORY)
  list(APPEND cuda_folders ${folder})
endforeach()
list(REMOVE_DUPLICATES cuda_folders)
list(APPEND CMAKE_BUILD_RPATH ${cuda_folders})
file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/*.cu)
add_library(adl_cuda OBJECT ${cuda_sources})
target_include_directories(adl_cuda PUBLIC ${CMAKE_SOURCE_DIR})
set_target_properties(adl_cuda PROPERTIES
  POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden)
target_compile_options(adl_cuda PRIVATE -std=c++20 -Xcompiler=-Wall,-Wextra -Xptxas=-warn-spills)
if(ADL_WERROR)
  target_compile_options(adl_cuda PRIVATE -Werror=all-warnings -Xcompiler=-Werror -Xptxas=-Werror)
endif()
# the CPU's bits where a kernel is bound by memory anyway
set_source_files_properties(kernels/space_cuda.cu kernels/cuda_rows.cu kernels/cuda_wire.cu
                            PROPERTIES COMPILE_OPTIONS "--fmad=false")

add_library(adloco_cuda MODULE core/status.c core/wire.c $<TARGET_OBJECTS:adl_cuda>)
target_include_directories(adloco_cuda PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(adloco_cuda PRIVATE CUDA::cudart CUDA::cublasLt)
target_link_options(adloco_cuda PRIVATE LINKER:--no-undefined)
set_target_properties(adloco_cuda PROPERTIES
  LINKER_LANGUAGE CXX C_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  INSTALL_RPATH "${CMAKE_INSTALL_RPATH};${cuda_folders}")
install(TARGETS adloco_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
