#include "cli/preempt_child.h"

#include <fmt/format.h>

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "cli/process.h"
#include "cli/run_flags.h"
#include "cli/talking_process.h"
#include "lab/preempt/document.h"

namespace weir::cli {
namespace {

using preempt::Experiment;
using preempt::Observation;

constexpr std::int64_t kTellNs = 1'000'000'000;  // rarely: our parent must not take a core from what is measured

}  // namespace

int run_preempt_child(const std::string& file) {
  const Json request = read_json(file);
  const auto word = [&](const char* key) {
    const auto found = request.is_object() ? request.find(key) : request.end();
    if (!request.is_object() || found == request.end() || !found->is_string())
      reject(fmt::format("--child {}: is no request of weir preempt", file));
    return found->get<std::string>();
  };
  const auto part = [&](const char* key) -> const Json& {
    if (!request.contains(key)) reject(fmt::format("--child {}: is no request of weir preempt", file));
    return request[key];
  };
  const std::string task = word("task");
  const preempt::Mechanism& mechanism = preempt::mechanism_named(word("mechanism"));
  const preempt::Plan plan = preempt::plan_from(part("plan"), file);
  const preempt::Victim victim = preempt::victim_from(part("victim"), file);
  std::vector<std::string> sim;
  for (const Json& setting : part("sim"))
    if (setting.is_string()) sim.push_back(setting.get<std::string>());
  const std::atomic<bool>& is_interrupted = catch_interrupts();
  const ToParent parent;
  DeviceOptions options = device_options(word("hardware_queues"), sim);
  const bool is_victim = task == "victim";
  if (!is_victim && mechanism.device_options != nullptr) options = mechanism.device_options(options);
  const std::unique_ptr<Device> device = open_able(word("device"), options);

  Experiment experiment{device.get(), &plan, {}};
  Observation seen;
  if (is_victim) {
    bool has_told = false;
    seen = preempt::run_victim(experiment, victim, [&] {
      if (!std::exchange(has_told, true)) parent.tell({{"event", "running"}});
      return is_interrupted.load(std::memory_order_relaxed);
    });
  } else {
    std::int64_t told_ns = now_ns();
    experiment.progress = [&](std::string_view, int done, int of) {
      if (now_ns() - told_ns > kTellNs) {
        told_ns = now_ns();
        parent.tell({{"event", "progress"}, {"done", done}, {"of", of}});
      }
      return !is_interrupted.load(std::memory_order_relaxed);
    };
    seen = mechanism.observe(experiment, &victim);
  }
  parent.tell({{"event", "observed"}, {"observation", to_json(seen)}});
  return 0;
}

}  // namespace weir::cli
