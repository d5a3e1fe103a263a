// The report of results, traces and other documents, for `weir report` and for the end of `weir run P0`.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "trace/intervals.h"

namespace weir::cli {

struct ReportRequest {
  std::vector<std::string> paths;
  std::string title;
  std::string baseline = {}, history = {};
  std::size_t max_spans = 2'000'000;
  std::vector<std::string> collectives = {};  // patterns for kernels that communicate
  std::optional<TimeInterval> window = {};    // of traces, as in AnalyzeOptions
  const std::atomic<bool>* stop = nullptr;    // ends it early
  bool is_quiet = true;                       // shows no progress
  std::vector<std::string> machines = {};     // of the history; none: all
};

// Why this program cannot write HTML; empty where it can.
std::string why_no_page();

struct MadeReport {
  Json document;            // weir.report/2
  bool is_complete = true;  // every path that was named can be shown; those found in folders do not count
};

// Empty where it was stopped. Prints unusable files to stderr, and rejects if nothing is usable.
std::optional<MadeReport> report_document(const ReportRequest& request);
// The HTML page of such a document.
std::string report_html(const Json& document);

// The first findings of a document for a terminal, with or without advice.
std::string findings_text(const Json& document, std::size_t most, bool has_advice);

}  // namespace weir::cli
