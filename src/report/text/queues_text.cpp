#include "report/text/queues_text.h"

#include <fmt/format.h>

#include "report/text/sections.h"

namespace weir::queues_text {
namespace {

constexpr std::size_t kLabelColumns = 19;

}  // namespace

std::string heading(const Json& document) {
  return fmt::format("weir queues {} on {}\n  {}\n\n", text(document, {"experiment"}),
                     text(document, {"device", "name"}), text(document, {"device", "model"}));
}

void line(std::string& out, std::string_view label, std::string_view value) {
  out += fmt::format("  {:<{}}{}\n", label, kLabelColumns, wrapped(value, kLabelColumns + 2));
}

std::string reason(const Json& document, const std::string& name) {
  const Json& reasons = at(document, {"unavailable"});
  return reasons.is_object() && reasons.contains(name) && reasons[name].is_string() ? fields::text(reasons[name], {})
                                                                                    : "";
}

void warnings(std::string& out, const Json& document) {
  for (const Json& warning : at(document, {"warnings"}))
    out +=
        fmt::format("\n  ! {}\n    {}\n", wrapped(text(warning, {"text"}), 4), wrapped(text(warning, {"advice"}), 4));
}

}  // namespace weir::queues_text
