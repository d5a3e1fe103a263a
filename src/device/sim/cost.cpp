#include "device/sim/cost.h"

#include <algorithm>
#include <cmath>

#include "kernel/body.h"
#include "kernel/gemm.h"
#include "kernel/toil.h"

namespace weir::sim {
namespace {

constexpr std::int64_t kThreadsPerMultiprocessor = 2048;
constexpr std::int64_t kTile = 128;       // of a library's matrix product
constexpr std::int64_t kTileDepth = 512;  // thin products are split along k as well

std::int64_t rounded(double ns) {
  constexpr double kMaxNs = 3.6e12;  // an hour
  return static_cast<std::int64_t>(std::llround(std::clamp(ns, 0.0, kMaxNs)));
}

Place place_of(const Step& step, const Access& access) { return step.buffers()[access.buffer].place; }

Unit copy_unit(const Step& step, CommandId id) {
  const auto accesses = step.accesses(id);
  const bool from_host = place_of(step, accesses[0]) == Place::host;
  if (place_of(step, accesses[1]) == Place::host) return Unit::to_host;
  return from_host ? Unit::to_device : Unit::on_device;
}

bool is_matrix_product(const Command& command) {
  const std::string_view name = kernel(command.kernel).name;
  return name == "gemm" || name == "ragged_gemm";
}

double flop_rate(const Command& command, const SimProfile& profile) {
  const Precision precision = is_matrix_product(command) ? command.shape.precision : Precision::fp32;
  return precision == Precision::tf32   ? profile.rates.tf32
         : precision == Precision::fp16 ? profile.rates.fp16
         : precision == Precision::bf16 ? profile.rates.bf16
                                        : profile.rates.fp32;
}

}  // namespace

bool is_timed(const Command& command) {
  return command.kind == CommandKind::kernel && kernel(command.kernel).lasts != Lasts::by_work;
}

Signature signature_of(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  Signature signature;
  signature.kind = command.kind;
  switch (command.kind) {
    case CommandKind::copy: {
      constexpr std::string_view kNames[] = {"to_device", "to_host", "on_device"};
      signature.name = kNames[static_cast<std::size_t>(copy_unit(step, id)) - 1];
      signature.dims[0] = static_cast<std::int64_t>(step.accesses(id)[0].size_bytes);
      break;
    }
    case CommandKind::collective:
      signature.name = name_of(command.collective);
      signature.dims[0] = static_cast<std::int64_t>(step.accesses(id)[0].size_bytes);
      break;
    case CommandKind::kernel:
      signature.precision = command.shape.precision;
      [[fallthrough]];
    case CommandKind::host:
      signature.name = kernel(command.kernel).name;
      signature.type = command.shape.type;
      signature.dims = command.shape.dims;
      break;
  }
  return signature;
}

Footprint footprint_of(const Command& command, const SimProfile& profile) {
  const Kernel& entry = kernel(command.kernel);
  if (entry.geometry != nullptr) {
    const Geometry geometry = entry.geometry(command.shape);
    const std::int64_t fit = kThreadsPerMultiprocessor / std::max(1u, geometry.block);
    return {std::max(1u, geometry.grid),
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(fit, 1, profile.slots_per_multiprocessor))};
  }
  const auto [m, n, k, flags] = command.shape.dims;
  const std::int64_t tiles = divide_up(std::max<std::int64_t>(1, m), kTile) *
                             divide_up(std::max<std::int64_t>(1, n), kTile) * gemm_batch(command.shape);
  // A library splits a thin product along k until it fills the device.
  const std::int64_t cuts = std::max<std::int64_t>(1, std::min(k / kTileDepth, profile.multiprocessors / tiles));
  return {static_cast<std::uint32_t>(std::min<std::int64_t>(tiles * cuts, INT32_MAX)), 1};
}

CostModel::CostModel(const SimProfile& profile) : profile_(profile) {
  for (const Duration& duration : profile.durations) known_.insert_or_assign(duration.of, &duration);
}

Work CostModel::kernel(const Command& command, const Duration* known) const {
  const std::int64_t processors = profile_.multiprocessors;
  const std::int64_t slots = profile_.slots_per_multiprocessor;
  Footprint footprint = footprint_of(command, profile_);
  if (known != nullptr && known->blocks != 0) footprint.blocks = static_cast<std::uint32_t>(known->blocks);
  if (known != nullptr && known->blocks_per_multiprocessor != 0)
    footprint.blocks_per_multiprocessor = static_cast<std::uint32_t>(known->blocks_per_multiprocessor);
  const std::int64_t fit = std::min<std::int64_t>(footprint.blocks_per_multiprocessor, slots);

  Work work;
  const Lasts lasts = weir::kernel(command.kernel).lasts;
  // One block per unit, one after the other: real toil blocks take unit after unit and check a flag in between, so that
  // any remaining unit can be skipped.
  if (lasts == Lasts::by_units && (command.shape.dims[kToilStyle] & kToilStoppable) != 0) {
    work.is_stoppable = true;
    footprint.blocks =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(command.shape.dims[kToilUnits], 1, INT32_MAX));
  }
  const bool is_empty_in_part = profile_.room < 1 && !is_timed(command);
  work.blocks = is_empty_in_part ? std::max(1u, static_cast<std::uint32_t>(std::ceil(footprint.blocks * profile_.room)))
                                 : footprint.blocks;
  work.blocks_per_multiprocessor = footprint.blocks_per_multiprocessor;
  work.slots = static_cast<std::uint32_t>(std::max<std::int64_t>(1, slots / fit));
  work.most_at_once =
      static_cast<std::uint32_t>(std::min<std::int64_t>(fit * processors, slots * processors / work.slots));
  work.contention = known != nullptr && known->contention ? *known->contention : profile_.contention;
  const double waves = std::ceil(static_cast<double>(work.blocks) / work.most_at_once);
  if (is_timed(command)) {
    work.is_timed = true;
    work.ns = std::clamp<std::int64_t>(command.shape.dims[0], 0, 3'600'000'000'000);
    work.is_hold = lasts == Lasts::until_flag;
    if (lasts == Lasts::by_units) {
      work.ns = toil_ns(command, work);
      work.units = command.shape.dims[kToilUnits];
    }
    return work;
  }
  if (known != nullptr) {
    work.held_ns = rounded(known->held_ns * profile_.scale);
    work.ns = std::max<std::int64_t>(1, rounded(known->ns * profile_.scale / waves));
    return work;
  }
  // A block gets its multiprocessor's share of the rates, divided by the number of blocks on that multiprocessor.
  const Cost cost = weir::kernel(command.kernel).cost(command.shape);
  const double at_once = std::min<double>(work.blocks, work.most_at_once);
  const double shares = static_cast<double>(processors) * std::ceil(at_once / static_cast<double>(processors));
  const double flop_ns = cost.flop / (flop_rate(command, profile_) * profile_.efficiency.flop);
  const double byte_ns = cost.bytes / (profile_.rates.memory_bytes * profile_.efficiency.memory);
  const double block_ns = std::max(flop_ns, byte_ns) * 1e9 / work.blocks * shares;
  work.ns = std::max<std::int64_t>(
      1, rounded(std::max(block_ns * waves, static_cast<double>(profile_.kernel_ns)) * profile_.scale / waves));
  return work;
}

std::int64_t CostModel::toil_ns(const Command& command, const Work& work) const {
  const auto& dims = command.shape.dims;
  double unit_ns = static_cast<double>(dims[kToilAmount]);
  if ((dims[kToilStyle] & kToilStreams) != 0)
    unit_ns *= 16.0 * work.most_at_once * 1e9 / (profile_.rates.memory_bytes * profile_.efficiency.memory);
  const double units = static_cast<double>(std::max<std::int64_t>(1, dims[kToilUnits]));
  return rounded(unit_ns * std::ceil(units / work.blocks));
}

Work CostModel::work_of(const Step& step, CommandId id) const {
  const Command& command = step.commands()[id];
  const auto found = known_.empty() ? known_.end() : known_.find(signature_of(step, id));
  // A probe writes one moment per block of its shape, so the table is ignored.
  const bool is_probe = command.kind == CommandKind::kernel && weir::kernel(command.kernel).is_probe;
  const bool is_free = found == known_.end() || is_probe;
  const Duration* const known = is_free ? nullptr : found->second;
  Work work;
  if (command.kind == CommandKind::kernel) {
    work = kernel(command, known);
  } else {
    const double bytes = static_cast<double>(step.accesses(id).empty() ? 0 : step.accesses(id)[0].size_bytes);
    double ns = 0;
    if (command.kind == CommandKind::copy) {
      work.unit = copy_unit(step, id);
      const double rate = work.unit == Unit::to_device ? profile_.rates.to_device_bytes
                          : work.unit == Unit::to_host ? profile_.rates.to_host_bytes
                                                       : profile_.rates.on_device_bytes;
      ns = static_cast<double>(profile_.device.copy_latency_ns) + bytes / rate * 1e9;
    } else if (command.kind == CommandKind::collective) {
      work.unit = Unit::link;
      const double moved = std::max(bytes, static_cast<double>(step.accesses(id)[1].size_bytes));
      ns = static_cast<double>(profile_.device.collective_latency_ns) + moved / profile_.rates.link_bytes * 1e9;
    } else {
      work.unit = Unit::host;
      const Cost cost = weir::kernel(command.kernel).cost(command.shape);
      ns = static_cast<double>(profile_.device.host_function_latency_ns) +
           std::max(cost.flop / profile_.rates.host_flop, cost.bytes / profile_.rates.host_bytes) * 1e9;
    }
    work.ns = std::max<std::int64_t>(1, rounded(known != nullptr ? known->ns : ns));
  }
  work.level = static_cast<std::uint8_t>(std::clamp<std::int64_t>(command.priority, 0, profile_.priority_levels - 1));
  return work;
}

}  // namespace weir::sim
