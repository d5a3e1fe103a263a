// How traces are read and which part of them counts: flags that `weir analyze` and `weir compare` share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/document_output.h"
#include "run/compare.h"
#include "trace/import/import.h"
#include "trace/intervals.h"

namespace weir::cli {

struct TraceFlags {
  std::string input_format, memory, window = "steady";
  std::vector<std::string> collectives;
  bool has_operations = false;

  void add_to(CommandSyntax syntax);
  // Reading may take long: Ctrl-C ends it with Interrupted.
  ImportOptions import_options() const;
};

// The value of --window: "steady" (empty), "all", "1.5s..3s", "1.5s..", "..3s"; as AnalyzeOptions::window.
std::optional<TimeInterval> window_named(const std::string& text);
inline constexpr const char* kWindowHelp =
    "the part of a trace: steady (without the program's start-up, if the trace shows one), all, or BEGIN..END since "
    "the "
    "first command, e.g. 1.5s..3s";

// "rank0.json", "rank0.json and 7 more"
std::string title_of(const std::vector<ImportedFile>& files);

// Compares the window of both and prints that. Returns the exit code.
int print_trace_comparison(const ImportedTrace& baseline, const ImportedTrace& test,
                           const std::optional<TimeInterval>& window, const CompareOptions& options, bool is_strict,
                           const DocumentOutput& output);

}  // namespace weir::cli
