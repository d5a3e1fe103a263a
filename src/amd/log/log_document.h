// Turns what was read from runtime logs into one JSON document (weir.amd_log/2) with the verdicts that its numbers
// support. The verdicts are its only text for people.
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

// One entry per file, and totals over all files.
Json log_document(const std::vector<SummarisedLog>& logs, const LogDocumentOptions& options = {});

// The number of streams that ever used a queue, by the queue's address.
std::map<std::uint64_t, std::uint64_t> streams_by_queue(const ProcessSummary& process);

// How long creating queues took: the first of a process, and the later ones.
struct CreationTimes {
  std::size_t created = 0;
  std::optional<std::int64_t> first_ns;
  std::size_t later = 0;
  std::int64_t min_ns = INT64_MAX, max_ns = 0;  // of the later ones
  double sum_ns = 0;
};
CreationTimes creation_times(const ProcessSummary& process);

// The main findings for a process, as sentences; each is supported by the log alone.
std::vector<std::string> log_verdicts(const ProcessSummary& process, const LogReading& reading);

}  // namespace weir::amd
