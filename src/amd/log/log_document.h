// What was read of runtime logs as one JSON document (weir.amd_log/1), with the verdicts that its numbers bear. Knows
// no text for people beyond those.
#pragma once

#include <string>
#include <vector>

#include "amd/log/log_reader.h"
#include "amd/log/log_summary.h"
#include "base/json.h"

namespace weir::amd {

struct SummarisedLog {
  std::string file;
  LogReading reading;
  LogSummary summary;
};

struct LogDocumentOptions {
  std::size_t top = 10;  // kernels per queue, kernels per process, calls
};

// One entry per file, and totals of all.
Json log_document(const std::vector<SummarisedLog>& logs, const LogDocumentOptions& options = {});

// What a process's numbers say first, in sentences; each is borne by the log alone.
std::vector<std::string> log_verdicts(const ProcessSummary& process, const LogReading& reading);

}  // namespace weir::amd
