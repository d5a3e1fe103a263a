#include "lab/queues/queues_document.h"

#include "base/clock.h"

namespace weir {

Json queues_document(std::string_view experiment, const DeviceInfo& info, const RunContext& context) {
  Json document = Json::object();
  document["schema"] = "weir.queues/1";
  document["experiment"] = experiment;
  document["created"] = wall_time();
  document["command_line"] = context.command_line;
  document["device"] = to_json(info);
  document["environment"] = context.environment;
  document["warnings"] = Json::array();  // {kind, text, advice}
  document["unavailable"] = Json::object();
  return document;
}

}  // namespace weir
