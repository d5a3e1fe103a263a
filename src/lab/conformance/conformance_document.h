// What `weir conformance` found, as a document (docs/schema/weir.conformance.1.json). Runs nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lab/conformance/conformance.h"
#include "run/runner.h"

namespace weir {

// What was asked for and what came of it, device by device.
struct ConformanceRun {
  std::vector<std::string> filters;
  std::vector<conformance::Report> reports;
  struct NotOpened {
    std::string device, reason;
  };
  std::vector<NotOpened> not_opened;  // of all devices, where all were asked for
  bool is_interrupted = false;
};

Json conformance_document(const ConformanceRun& run, const RunContext& context);

}  // namespace weir
