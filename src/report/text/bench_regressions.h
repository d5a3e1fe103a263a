// What a comparison of bench runs found, for people: regressions.md, and the part of it that summary.md and the
// terminal show. Reads the block "regressions" of weir.bench/1 only.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// One section: the verdict in a sentence, and the cases that deserve a look. A null block says that nothing was
// compared.
ReportSection regressions_section(const Json& regressions);
// regressions.md: every case, and how to read it.
std::string regressions_markdown(const Json& regressions);
// One case in a line: "4.21 ms -> 5.02 ms, +19.2 % (+15.1 .. +23.0 %): slower: why".
std::string regression_line(const Json& entry);

}  // namespace weir
