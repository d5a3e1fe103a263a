# Embeds include/weir/*.h and the adapter for Python modules: `weir bench` builds and runs kernel packages wherever the
# binary is, regions are compiled at run time, and compilers at run time take headers as text.
file(GLOB kernel_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/weir/*.h)
list(SORT kernel_headers)
set(WEIR_KERNEL_HEADERS_SOURCE ${WEIR_GENERATED_DIR}/weir_kernel_headers.cpp)
set(header_entries "")
foreach(file IN LISTS kernel_headers)
  cmake_path(GET file FILENAME name)
  file(READ ${file} text)
  string(LENGTH "${text}" length)
  if(length GREATER 60000)
    message(FATAL_ERROR "${file}: ${length} characters; a compiler need not take string literals beyond 64 KiB")
  endif()
  string(APPEND header_entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
set(adapter ${PROJECT_SOURCE_DIR}/src/lab/kernels/package/python_adapter.py)
file(READ ${adapter} python_adapter)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${adapter})
file(CONFIGURE OUTPUT ${WEIR_KERNEL_HEADERS_SOURCE} @ONLY CONTENT [[#include "kernel/public_headers.h"
#include "lab/kernels/package/backends.h"

namespace weir {

std::span<const EmbeddedSource> public_headers() {
  static constexpr EmbeddedSource kHeaders[] = {
@header_entries@  };
  return kHeaders;
}

}  // namespace weir

namespace weir::package {

std::string_view python_adapter() { return R"~~~(@python_adapter@)~~~"; }

}  // namespace weir::package
]])
set_source_files_properties(${WEIR_KERNEL_HEADERS_SOURCE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
