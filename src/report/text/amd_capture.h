// What a capture has and lacks (weir.amd_capture/1), for people. Reads the document only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `bytes`: of each part, by its name; `folder`: as commands that come next should name it.
Report capture_report(const Json& manifest, const std::map<std::string, std::uint64_t>& bytes,
                      const std::string& folder);

}  // namespace weir
