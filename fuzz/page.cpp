// Documents of any origin on a report's page: whatever the bytes, they either become a document of ours, in which every
// item has the fields that all items have, or our own error of bad input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/schemas.h"
#include "base/upgrade.h"
#include "report/page/results.h"
#include "report/text/fields.h"

namespace {

void show(const weir::Json& document) {
  using namespace weir;
  page::Page page("fuzz", "2026-11-17T00:00:00Z", {"weir", "report", "fuzz.json"});
  const Json& schema = fields::at(document, {"schema"});
  const std::string name = schema.is_string() ? schema.get<std::string>() : "";
  if (name == schemas::result || name == schemas::sweep || page::is_aorta(document)) {
    const std::size_t source = page.add_source("fuzz.json", name, document);
    page::add_results(page, page::read_measured(page, source, "fuzz.json", document));
  }
  if (page::Section* const section = page::section_for(name))
    section(page, page.add_source("fuzz.json", name, document), document);
  const Json made = std::move(page).document();
  if (made["schema"] != schemas::report) __builtin_trap();
  for (const auto& [list, items] : made.items())
    for (const Json& item : items)  // of environments and of what is shown
      if (item.is_object() && item.contains("id") && !fields::at(item, {"title"}).is_string() &&
          !fields::at(item, {"label"}).is_string())
        __builtin_trap();
  to_text(made);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    weir::Json document = weir::parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    weir::upgrade(document);
    show(document);
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
