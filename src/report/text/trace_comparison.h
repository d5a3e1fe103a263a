// Tells a weir.trace_comparison/1 document: as text for a terminal, as Markdown for a review. Judges nothing itself.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"

namespace weir {

// At most 80 columns, apart from paths that are longer themselves.
std::string trace_comparison_text(const Json& document);
std::string trace_comparison_markdown(const Json& document);

// A kernel's name in at most `columns`: template arguments and parameters go first, then the middle.
std::string short_kernel_name(std::string_view name, std::size_t columns);

}  // namespace weir
