// weir amd ftrace: what KFD did in a kernel trace, how long it took, and which of that the trace proves.
#include <fmt/format.h>

#include <algorithm>

#include "amd/ftrace/read.h"
#include "amd/ftrace/summary.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/document_output.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"
#include "trace/import/byte_source.h"

namespace weir::cli {
namespace {

struct AmdFtraceFlags : DocumentOutput {
  std::string file, clock;
  bool is_full = false;

  void add_to(CommandSyntax syntax) {
    syntax
        .add("file FILE", file,
             "text of /sys/kernel/tracing/trace or of trace-cmd report; .gz too. function, function_graph, "
             "events, probes and texts of trace_printk are read")
        .required();
    syntax.add("--trace-clock NAME", clock, "the clock that was set (trace_clock); the text does not say");
    syntax.add("--full", is_full, "all processes and creates");
    DocumentOutput::add_to(syntax);
  }
};

void check_clock(const std::string& clock) {
  static constexpr const char* kClocks[] = {"local", "global",   "counter", "uptime", "perf",
                                            "mono",  "mono_raw", "boot",    "tai",    "x86-tsc"};
  if (clock.empty() || std::find(std::begin(kClocks), std::end(kClocks), clock) != std::end(kClocks)) return;
  reject(fmt::format("--trace-clock {}: not a clock of ftrace", clock),
         "Use the name in brackets in /sys/kernel/tracing/trace_clock, e.g. local or mono.");
}

int execute_amd_ftrace(const AmdFtraceFlags& flags) {
  check_clock(flags.clock);
  flags.check_output();
  const std::atomic<bool>& stop = catch_interrupts();
  ftrace::FtraceOptions options;
  options.name = flags.file;
  options.progress = [&] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  ftrace::KfdSummary summary;
  ftrace::FtraceCounters counters;
  try {
    const auto source = open_bytes(flags.file);
    counters = ftrace::read_ftrace(*source, summary, options);
  } catch (const Interrupted&) {
    return kExitInterrupted;
  }
  ftrace::require_kfd(counters, flags.file);
  const Json document =
      ftrace::ftrace_document(summary, counters, {flags.file, flags.clock, run_context().command_line});
  const TextReport report = ftrace_report(document, flags.is_full);
  flags.print(document, report);
  return 0;
}

}  // namespace

CliCommand amd_ftrace() {
  return command("ftrace", "what KFD did with queues in a kernel trace, and how long it took", execute_amd_ftrace);
}

}  // namespace weir::cli
