// weir queues switch: what hops between streams cost and what queues save, for one queue count or several.
#include "report/queues_switch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "run/queues_switch.h"

namespace weir::cli {
namespace {

struct Flags {
  QueuesFlags queues;
  std::string streams = "1..64:x2";
  std::string hops = "200";
  std::string repetitions = "5";
  std::string kernel_us = "10";
};

SwitchSettings settings_of(const Flags& flags) {
  SwitchSettings settings;
  settings.streams = parse_counts("--streams", flags.streams, 1, kMaxStreams);
  settings.request.hops = one_count("--hops", flags.hops, 2, 2000);
  settings.request.repetitions = one_count("--repetitions", flags.repetitions, 1, 1000);
  const auto kernel_us = parse_number(flags.kernel_us);
  if (!kernel_us || !(*kernel_us > 0) || *kernel_us > 1e6)
    reject(fmt::format("--kernel-us {}: not a duration", flags.kernel_us), "Use microseconds: 10, 0.5.");
  settings.kernel_ns = *kernel_us * 1000;
  if (settings.streams.back() > settings.request.hops)
    reject(fmt::format("--hops {}: a chain of that many kernels cannot visit {} streams", flags.hops,
                       settings.streams.back()),
           "Use more --hops or fewer --streams.");
  return settings;
}

// One setting in this process. Drivers read theirs once, at their start: there `queues` can only be checked.
Json measure_here(const Flags& flags, const std::string& queues, SwitchSettings settings) {
  QueuesFlags setting = flags.queues;
  setting.hardware_queues = queues;
  const auto device = setting.open(settings.streams.back());
  const DeviceInfo info = device->info();
  if (info.is_gpu && !info.is_virtual && !queues.empty() && info.hardware_queues.value != parse_integer(queues))
    reject(fmt::format("--hw-queues {}: device '{}' has {} in this process, and its driver reads the count once",
                       queues, info.name,
                       info.hardware_queues.value ? std::to_string(*info.hardware_queues.value) : "an unknown number"),
           fmt::format("Set CUDA_DEVICE_MAX_CONNECTIONS={} (GPU_MAX_HW_QUEUES on AMD) before you start weir.", queues));
  ProgressLine progress(flags.queues.is_quiet);
  settings.progress = [&](std::string_view phase, int done, int total) {
    progress.show(queues.empty() ? std::string(phase) : fmt::format("{} queues, {}", queues, phase), done, total);
  };
  return measure_switch(*device, settings, run_context());
}

int execute(const Flags& flags) {
  const SwitchSettings settings = settings_of(flags);
  std::vector<std::string> counts = {""};  // as the device has them
  if (!flags.queues.hardware_queues.empty()) {
    counts.clear();
    for (const int count : parse_counts("--hw-queues", flags.queues.hardware_queues, 1, kMaxStreams))
      counts.push_back(std::to_string(count));
  }
  flags.queues.check_output();
  std::vector<Json> documents;
  for (const std::string& count : counts) documents.push_back(measure_here(flags, count, settings));
  const Json document = merge_switch(documents, settings.kernel_ns);
  flags.queues.deliver(document, describe_switch(document));
  return 0;
}

}  // namespace

CliCommand queues_switch() {
  return {"switch", "what a hop to another stream costs, and what more queues save",
          [](CLI::App& app) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            app.add_option("--streams", flags->streams, "stream counts: 8, 1,2,4 or 1..64:x2")->capture_default_str();
            app.add_option("--hops", flags->hops, "kernels of the chain")->capture_default_str();
            app.add_option("--repetitions", flags->repetitions, "of each chain")->capture_default_str();
            app.add_option("--kernel-us", flags->kernel_us, "duration of kernels that the advice is for")
                ->capture_default_str();
            flags->queues.add_to(app);
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
