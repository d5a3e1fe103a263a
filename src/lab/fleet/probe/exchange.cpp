#include "lab/fleet/probe/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "lab/fleet/probe/meter.h"
#include "measure/statistics.h"
#include "run/check.h"
#include "submit/placement.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kSamples = 5, kIterations = 4;

// cuda of cuda:1
std::string kind_of_device(const std::string& name) { return name.substr(0, name.find(':')); }

}  // namespace

struct DeviceExchange::Way {
  const char* figure;
  CollectiveOp op;
  bool has_target;
};

DeviceExchange::DeviceExchange(std::vector<std::string> names, Open open)
    : names_(std::move(names)), open_(std::move(open)) {
  const auto is_other = [&](const std::string& name) { return kind_of_device(name) != kind_of_device(names_[0]); };
  if (names_.size() < 2) {
    reason_ = "there is one device";
  } else if (std::any_of(names_.begin(), names_.end(), is_other)) {
    reason_ = "the devices are of different kinds";
  } else {
    world_ = std::make_unique<ThreadWorld>(static_cast<int>(names_.size()));
  }
}

void DeviceExchange::measure_way(const Way& way, Device& device, std::size_t index, Measured& measured) {
  const DeviceInfo info = device.info();
  const std::size_t ranks = names_.size();
  const bool is_large = info.is_gpu && info.memory_bytes.value.value_or(0) >= std::uint64_t{8} << 30;
  const std::uint64_t bytes = (is_large ? std::uint64_t{128} : std::uint64_t{1}) << 20;
  StepBuilder builder(1, {static_cast<int>(index), static_cast<int>(ranks)});
  const BufferId from = builder.sharded(ElementType::f32, bytes / sizeof(float));
  const BufferId to = builder.output(ElementType::f32, bytes / sizeof(float));
  builder.collective(way.op, {}, {from}, {to});
  const Step step = std::move(builder).seal(1);
  const Placement placement = place(step, "natural");
  const auto session = device.prepare(step, placement, {.marks_iterations = false});
  Figure figure;
  figure.name = way.figure;
  if (way.has_target) figure.to = names_[(index + 1) % ranks];
  if (const std::string carrier = session->collectives(); carrier.find("staged through") != std::string::npos) {
    figure.reason = "there is no library for it: " + carrier;  // the same for all ranks
    measured.figures.push_back(std::move(figure));
    return;
  }
  const auto submitter = inline_submitter(step, *session);
  Communicator& communicator = world_->rank(static_cast<int>(index));
  // As others count it: what each link carries where the all-reduce is a ring.
  const double moved = way.op == CollectiveOp::all_reduce ? 2.0 * static_cast<double>(ranks - 1) /
                                                                static_cast<double>(ranks) * static_cast<double>(bytes)
                                                          : static_cast<double>(bytes);
  for (std::size_t sample = 0; sample <= kSamples; ++sample) {
    std::vector<double> times;
    communicator.barrier();
    for (std::size_t i = 0; i < kIterations; ++i) {
      const std::int64_t begun_ns = session->now_ns();
      session->begin_iteration();
      submitter->submit_step();
      session->finish();
      times.push_back(static_cast<double>(session->now_ns() - begun_ns));
    }
    if (sample > 0) figure.samples.push_back(moved * 1e9 / median(times));  // the first one connects
  }
  measured.figures.push_back(std::move(figure));
  const CheckReport report = check_outputs(step, *session, &communicator);
  if (report.status == CheckReport::Status::failed)
    measured.wrong.push_back(
        fmt::format("{}: {}", way.has_target ? "copy to another device" : "all-reduce in the node", report.reason));
}

DeviceExchange::Measured DeviceExchange::measure(std::size_t index) noexcept {
  constexpr Way kWays[] = {{"copy_to_peer", CollectiveOp::shift, true},
                           {"all_reduce", CollectiveOp::all_reduce, false}};
  Measured measured;
  std::string reason = reason_;
  if (reason.empty()) {
    try {
      const auto device = open_(names_[index], &world_->rank(static_cast<int>(index)));
      if (device->info().is_virtual || !device->info().computes) {
        reason = "simulated devices of one process do not know each other";
      } else {
        for (const Way& way : kWays) measure_way(way, *device, index, measured);
      }
    } catch (const std::exception& error) {
      reason = error.what();
      world_->end(fmt::format("{}: {}", names_[index], reason));
    }
  }
  for (const Way& way : kWays) {
    const auto is_same = [&](const Figure& figure) { return figure.name == way.figure; };
    if (std::any_of(measured.figures.begin(), measured.figures.end(), is_same)) continue;
    Figure none;
    none.name = way.figure;
    none.reason = reason;
    measured.figures.push_back(std::move(none));
  }
  return measured;
}

}  // namespace weir::fleet
