#include "cli/preempt_stage.h"

#include <fmt/format.h>

#include <csignal>
#include <optional>

#include "base/error.h"
#include "cli/run_flags.h"
#include "lab/preempt/document.h"
#include "run/children.h"
#include "run/line_process.h"

namespace weir::cli {
namespace {

using preempt::Experiment;
using preempt::Mechanism;
using preempt::Observation;
using preempt::Plan;
using preempt::Progress;
using preempt::Victim;

constexpr std::int64_t kSilenceNs = 120'000'000'000;  // for a child to open its device and warm up

std::string event_of(const Json& line) {
  const auto found = line.find("event");
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<Observation> observation_in(const Json& line) {
  if (event_of(line) != "observed" || !line.contains("observation")) return std::nullopt;
  return preempt::observation_from(line["observation"], "what a child said");
}

const Mechanism& plain() { return preempt::mechanism_named("none"); }

}  // namespace

PreemptStage::PreemptStage(const PreemptFlags& flags)
    : flags_(flags), options_(device_options(flags.hardware_queues, flags.sim)), info_(usual().info()) {
  if (!info_.runs())
    reject(fmt::format("--device {}: it runs nothing, so nobody waits there", flags.device),
           "Use --device cpu, sim or a GPU.");
}

Device& PreemptStage::usual() {
  if (!device_ || opened_as_ != nullptr) {
    device_.reset();
    device_ = open_able(flags_.device, options_);
    opened_as_ = nullptr;
  }
  return *device_;
}

Device& PreemptStage::opened_for(const Mechanism& mechanism) {
  if (mechanism.device_options == nullptr) return usual();
  if (!device_ || opened_as_ != &mechanism) {
    device_.reset();
    opened_as_ = &mechanism;
    device_ = open_able(child_device(info_, flags_.device), mechanism.device_options(options_));
  }
  return *device_;
}

Observation PreemptStage::alone(const Plan& plan, const Progress& progress) {
  return plain().observe({&usual(), &plan, progress}, nullptr);
}

Observation PreemptStage::undisturbed(Plan plan, const Victim& victim, const Progress& progress) {
  plan.requests = 0;
  return plain().observe({&usual(), &plan, progress}, &victim);
}

Observation PreemptStage::observe(const Mechanism& mechanism, const Plan& plan, const Victim& victim,
                                  const Progress& progress) {
  if (mechanism.is_between_processes) return observe_between(mechanism, plan, victim, progress);
  // Drivers read the number of queues once, from a variable.
  const bool needs_process = mechanism.device_options != nullptr && !info_.queue_variable.empty() &&
                             mechanism.device_options(options_).hardware_queues != options_.hardware_queues;
  if (needs_process) return observe_in_child(mechanism, plan, victim, progress);
  return mechanism.observe({&opened_for(mechanism), &plan, progress}, &victim);
}

Json PreemptStage::request(const char* task, const Mechanism& mechanism, const Plan& plan, const Victim& victim) const {
  Json request = Json::object();
  request["task"] = task;
  request["mechanism"] = mechanism.name;
  request["device"] = child_device(info_, flags_.device);
  request["sim"] = flags_.sim;
  request["hardware_queues"] = flags_.hardware_queues;
  request["plan"] = to_json(plan);
  request["victim"] = to_json(victim);
  return request;
}

Observation PreemptStage::observe_in_child(const Mechanism& mechanism, const Plan& plan, const Victim& victim,
                                           const Progress& progress) {
  device_.reset();  // gives the child the device to itself
  const int queues = mechanism.device_options(options_).hardware_queues;
  LineProcess child({own_binary().string(), "preempt", "--child"}, request("observe", mechanism, plan, victim),
                    kSilenceNs, {{info_.queue_variable, std::to_string(queues)}});
  std::optional<Observation> seen;
  const LineProcess::End end = child.follow([&](const Json& line) {
    if (event_of(line) == "progress" && progress)
      progress("requests", line.value("done", 0), line.value("of", plan.requests));
    if (auto found = observation_in(line)) seen = std::move(found);
  });
  if (end.how == LineProcess::How::interrupted) return {};
  if (!end.words.empty()) fail(end.words);
  if (!seen) fail("a child process ended without a result");
  return std::move(*seen);
}

Observation PreemptStage::observe_between(const Mechanism& mechanism, const Plan& plan, const Victim& victim,
                                          const Progress& progress) {
  Device& device = usual();
  LineProcess child({own_binary().string(), "preempt", "--child"}, request("victim", mechanism, plan, victim),
                    kSilenceNs);
  std::optional<Observation> ours, theirs;
  const LineProcess::End end = child.follow([&](const Json& line) {
    if (event_of(line) == "running" && !ours) {
      ours = mechanism.observe({&device, &plan, progress}, nullptr);
      child.ask_to_end();
    }
    if (auto found = observation_in(line)) theirs = std::move(found);
  });
  // When interrupted, the child ends without a report, but the requests observed so far count.
  if (ours && end.how == LineProcess::How::interrupted) return std::move(*ours);
  if (end.how == LineProcess::How::interrupted) return {};
  if (!end.words.empty()) fail("the victim's process: " + end.words);
  if (!ours || !theirs) fail("the victim's process ended without a result");
  theirs->requests = std::move(ours->requests);
  theirs->clock_error_ns = ours->clock_error_ns;
  theirs->preemptions += ours->preemptions;  // by calls of the intruder's process, if any
  theirs->suspend_ns = std::move(ours->suspend_ns);
  theirs->resume_ns = std::move(ours->resume_ns);
  return std::move(*theirs);
}

}  // namespace weir::cli
