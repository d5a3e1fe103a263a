#include "lab/fleet/probe/device_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "lab/fleet/figures.h"
#include "lab/fleet/probe/spread.h"
#include "lab/fleet/probe/state.h"
#include "measure/statistics.h"

namespace weir::fleet {
namespace {

// Of a GPU that has room for what jobs compute, and is fast enough for it.
constexpr std::uint64_t kLargeMemory = std::uint64_t{8} << 30;

Figure finished(const Figure& raw) {
  Figure figure = raw;
  if (figure.samples.empty()) {
    if (figure.reason.empty()) figure.reason = "it was not measured";
    return figure;
  }
  const double middle = median(figure.samples);
  // A difference of two times may be lost in what disturbs them.
  if (middle > 0) {
    figure.value = middle;
    figure.range = stated_range(figure.name, figure.samples);
  } else {
    figure.reason = "it is too short to be seen: the median of the samples is not above 0";
  }
  return figure;
}

std::size_t place_of(const Figure& figure) {
  const auto kinds = figure_kinds();
  return static_cast<std::size_t>(
      std::find_if(kinds.begin(), kinds.end(), [&](const FigureKind& kind) { return kind.name == figure.name; }) -
      kinds.begin());
}

}  // namespace

DeviceProbe::DeviceProbe(std::string name, const ProbeOptions& options) : options_(options) {
  device_report_.name = std::move(name);
}

template <class Work>
void DeviceProbe::guarded(const char* doing, Work&& work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    if (device_report_.failure.empty()) device_report_.failure = fmt::format("{}: {}", doing, error.what());
  }
}

void DeviceProbe::open() noexcept {
  guarded("opening it failed", [&] {
    device_ = options_.open(device_report_.name, nullptr);
    info_ = device_->info();
    device_report_.name = info_.name;
    idle_ = device_->telemetry();
    add_board(info_, device_->board(), device_report_);
    MeterContext context{.device = *device_, .info = info_};
    context.is_large = info_.is_gpu && info_.memory_bytes.value.value_or(0) >= kLargeMemory;
    context.slow_down = options_.slow_down;
    add_launch_meters(context, meters_);
    add_copy_meters(context, meters_);
    add_product_meters(context, meters_);
    for (const char* const load : {"gemm_bf16", "gemm_fp32"})
      for (const auto& meter : meters_.meters)
        if (loaded_by_.empty() && meter->figure.name == load) loaded_by_ = load;
  });
}

void DeviceProbe::take_sample(Meter& meter, bool is_warm_up) {
  const double value = meter.sample();
  if (is_warm_up) return;
  meter.figure.samples.push_back(value);
  if (meter.figure.name != loaded_by_) return;
  if (auto telemetry = meter.telemetry_under_load(*device_)) under_load_.push_back(std::move(*telemetry));
}

void DeviceProbe::give_up(std::size_t index, const std::exception& error) {
  const std::unique_ptr<Meter> meter = std::move(meters_.meters[index]);
  meters_.meters.erase(meters_.meters.begin() + static_cast<std::ptrdiff_t>(index));
  const FigureKind* const kind = find_figure(meter->figure.name);
  const auto* const known = dynamic_cast<const Error*>(&error);
  // What the device does not offer is a reason; what it should have done is a failure.
  if ((known == nullptr || known->fault == Fault::run) && device_report_.failure.empty())
    device_report_.failure =
        fmt::format("{}: {}", kind == nullptr ? std::string_view("a figure") : kind->words, error.what());
  meter->figure.samples.clear();
  meter->figure.reason = error.what();
  meters_.without.push_back(meter->figure);
}

void DeviceProbe::sample(bool is_load, bool is_warm_up) noexcept {
  guarded("measuring it failed", [&] {
    for (std::size_t i = 0; i < meters_.meters.size();) {
      if (meters_.meters[i]->is_load == is_load) {
        try {
          take_sample(*meters_.meters[i], is_warm_up);
        } catch (const std::exception& error) {
          give_up(i, error);
          continue;
        }
      }
      ++i;
    }
  });
}

void DeviceProbe::check() noexcept {
  guarded("checking what it computed failed", [&] {
    for (const auto& meter : meters_.meters)
      for (std::string& sentence : meter->check())
        if (std::find(device_report_.wrong.begin(), device_report_.wrong.end(), sentence) == device_report_.wrong.end())
          device_report_.wrong.push_back(std::move(sentence));
  });
}

void DeviceProbe::add(DeviceExchange::Measured measured) {
  for (Figure& figure : measured.figures) meters_.without.push_back(std::move(figure));
  for (std::string& sentence : measured.wrong) device_report_.wrong.push_back(std::move(sentence));
}

NodeDevice DeviceProbe::report() const {
  NodeDevice report = device_report_;
  for (const auto& meter : meters_.meters) report.figures.push_back(finished(meter->figure));
  for (const Figure& figure : meters_.without) report.figures.push_back(finished(figure));
  add_telemetry(idle_, under_load_, report);
  for (const FigureKind& kind : figure_kinds())
    if (report.figure(kind.name) == nullptr) {
      Figure none;
      none.name = kind.name;
      none.reason = device_ == nullptr ? "the device could not be opened" : "it was not measured";
      report.figures.push_back(std::move(none));
    }
  std::stable_sort(report.figures.begin(), report.figures.end(),
                   [](const Figure& one, const Figure& other) { return place_of(one) < place_of(other); });
  return report;
}

}  // namespace weir::fleet
