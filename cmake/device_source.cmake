# Embeds src/kernel/device_code.cu and what it includes as text: a GPU that no compiled code is for compiles it on first use.
set(WEIR_DEVICE_SOURCE ${WEIR_GENERATED_DIR}/weir_device_source.cpp)
set(device_files kernel/device_code.cu)
set(device_entries "")
set(at 0)
list(LENGTH device_files count)
while(at LESS count)
  list(GET device_files ${at} name)
  set(file ${PROJECT_SOURCE_DIR}/src/${name})
  file(READ ${file} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"([^\"]+)\"" "\\1" include "${include}")
    list(APPEND device_files ${include})
  endforeach()
  list(REMOVE_DUPLICATES device_files)
  list(LENGTH device_files count)
  string(APPEND device_entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  math(EXPR at "${at} + 1")
endwhile()
file(CONFIGURE OUTPUT ${WEIR_DEVICE_SOURCE} @ONLY CONTENT [[#include "device/gpu/device_source.h"

namespace weir {

std::span<const DeviceFile> device_files() {
  static constexpr DeviceFile kFiles[] = {
@device_entries@  };
  return kFiles;
}

}  // namespace weir
]])
set_source_files_properties(${WEIR_DEVICE_SOURCE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
