#include "lab/fleet/probe/probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "lab/fleet/probe/device_probe.h"
#include "lab/fleet/probe/exchange.h"
#include "lab/fleet/probe/worker.h"

namespace weir::fleet {
namespace {

// A device with its thread. Shared with the work that runs there, which may outlive the probe.
struct Examined {
  std::shared_ptr<DeviceProbe> probe;
  std::unique_ptr<Worker> worker = std::make_unique<Worker>();
  NodeDevice last;  // as after the last work that ended
};

class NodeProbe {
 public:
  explicit NodeProbe(const ProbeOptions& options)
      : options_(options), begun_ns_(options.now_ns()), deadline_ns_(weir::now_ns() + options.patience_ns) {
    for (const std::string& name : options.devices)
      examined_.push_back({.probe = std::make_shared<DeviceProbe>(name, options), .last = {}});
    for (Examined& each : examined_) each.last = each.probe->report();
  }

  ProbedDevices run() {
    show("preparing", 0, 1);
    together("preparing", [](DeviceProbe& probe) { probe.open(); });
    const std::int64_t prepared_ns = options_.now_ns() - begun_ns_;
    const std::int64_t warm_ns = round(0);
    // Checking initialises the same buffers as preparing did, and compares them.
    const std::int64_t reserve_ns = prepared_ns + prepared_ns / 2;
    std::int64_t longest_ns = warm_ns;
    while (probed_.rounds < options_.most_rounds && !is_stopped()) {
      const bool fits = options_.now_ns() - begun_ns_ + longest_ns + reserve_ns <= options_.budget_ns;
      if (!fits && probed_.rounds >= options_.fewest_rounds) break;
      longest_ns = std::max(longest_ns, round(++probed_.rounds));
    }
    if (!is_stopped()) exchange();
    if (!is_stopped()) {
      show("checking", 1, 1);
      together("checking", [](DeviceProbe& probe) { probe.check(); });
    }
    for (Examined& each : examined_) {
      probed_.is_stuck = probed_.is_stuck || each.worker->is_stuck();
      probed_.devices.push_back(std::move(each.last));
    }
    probed_.is_interrupted = is_stopped();
    return std::move(probed_);
  }

 private:
  bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  void show(std::string_view stage, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(stage, static_cast<int>(done), static_cast<int>(total));
  }

  template <class Work>
  void start(Examined& each, Work work) {
    each.worker->start([probe = each.probe, work] { work(*probe); });
  }
  void wait(Examined& each, std::string_view stage) {
    if (each.worker->is_stuck()) return;
    if (each.worker->wait_until(deadline_ns_)) {
      each.last = each.probe->report();
    } else {
      each.last.failure = fmt::format("it does not answer: {} had not ended {} after the probe began", stage,
                                      format_duration(static_cast<double>(options_.patience_ns)));
    }
  }
  template <class Work>
  void together(std::string_view stage, Work work) {
    for (Examined& each : examined_)
      if (!each.worker->is_stuck()) start(each, work);
    for (Examined& each : examined_) wait(each, stage);
  }

  // The time that it took. Round 0 warms up.
  std::int64_t round(std::size_t number) {
    const std::int64_t begun_ns = options_.now_ns();
    const bool is_warm_up = number == 0;
    show(is_warm_up ? "warming up" : "round", number, options_.most_rounds);
    for (Examined& each : examined_) {
      if (each.worker->is_stuck() || is_stopped()) continue;
      start(each, [is_warm_up](DeviceProbe& probe) { probe.sample(false, is_warm_up); });
      wait(each, "measuring launches and copies");
    }
    if (!is_stopped())
      together("measuring under load", [is_warm_up](DeviceProbe& probe) { probe.sample(true, is_warm_up); });
    return options_.now_ns() - begun_ns;
  }

  // Between the devices of the node.
  void exchange() {
    std::vector<Examined*> able;
    for (Examined& each : examined_)
      if (!each.worker->is_stuck() && each.probe->can_go_on()) able.push_back(&each);
    std::vector<std::string> names;
    for (const Examined* each : able) names.push_back(each->last.name);
    const auto exchange = std::make_shared<DeviceExchange>(names, options_.open);
    show("between devices", 1, 1);
    for (std::size_t i = 0; i < able.size(); ++i)
      start(*able[i], [exchange, i](DeviceProbe& probe) { probe.add(exchange->measure(i)); });
    for (Examined* each : able) wait(*each, "the exchange between devices");
  }

  const ProbeOptions& options_;
  std::int64_t begun_ns_, deadline_ns_;
  std::vector<Examined> examined_;
  ProbedDevices probed_;
};

}  // namespace

ProbedDevices probe_devices(const ProbeOptions& options) { return NodeProbe(options).run(); }

}  // namespace weir::fleet
