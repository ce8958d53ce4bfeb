# SPDX-License-Identifier: Apache-2.0
# The nccl transport, and the module that it opens at run time (real/nccl/module.h). Sanitized builds
# leave the module out: it runs under the sanitizers in tests/nccl_double.
target_sources(adl_real PRIVATE real/nccl/between.c real/nccl/control.c
  real/nccl/control_calls.c real/nccl/engine.c real/nccl/frame.c real/nccl/groups.c real/nccl/hub.c
  real/nccl/meeting.c real/nccl/module.c real/nccl/move.c real/nccl/startup.c real/nccl/sum.c)
target_link_libraries(adl_real PUBLIC ${CMAKE_DL_LIBS})
if(NOT ADL_HAVE_NCCL OR ADL_SANITIZE)
  return()
endif()

add_library(adloco_nccl MODULE core/status.c real/nccl/nccl.c)
target_include_directories(adloco_nccl PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(adloco_nccl PRIVATE NCCL::NCCL CUDA::cudart)
target_link_options(adloco_nccl PRIVATE LINKER:--no-undefined)
set_target_properties(adloco_nccl PROPERTIES
  C_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS adloco_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
