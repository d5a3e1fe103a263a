// What was read of runtime logs as one JSON document (weir.amd_log/1), with the verdicts that its numbers bear. Knows
// no text for people beyond those.
#pragma once

#include <map>
#include <optional>
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

// How many streams ever used a queue, by its address.
std::map<std::uint64_t, std::uint64_t> streams_by_queue(const ProcessSummary& process);

// What creating queues took: the first of a process, and those after it.
struct CreationTimes {
  std::size_t created = 0;
  std::optional<std::int64_t> first_ns;
  std::size_t later = 0;
  std::int64_t least_ns = INT64_MAX, most_ns = 0;  // of those later
  double sum_ns = 0;
};
CreationTimes creation_times(const ProcessSummary& process);

// What a process's numbers say first, in sentences; each is borne by the log alone.
std::vector<std::string> log_verdicts(const ProcessSummary& process, const LogReading& reading);

}  // namespace weir::amd
