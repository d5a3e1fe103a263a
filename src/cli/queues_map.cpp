// weir queues map: which stream uses which hardware queue.

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "cli/run_flags.h"
#include "lab/queues/queue_map.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct QueuesMapFlags {
  QueuesFlags shared;
  std::string streams = "40";
  std::string confidence = "99.9%";
  WorkloadFlags workload;

  void add_to(CommandSyntax syntax) {
    syntax.add("workload NAME", workload.name, "a workload whose timeline is to be read as well");
    syntax.add("--file PATH", workload.file, "the same, from a YAML file (docs/yaml.md)");
    syntax.add("--streams N", streams, "streams to map");
    syntax.add("--confidence PERCENT", confidence, "level at which a verdict is certain");
    shared.add_to(syntax);
  }
};

int execute_queues_map(const QueuesMapFlags& flags) {
  MapRequest request;
  request.streams = one_count("--streams", flags.streams, 2, 1024);
  request.confidence = share_of("--confidence", flags.confidence, 0.999999);
  if (request.confidence < 0.5)
    reject(fmt::format("--confidence {}: not a level", flags.confidence), "Use 50% to 99.9999%.");
  if (!flags.workload.name.empty() || !flags.workload.file.empty()) {
    flags.workload.choose(request.step);
    const StreamRange& range = workload_of(request.step).streams;
    request.step.streams = std::clamp(request.streams, range.min, range.max);
  }
  flags.shared.check_output();
  const auto device = flags.shared.open(probed_streams(request.streams));
  RunControl control;
  control.stop = &catch_interrupts();
  ProgressLine line(flags.shared.is_quiet);
  control.progress = [&](std::string_view phase, int done, int total) { line.show(phase, done, total); };
  const Json document = map_queues(*device, request, run_context(), control);
  line.clear();
  flags.shared.deliver(document, describe_queue_map(document));
  if (control.is_stopped()) return kExitInterrupted;
  return document["map"]["probe"]["queues"].is_null() ? 1 : 0;
}

}  // namespace

CliCommand queues_map() { return command("map", "which stream sits on which hardware queue", execute_queues_map); }

}  // namespace weir::cli
