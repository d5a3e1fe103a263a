#include "lab/kernels/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace weir::bench {

Json no_energy(const std::string& reason) {
  return {{"energy_j", nullptr}, {"power_w", nullptr},  {"source", nullptr}, {"window_ns", nullptr},
          {"runs", nullptr},     {"readings", nullptr}, {"busy", nullptr},   {"reason", reason}};
}

namespace {

// Counters step every 20 to 100 ms (NVML) or every millisecond (RAPL). The window begins and ends with a step, which is
// seen only after a chunk of runs, so the window's length is uncertain by one chunk.
constexpr double kWindowNs = 1e9;
constexpr int kSteps = 10;
constexpr double kChunkNs = 10e6, kMaxChunkNs = 100e6;
// The device pauses while it is read. NVML takes some 4 ms even for the counter alone (H200, driver 580, November
// 2026), so chunks of 10 ms would fill only three quarters of the window.
constexpr double kChunkPerReading = 20;
constexpr int kMinPowers = 10;
constexpr int kMaxChunks = 100'000;  // in case the clock stands still

// Runs the kernel back to back, with a reading after each chunk.
class Load {
 public:
  Load(package::ReadyKernel& kernel, const Surroundings& surroundings, const EnergyOptions& options, bool has_counter)
      : kernel_(kernel),
        surroundings_(surroundings),
        options_(options),
        has_counter_(has_counter),
        begun_ns_(surroundings.now_ns()) {
    read();
    const double chunk_ns =
        std::clamp(kChunkPerReading * static_cast<double>(now_ns_ - begun_ns_), kChunkNs, kMaxChunkNs);
    chunk_ = static_cast<std::uint64_t>(std::clamp(chunk_ns / std::max(options.run_ns, 1.0), 1.0, 1e7));
  }

  // Returns false when time is up.
  bool step() {
    if (++chunks_ > kMaxChunks || (options_.is_stopped && options_.is_stopped())) return false;
    if (static_cast<double>(surroundings_.now_ns() - begun_ns_) > 1e9 * options_.limit_s) return false;
    busy_ns_ += kernel_.run(chunk_).device_ns;
    runs_ += chunk_;
    read();
    return true;
  }
  // Starts a new window here.
  void restart() {
    runs_ = 0;
    busy_ns_ = 0;
    opened_ns_ = now_ns_;
  }
  // The counter in joules if there is one, otherwise the power in watts.
  std::optional<double> reading() const { return reading_; }
  std::uint64_t runs() const { return runs_; }
  double window_ns() const { return static_cast<double>(now_ns_ - opened_ns_); }

  Json block(double joules, int readings, const std::string& source) const {
    const double seconds = window_ns() / 1e9;
    return {{"energy_j", joules / static_cast<double>(runs_)},
            {"power_w", number_or_null(joules / seconds)},
            {"source", source},
            {"window_ns", window_ns()},
            {"runs", runs_},
            {"readings", readings},
            {"busy", number_or_null(busy_ns_ / window_ns())},
            {"reason", nullptr}};
  }

 private:
  void read() {
    reading_ = has_counter_ ? kernel_.energy_j() : kernel_.telemetry().power_w;
    now_ns_ = surroundings_.now_ns();
  }

  package::ReadyKernel& kernel_;
  const Surroundings& surroundings_;
  const EnergyOptions& options_;
  bool has_counter_;
  std::uint64_t chunk_ = 1, runs_ = 0;
  std::int64_t begun_ns_, opened_ns_ = 0, now_ns_ = 0;
  double busy_ns_ = 0;
  int chunks_ = 0;
  std::optional<double> reading_;
};

Json by_counter(Load& load, double last, const std::string& source) {
  bool is_open = false;  // set at the first step, so that the window does not begin between two steps
  int steps = 0;
  double first = last;
  Json block = nullptr;
  while (load.step()) {
    const std::optional<double> now = load.reading();
    if (!now) return no_energy("the energy counter stopped answering");
    if (*now == last) continue;
    const bool has_wrapped = *now < last;
    last = *now;
    if (!is_open || has_wrapped) {
      is_open = true;
      first = last;
      steps = 0;
      block = nullptr;
      load.restart();
      continue;
    }
    ++steps;
    // The result up to this step, in case time runs out before the next.
    block = load.block(last - first, steps, source);
    if (load.window_ns() >= kWindowNs && (steps >= kSteps || load.window_ns() >= 2 * kWindowNs)) return block;
  }
  if (!block.is_null() && block["window_ns"].get<double>() >= kWindowNs / 2) return block;
  return no_energy(is_open ? "the energy counter did not step often enough in the time there was: give more budget"
                           : "the energy counter did not move while the kernel ran");
}

Json by_power(Load& load, const std::string& device) {
  if (!load.step() || !load.reading()) return no_energy("the power reading stopped answering");
  load.restart();
  double joules = 0, before_w = *load.reading(), before_ns = 0;
  int readings = 1;
  while (load.step()) {
    const std::optional<double> watts = load.reading();
    if (!watts) return no_energy("the power reading stopped answering");
    joules += (before_w + *watts) / 2 * (load.window_ns() - before_ns) / 1e9;
    before_w = *watts;
    before_ns = load.window_ns();
    if (++readings >= kMinPowers && load.window_ns() >= kWindowNs)
      return load.block(joules, readings,
                        fmt::format("{} readings of the power of {} over the window, integrated: no energy counter; "
                                    "idle power is part of it",
                                    readings, device));
  }
  return no_energy(
      fmt::format("only {} readings of power in the time there was; {} over 1 s are the least", readings, kMinPowers));
}

}  // namespace

Json measure_energy(package::ReadyKernel& kernel, const Surroundings& surroundings, const EnergyOptions& options) {
  const std::string device = kernel.device_name();
  const Telemetry first = kernel.telemetry();
  if (!first.energy_j && !first.power_w)
    return no_energy(options.is_host ? "no energy counter that this user may read (RAPL), and no power reading"
                                     : fmt::format("{} reports neither energy nor power", device));
  Load load(kernel, surroundings, options, first.energy_j.has_value());
  if (!first.energy_j) return by_power(load, device);
  return by_counter(load, *first.energy_j,
                    options.is_host
                        ? "energy counter of the CPU packages (RAPL): all that they did, idle power included"
                        : fmt::format("energy counter of {}: the whole board, idle power included", device));
}

}  // namespace weir::bench
