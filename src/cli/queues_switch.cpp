// weir queues switch: what hops between streams cost and what more queues save, for one queue count or several.
#include "lab/queues/queues_switch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "report/text/documents.h"
#include "run/children.h"

namespace weir::cli {
namespace {

struct QueuesSwitchFlags {
  QueuesFlags queues;
  std::string streams = "1..64:x2";
  std::string hops = "200";
  std::string repetitions = "5";
  std::string kernel = "10us";

  void add_to(CommandSyntax syntax) {
    syntax.add("--streams N", streams, "stream counts: 8, 1,2,4 or 1..64:x2");
    syntax.add("--hops N", hops, "kernels of the chain");
    syntax.add("--iterations N", repetitions, "of each chain");
    syntax.add("--kernel-time DURATION", kernel, "duration of kernels that the advice is for");
    queues.add_to(syntax);
  }
};

SwitchSettings settings_of(const QueuesSwitchFlags& flags) {
  SwitchSettings settings;
  settings.streams = parse_counts("--streams", flags.streams, 1, kMaxStreams);
  settings.request.hops = one_count("--hops", flags.hops, 2, 2000);
  settings.request.repetitions = one_count("--iterations", flags.repetitions, 1, 1000);
  settings.kernel_ns = static_cast<double>(duration_of("--kernel-time", flags.kernel, 1, 1'000'000'000));
  if (settings.streams.back() > settings.request.hops)
    reject(fmt::format("--hops {}: a chain of that many kernels cannot visit {} streams", flags.hops,
                       settings.streams.back()),
           "Use more --hops or fewer --streams.");
  return settings;
}

Json measure_here(const QueuesSwitchFlags& flags, const std::string& queues, SwitchSettings settings) {
  QueuesFlags setting = flags.queues;
  setting.hardware_queues = queues;
  const auto device = setting.open(settings.streams.back());
  ProgressLine progress(flags.queues.is_quiet);
  settings.progress = [&](std::string_view phase, int done, int total) {
    progress.show(queues.empty() ? std::string(phase) : fmt::format("{} queues, {}", queues, phase), done, total);
  };
  return measure_switch(*device, settings, run_context());
}

// Empty where it was interrupted.
std::optional<Json> measure_in_child(const QueuesSwitchFlags& flags, const DeviceInfo& info, int queues) {
  ChildRequest child;
  child.arguments = {"queues",
                     "switch",
                     "--device=" + info.name,
                     "--streams=" + flags.streams,
                     "--hops=" + flags.hops,
                     "--iterations=" + flags.repetitions,
                     "--kernel-time=" + flags.kernel};
  flags.queues.pass_on(child.arguments);
  queue_setting(info).apply(queues, child);
  auto document = child_document(child, catch_interrupts());
  if (!document) return document;
  const Json& seen = (*document)["switch"]["settings"][0]["hardware_queues"];
  if (seen != Json(queues))
    fail(fmt::format("--hw-queues {}: the process that was given this count saw {}", queues, seen.dump()),
         "The driver does not take this count.");
  return document;
}

// One document per queue count; fewer where it was interrupted.
std::vector<Json> measure_all(const QueuesSwitchFlags& flags, const SwitchSettings& settings,
                              const std::vector<int>& counts) {
  std::vector<Json> documents;
  if (counts.empty()) {
    documents.push_back(measure_here(flags, "", settings));
    return documents;
  }
  QueuesFlags first = flags.queues;
  first.hardware_queues = std::to_string(counts[0]);
  const DeviceInfo info = first.open(settings.streams.back())->info();
  const QueueSetting setting = queue_setting(info);
  if (counts.back() > setting.most)
    reject(fmt::format("--hw-queues {}: device '{}' takes 1 to {}", counts.back(), info.name, setting.most));
  ProgressLine progress(flags.queues.is_quiet);
  for (const int count : counts) {
    // Where the count is a flag of Weir, a device in this process can have it.
    if (setting.variable.empty()) {
      documents.push_back(measure_here(flags, std::to_string(count), settings));
      continue;
    }
    progress.show(setting.text(count), static_cast<int>(documents.size()), static_cast<int>(counts.size()));
    auto document = measure_in_child(flags, info, count);
    if (!document) break;
    documents.push_back(std::move(*document));
  }
  return documents;
}

int execute_queues_switch(const QueuesSwitchFlags& flags) {
  const SwitchSettings settings = settings_of(flags);
  std::vector<int> counts;  // empty: the device's own count
  if (!flags.queues.hardware_queues.empty())
    counts = parse_counts("--hw-queues", flags.queues.hardware_queues, 1, kMaxStreams);
  flags.queues.check_output();
  const std::vector<Json> documents = measure_all(flags, settings, counts);
  const bool is_stopped = documents.size() < counts.size();
  if (documents.empty()) return kExitInterrupted;
  const Json document = merge_switch(documents, settings.kernel_ns, run_context());
  flags.queues.deliver(document, describe_switch(document));
  return is_stopped ? kExitInterrupted : 0;
}

}  // namespace

CliCommand queues_switch() {
  return command("switch", "what a hop to another stream costs, and what more queues save", execute_queues_switch);
}

}  // namespace weir::cli
