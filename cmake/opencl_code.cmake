# OpenCL compiles kernels on the machine that runs them: their source is embedded. Only headers are needed to build; the
# loader's library is opened at run time.
set(WEIR_HAVE_OPENCL 0)
set(WEIR_OPENCL_REASON "")
set(WEIR_OPENCL_INCLUDE_DIR "")
if(WEIR_OPENCL STREQUAL "OFF")
  set(WEIR_OPENCL_REASON "switched off by WEIR_OPENCL=OFF")
else()
  find_path(WEIR_OPENCL_H_DIR CL/cl.h HINTS ${WEIR_CUDA_INCLUDE_DIR} ENV ROCM_PATH PATH_SUFFIXES include)
  mark_as_advanced(WEIR_OPENCL_H_DIR)
  if(WEIR_OPENCL_H_DIR)
    set(WEIR_HAVE_OPENCL 1)
    set(WEIR_OPENCL_INCLUDE_DIR ${WEIR_OPENCL_H_DIR})
  else()
    set(WEIR_OPENCL_REASON "CL/cl.h was not found")
  endif()
endif()
if(WEIR_OPENCL STREQUAL "ON" AND NOT WEIR_HAVE_OPENCL)
  message(FATAL_ERROR "WEIR_OPENCL=ON: ${WEIR_OPENCL_REASON}")
endif()

file(GLOB opencl_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernel/*.cl)
list(SORT opencl_files)
set(opencl_entries "")
foreach(file IN LISTS opencl_files)
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  # A compiler need not take string literals beyond 64 KiB; ours are a few.
  string(APPEND opencl_entries "      {\"${name}\", R\"~~~(${text})~~~\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
set(opencl_source ${WEIR_DEVICE_DIR}/opencl_sources.cpp)
file(CONFIGURE OUTPUT ${opencl_source} @ONLY CONTENT [[#include "kernel/opencl_source.h"

namespace weir {

std::span<const EmbeddedSource> embedded_opencl_sources() {
  static constexpr EmbeddedSource kSources[] = {
@opencl_entries@  };
  return kSources;
}

}  // namespace weir
]])
set_source_files_properties(${opencl_source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
list(APPEND WEIR_EMBEDDED_SOURCES ${opencl_source})
