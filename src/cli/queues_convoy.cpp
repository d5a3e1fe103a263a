// weir queues convoy: small kernels alone, beside large ones on other queues, and behind them on one. Queue counts
// differ between the cases, so each is a separate process: this command again, with --case.

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "cli/ranks.h"
#include "lab/queues/convoy.h"
#include "lab/queues/queues_document.h"
#include "report/text/documents.h"
#include "run/children.h"

namespace weir::cli {
namespace {

struct QueuesConvoyFlags {
  QueuesFlags queues;
  std::string streams = "8", iterations = "100", large = "500us", small = "5us", large_blocks;
  std::string which;  // in a child: the case to measure

  void add_to(CommandSyntax syntax) {
    syntax.add("--streams N", streams, "streams; half of them have large kernels");
    syntax.add("--iterations N", iterations, "rounds of each case");
    syntax.add("--large-time DURATION", large, "duration of a large kernel");
    syntax.add("--small-time DURATION", small, "duration of a small kernel");
    syntax.add("--large-blocks N", large_blocks, "blocks of a large kernel (default: together half of the device)");
    syntax.add("--case", which).hidden();  // for Weir's own children
    queues.add_to(syntax);
  }
};

ConvoyRequest request_of(const QueuesConvoyFlags& flags) {
  ConvoyRequest request;
  request.streams = static_cast<int>(number_within("--streams", flags.streams, 2, kMaxStreams));
  request.iterations = static_cast<int>(number_within("--iterations", flags.iterations, 1, 10'000));
  request.large_ns = duration_of("--large-time", flags.large, 1'000, 100'000'000);
  request.small_ns = duration_of("--small-time", flags.small, 1'000, 100'000'000);
  if (request.small_ns >= request.large_ns)
    reject(fmt::format("--small-time {}: not shorter than --large-time {}", flags.small, flags.large));
  if (!flags.large_blocks.empty())
    request.large_blocks = static_cast<int>(number_within("--large-blocks", flags.large_blocks, 1, 1'000'000));
  return request;
}

// In a child: measures one case on the device as it is.
int measure_convoy_case(const QueuesConvoyFlags& flags, ConvoyRequest request) {
  const auto which = convoy_case_named(flags.which);
  if (!which) reject(fmt::format("--case {}: unknown case", flags.which), "Use alone, beside or behind.");
  request.which = *which;
  const auto device = flags.queues.open(request.streams);
  const DeviceInfo info = device->info();
  Json json = to_json(request, measure_convoy(*device, request));
  json["seen_queues"] = info.hardware_queues.value ? Json(*info.hardware_queues.value) : Json(nullptr);
  json["variables"] = run_context().environment["variables"];
  flags.queues.deliver(json, json.dump(2) + "\n");
  return 0;
}

// Empty where it was interrupted.
std::optional<Json> run_case(const QueuesConvoyFlags& flags, const ConvoyRequest& request, const std::string& device,
                             const QueueSetting& setting, ConvoyCase which, int queues) {
  ChildRequest child;
  child.arguments = {"queues",
                     "convoy",
                     fmt::format("--case={}", name_of(which)),
                     fmt::format("--device={}", device),
                     fmt::format("--streams={}", request.streams),
                     fmt::format("--iterations={}", request.iterations),
                     "--large-time=" + flags.large,
                     "--small-time=" + flags.small};
  if (request.large_blocks > 0) child.arguments.push_back(fmt::format("--large-blocks={}", request.large_blocks));
  flags.queues.pass_on(child.arguments);
  setting.apply(queues, child);
  std::optional<Json> json = child_document(child, catch_interrupts());
  if (!json) return std::nullopt;
  const Json& seen = (*json)["seen_queues"];
  const bool is_believed =
      seen.is_null()
          ? !setting.variable.empty() && (*json)["variables"].value(setting.variable, "") == std::to_string(queues)
          : seen == queues;
  if (!is_believed)
    fail(fmt::format("convoy, {}: asked for {} hardware queues ({}), its process saw {}", name_of(which), queues,
                     setting.text(queues), seen.dump()),
         "Does something else set it, such as a wrapper script?");
  json->erase("variables");
  (*json)["queues"] = queues;
  (*json)["setting"] = setting.text(queues);
  return json;
}

int execute_queues_convoy(const QueuesConvoyFlags& flags) {
  if (job_ranks().count > 1)
    reject("queues convoy: this job has several ranks", "Start it as one process, without mpirun or srun.");
  const ConvoyRequest request = request_of(flags);
  flags.queues.check_output();
  if (!flags.which.empty()) return measure_convoy_case(flags, request);
  if (!flags.queues.hardware_queues.empty())
    reject(fmt::format("--hw-queues {}: convoy chooses the counts itself", flags.queues.hardware_queues),
           "Leave it out: one queue for `behind`, a queue for each stream otherwise.");
  // Closed again before the first child, so that the child has the device to itself.
  const DeviceInfo info = flags.queues.open(request.streams)->info();
  const QueueSetting setting = queue_setting(info);
  if (request.streams > setting.most)
    reject(fmt::format("--streams {}: '{}' has at most {} queues, and each stream needs its own", request.streams,
                       info.name, setting.most),
           fmt::format("Use --streams {} or fewer.", setting.most));
  const int many = std::min(setting.most, std::max(32, request.streams));

  Json document = queues_document("convoy", info, run_context());
  Json cases = Json::object();
  ProgressLine line(flags.queues.is_quiet);
  int done = 0;
  for (const ConvoyCase which : {ConvoyCase::alone, ConvoyCase::beside, ConvoyCase::behind}) {
    line.show(name_of(which), done++, 3);
    const int queues = which == ConvoyCase::behind ? 1 : many;
    std::optional<Json> json =
        run_case(flags, request, child_device(info, flags.queues.device), setting, which, queues);
    if (!json) return kExitInterrupted;
    cases[std::string(name_of(which))] = std::move(*json);
  }
  line.clear();
  document["convoy"] = {
      {"iterations", request.iterations},
      {"large",
       {{"ns", request.large_ns},
        {"blocks", cases["beside"]["large_blocks"]},
        {"streams", request.large_streams()},
        {"per_stream", 2}}},
      {"small", {{"ns", request.small_ns}, {"blocks", 1}, {"streams", request.small_streams()}, {"per_stream", 1}}},
      {"cases", std::move(cases)}};
  judge_convoy(document);
  flags.queues.deliver(document, describe_queues_convoy(document));
  return 0;
}

}  // namespace

CliCommand queues_convoy() {
  return command("convoy", "latency of small kernels alone, beside and behind large ones", execute_queues_convoy);
}

}  // namespace weir::cli
