// weir queues fairness: how a full device is shared.

#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "lab/queues/fairness_probe.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct QueuesFairnessFlags {
  QueuesFlags queues;
  std::string streams = "32";
  std::string repetitions = "5";
  std::string priorities = "same";

  void add_to(CommandSyntax syntax) {
    syntax.add("--streams N", streams, "number of streams");
    syntax.add("--iterations N", repetitions, "of the experiment");
    syntax.add("--priorities NAME", priorities, "same, or mixed: the device's, in turns");
    queues.add_to(syntax);
  }
};

int execute_queues_fairness(const QueuesFairnessFlags& flags) {
  FairnessRequest request;
  request.streams = one_count("--streams", flags.streams, 2, kMaxStreams);
  request.repetitions = one_count("--iterations", flags.repetitions, 1, 1000);
  if (flags.priorities != "same" && flags.priorities != "mixed")
    reject(fmt::format("--priorities {}: unknown choice", flags.priorities), "Use same or mixed.");
  request.has_mixed_priorities = flags.priorities == "mixed";
  flags.queues.check_output();
  const auto device = flags.queues.open(request.streams);
  if (const DeviceInfo info = device->info();
      request.has_mixed_priorities && info.lowest_priority == info.highest_priority)
    reject(fmt::format("--priorities mixed: device '{}' has one priority only", info.name), "Use --priorities same.");
  const Json document = measure_fairness_document(*device, request, run_context());
  flags.queues.deliver(document, describe_fairness(document));
  return 0;
}

}  // namespace

CliCommand queues_fairness() {
  return command("fairness", "who gets how much of a full device: Jain's index, starved streams",
                 execute_queues_fairness);
}

}  // namespace weir::cli
