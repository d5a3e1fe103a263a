# Embeds config/cases/*.yaml, workloads of this program: `weir run case_a_cnn` works wherever the binary is.
file(GLOB case_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/config/cases/*.yaml)
list(SORT case_files)
set(WEIR_CASES_SOURCE ${WEIR_GENERATED_DIR}/weir_cases.cpp)
set(case_entries "")
foreach(file IN LISTS case_files)
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  string(LENGTH "${text}" length)
  if(length GREATER 60000)
    message(FATAL_ERROR "${file}: ${length} characters; a compiler need not take string literals beyond 64 KiB")
  endif()
  string(APPEND case_entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
file(CONFIGURE OUTPUT ${WEIR_CASES_SOURCE} @ONLY CONTENT [[#include "step/workload/cases.h"

namespace weir {

std::span<const EmbeddedCase> embedded_cases() {
  static constexpr EmbeddedCase kCases[] = {
@case_entries@  };
  return kCases;
}

}  // namespace weir
]])
set_source_files_properties(${WEIR_CASES_SOURCE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
