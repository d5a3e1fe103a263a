# Embeds config/devices/*.yaml, so that `--device sim:h200` works wherever the binary is.
file(GLOB profile_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/config/devices/*.yaml)
list(SORT profile_files)
set(WEIR_PROFILES_SOURCE ${WEIR_GENERATED_DIR}/weir_profiles.cpp)
set(profile_entries "")
foreach(file IN LISTS profile_files)
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  # A compiler need not take string literals beyond 64 KiB; ours are a few.
  string(APPEND profile_entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
file(CONFIGURE OUTPUT ${WEIR_PROFILES_SOURCE} @ONLY CONTENT [[#include "device/sim/profile.h"

namespace weir::sim {

std::span<const EmbeddedProfile> embedded_profiles() {
  static constexpr EmbeddedProfile kProfiles[] = {
@profile_entries@  };
  return kProfiles;
}

}  // namespace weir::sim
]])
set_source_files_properties(${WEIR_PROFILES_SOURCE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
