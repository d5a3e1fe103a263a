#include "lab/preempt/stage.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "lab/preempt/document.h"
#include "run/children.h"
#include "run/line_process.h"

namespace weir::preempt {
namespace {

// Rarely, so that the parent does not take a core from the measurement.
constexpr std::int64_t kReportNs = 1'000'000'000;
constexpr std::int64_t kSilenceNs = 120'000'000'000;  // for a child to open its device and warm up

std::optional<Observation> observation_in(const Json& line) {
  if (text_of(line, "event") != "observed" || !line.contains("observation")) return std::nullopt;
  return observation_from(line["observation"], "the report of a child process");
}

const Mechanism& plain() { return mechanism_named("none"); }

}  // namespace

Stage::Stage(std::string device, DeviceOptions options, const std::atomic<bool>& stop)
    : name_(std::move(device)), options_(std::move(options)), stop_(stop), info_(usual().info()) {
  if (!info_.runs())
    reject(fmt::format("--device {}: it runs nothing, so nobody waits there", name_),
           "Use --device cpu, sim or a GPU.");
}

Device& Stage::usual() {
  if (!device_ || opened_as_ != nullptr) {
    device_.reset();
    device_ = open_able(name_, options_);
    opened_as_ = nullptr;
  }
  return *device_;
}

Device& Stage::opened_for(const Mechanism& mechanism) {
  if (mechanism.device_options == nullptr) return usual();
  if (!device_ || opened_as_ != &mechanism) {
    device_.reset();
    opened_as_ = &mechanism;
    device_ = open_able(child_device(info_, name_), mechanism.device_options(options_));
  }
  return *device_;
}

Observation Stage::alone(const ExperimentPlan& plan, const Progress& progress) {
  return plain().observe({&usual(), &plan, progress}, nullptr);
}

Observation Stage::undisturbed(ExperimentPlan plan, const Victim& victim, const Progress& progress) {
  plan.requests = 0;
  return plain().observe({&usual(), &plan, progress}, &victim);
}

Observation Stage::observe(const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim,
                           const Progress& progress) {
  if (mechanism.is_between_processes) return observe_between(mechanism, plan, victim, progress);
  // Drivers read the number of queues once, from a variable.
  const bool needs_process = mechanism.device_options != nullptr && !info_.queue_variable.empty() &&
                             mechanism.device_options(options_).hardware_queues != options_.hardware_queues;
  if (needs_process) return observe_in_child(mechanism, plan, victim, progress);
  return mechanism.observe({&opened_for(mechanism), &plan, progress}, &victim);
}

Json Stage::request(const char* task, const Mechanism& mechanism, const ExperimentPlan& plan,
                    const Victim& victim) const {
  Json request = Json::object();
  request["task"] = task;
  request["mechanism"] = mechanism.name;
  request["device"] = child_device(info_, name_);
  request["sim"] = Json::array();
  for (const auto& [setting, value] : options_.sim) request["sim"].push_back(setting + "=" + value);
  request["hardware_queues"] = options_.hardware_queues;
  request["plan"] = to_json(plan);
  request["victim"] = to_json(victim);
  return request;
}

Observation Stage::observe_in_child(const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim,
                                    const Progress& progress) {
  device_.reset();  // gives the child the device to itself
  const int queues = mechanism.device_options(options_).hardware_queues;
  LineProcess child({own_binary().string(), "preempt", "--child"}, request("observe", mechanism, plan, victim),
                    kSilenceNs, {{info_.queue_variable, std::to_string(queues)}});
  std::optional<Observation> seen;
  const LineProcess::End end = child.follow(stop_, [&](const Json& line) {
    if (text_of(line, "event") == "progress" && progress)
      progress("requests", line.value("done", 0), line.value("of", plan.requests));
    if (auto found = observation_in(line)) seen = std::move(found);
  });
  if (end.how == LineProcess::How::interrupted) return {};
  if (!end.words.empty()) fail(end.words);
  if (!seen) fail("a child process ended without a result");
  return std::move(*seen);
}

Observation Stage::observe_between(const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim,
                                   const Progress& progress) {
  Device& device = usual();
  LineProcess child({own_binary().string(), "preempt", "--child"}, request("victim", mechanism, plan, victim),
                    kSilenceNs);
  std::optional<Observation> ours, theirs;
  const LineProcess::End end = child.follow(stop_, [&](const Json& line) {
    if (text_of(line, "event") == "running" && !ours) {
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

void run_preempt_child(const std::string& file, DeviceOptions options, const std::atomic<bool>& stop) {
  const Json request = read_json(file);
  const auto word = [&](const char* key) {
    const auto found = request.is_object() ? request.find(key) : request.end();
    if (!request.is_object() || found == request.end() || !found->is_string())
      reject(fmt::format("--child {}: not a request of weir preempt", file));
    return found->get<std::string>();
  };
  const auto part = [&](const char* key) -> const Json& {
    if (!request.contains(key)) reject(fmt::format("--child {}: not a request of weir preempt", file));
    return request[key];
  };
  const std::string task = word("task");
  const Mechanism& mechanism = mechanism_named(word("mechanism"));
  const ExperimentPlan plan = plan_from(part("plan"), file);
  const Victim victim = victim_from(part("victim"), file);
  for (const Json& setting : part("sim"))
    if (setting.is_string()) options.sim.push_back(parse_assignment("--sim", setting.get<std::string>()));
  if (const Json& queues = part("hardware_queues"); queues.is_number()) options.hardware_queues = queues.get<int>();
  const ToParent parent;
  const bool is_victim = task == "victim";
  if (!is_victim && mechanism.device_options != nullptr) options = mechanism.device_options(options);
  const std::unique_ptr<Device> device = open_able(word("device"), options);

  Experiment experiment{device.get(), &plan, {}};
  Observation seen;
  if (is_victim) {
    bool is_reported = false;
    seen = run_victim(experiment, victim, [&] {
      if (!std::exchange(is_reported, true)) parent.send({{"event", "running"}});
      return stop.load(std::memory_order_relaxed);
    });
  } else {
    std::int64_t reported_ns = now_ns();
    experiment.progress = [&](std::string_view, int done, int of) {
      if (now_ns() - reported_ns > kReportNs) {
        reported_ns = now_ns();
        parent.send({{"event", "progress"}, {"done", done}, {"of", of}});
      }
      return !stop.load(std::memory_order_relaxed);
    };
    seen = mechanism.observe(experiment, &victim);
  }
  parent.send({{"event", "observed"}, {"observation", to_json(seen)}});
}

}  // namespace weir::preempt
