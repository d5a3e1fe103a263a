#include "lab/queues/queues_document.h"

#include "base/clock.h"
#include "base/named_values.h"
#include "base/schemas.h"

namespace weir {

Json queues_document(std::string_view experiment, const DeviceInfo& info, const RunContext& context) {
  Json document = WEIR_NAMED(named("schema", schemas::queues), experiment, named("created", wall_time()),
                             context.command_line, named("device", to_json(info)), context.environment);
  document["warnings"] = Json::array();  // {kind, text, advice}
  document["unavailable"] = Json::object();
  return document;
}

void warn(Json& document, std::string_view kind, const std::string& text, std::string_view advice) {
  document["warnings"].push_back(WEIR_NAMED(kind, text, advice));
}

}  // namespace weir
