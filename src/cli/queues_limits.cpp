// weir queues limits: how much a device accepts before something waits.

#include <algorithm>

#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "lab/queues/limits.h"
#include "lab/queues/queue_map.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct QueuesLimitsFlags {
  QueuesFlags queues;
  std::string streams = "160";
  std::string launches = "4096";

  void add_to(CommandSyntax syntax) {
    syntax.add("--streams N", streams, "most kernels at the same time to try");
    syntax.add("--launches N", launches, "most launches behind a held kernel to try");
    queues.add_to(syntax);
  }
};

int execute_queues_limits(const QueuesLimitsFlags& flags) {
  LimitsRequest request;
  request.streams = one_count("--streams", flags.streams, 2, 1000);
  request.launches = one_count("--launches", flags.launches, 1, 100'000);
  flags.queues.check_output();
  const auto device = flags.queues.open(std::max(request.streams, probed_streams(0)));
  ProgressLine progress(flags.queues.is_quiet);
  request.progress = [&](std::string_view phase, int done, int total) { progress.show(phase, done, total); };
  const Json document = measure_limits(*device, request, run_context());
  progress.clear();
  flags.queues.deliver(document, describe_limits(document));
  return 0;
}

}  // namespace

CliCommand queues_limits() {
  return command("limits", "queue depth, resident kernels, copy engines, priority levels", execute_queues_limits);
}

}  // namespace weir::cli
