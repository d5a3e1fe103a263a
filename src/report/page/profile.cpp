// weir.profile/2: a traced pass next to a timed one: where commands spend their time, and what tracing cost.
#include <fmt/format.h>

#include "report/page/items.h"
#include "report/page/list.h"
#include "report/page/values.h"
#include "report/text/renewed.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxProfiledDevices = 64;

}  // namespace

void section_list::profile(Page& page, std::size_t source, const Json& written) {
  const Json document = renewed_profile(written);
  const std::string name = "profile of " + values::word(document, {"workload"}, "a program");
  std::size_t drawn = 0;
  for (const Json& device : values::list(document, {"devices"})) {
    if (++drawn > kMaxProfiledDevices) break;
    const std::string label = values::word(device, {"device"}, "device " + fields::text(device, {"id"}));
    add_waterfalls(page, source, fmt::format("{}: {}", name, label), values::at(device, {"waterfall"}));
  }
  add_text(page, source, document, name);
}

}  // namespace weir::page
