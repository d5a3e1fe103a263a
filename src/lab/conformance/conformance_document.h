// The results of `weir conformance` as a document (docs/schema/weir.conformance.2.json). Runs nothing.
#pragma once

#include <string>
#include <vector>

#include "lab/conformance/conformance.h"
#include "run/runner.h"

namespace weir {

// The request and its results, device by device.
struct ConformanceRun {
  std::vector<std::string> filters;
  std::vector<conformance::ConformanceResults> reports;
  struct NotOpened {
    std::string device, reason;
  };
  std::vector<NotOpened> not_opened;  // devices that could not be opened, if all were requested
  bool is_interrupted = false;
};

Json conformance_document(const ConformanceRun& run, const RunContext& context);

}  // namespace weir
