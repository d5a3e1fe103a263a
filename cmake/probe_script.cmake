# Embeds the script that the user's own Python runs for `weir probe priority`.
set(probe_script_file ${PROJECT_SOURCE_DIR}/src/lab/probe/priority_script.py)
file(READ ${probe_script_file} probe_script)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${probe_script_file})
set(WEIR_PROBE_SCRIPT_SOURCE ${WEIR_GENERATED_DIR}/weir_probe_script.cpp)
file(CONFIGURE OUTPUT ${WEIR_PROBE_SCRIPT_SOURCE} @ONLY CONTENT [[#include "lab/probe/priority.h"

namespace weir::probe {

std::string_view priority_script() { return R"~~~(@probe_script@)~~~"; }

}  // namespace weir::probe
]])
set_source_files_properties(${WEIR_PROBE_SCRIPT_SOURCE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
