# Script: writes OUTPUT with the commit of SOURCE_DIR, and only where that differs from what OUTPUT says.
set(commit unknown)
# --no-optional-locks: a build must not take the index lock from somebody who is committing.
execute_process(COMMAND git --no-optional-locks -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE hash RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
# Sources from an archive may have been unpacked inside of somebody else's repository.
execute_process(COMMAND git --no-optional-locks -C ${SOURCE_DIR} rev-parse --show-prefix
                OUTPUT_VARIABLE folder ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed EQUAL 0 AND folder STREQUAL "")
  set(commit ${hash})
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit "-dirty")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[#include "weir_build.h"

namespace weir {

const char* build_commit() noexcept { return "@commit@"; }

}  // namespace weir
]])
