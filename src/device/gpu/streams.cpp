#include "device/gpu/streams.h"

#include <algorithm>
#include <bit>

namespace weir {
namespace {

// Neighbouring streams get neighbouring units, starting over when all are assigned.
std::vector<unsigned> compute_unit_mask(int all, int wanted, int stream) {
  std::vector<unsigned> mask(static_cast<std::size_t>((all + 31) / 32), 0);
  for (int i = 0; i < wanted; ++i) {
    const auto unit = static_cast<std::size_t>((static_cast<std::int64_t>(stream) * wanted + i) % all);
    mask[unit / 32] |= 1u << unit % 32;
  }
  return mask;
}

int units_in(const std::vector<unsigned>& mask) {
  int units = 0;
  for (const unsigned word : mask) units += std::popcount(word);
  return units;
}

[[noreturn]] void reject_rest(int units, int stream) {
  reject_setting("compute_units", std::to_string(units),
                 fmt::format("nothing is left of the device for stream {}", stream), "Use fewer, or fewer streams.");
}

// The vendor's priority of each stream: smaller is more urgent there, higher is in Command::priority.
std::vector<int> stream_priorities(const GpuApi& api, const Step& step, const Placement& placement) {
  int least = 0, greatest = 0;
  check(api, api.priority_range(&least, &greatest), "asking for priorities");
  std::vector<int> urgency(static_cast<std::size_t>(placement.stream_count), INT8_MIN);
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    int& highest = urgency[placement.stream_of[id]];
    highest = std::max<int>(highest, step.commands()[id].priority);
  }
  for (int& value : urgency) value = std::clamp(-value, greatest, least);
  return urgency;
}

}  // namespace

GpuStreams::GpuStreams(PrimaryContext& context, const GpuFacts& facts, const Step& step, const Placement& placement,
                       const GpuConfinement& confinement) {
  const GpuApi& api = context.api();
  if (confinement.units > 0 && api.divide == nullptr)
    make_masked(api, facts.multiprocessors, placement.stream_count, confinement);
  else if (const auto priorities = stream_priorities(api, step, placement); confinement.units > 0)
    make_in_parts(api, context.index(), priorities, confinement);
  else
    for (const int priority : priorities) add(make_stream(api, priority), 0);
}

void GpuStreams::add(GpuStreamOwner stream, int units) {
  handles.push_back(stream.get());
  owners.push_back(std::move(stream));
  compute_units.push_back(units);
}

void GpuStreams::make_masked(const GpuApi& api, int all, int count, const GpuConfinement& confinement) {
  std::vector<std::vector<unsigned>> masks(static_cast<std::size_t>(count));
  std::vector<unsigned> rest = compute_unit_mask(all, all, 0);
  int parts = 0;
  const auto take_part = [&] {
    const std::vector<unsigned> mask = compute_unit_mask(all, confinement.units, parts++);
    for (std::size_t word = 0; word < rest.size(); ++word) rest[word] &= ~mask[word];
    return mask;
  };
  for (int stream = 0; stream < count; ++stream)
    if (stream != confinement.rest_stream) masks[static_cast<std::size_t>(stream)] = take_part();
  // A rest stream alone still leaves one part unused, so that it has the same units with and without a rival.
  if (parts == 0) take_part();
  if (confinement.rest_stream >= 0 && confinement.rest_stream < count) {
    if (units_in(rest) == 0) reject_rest(confinement.units, confinement.rest_stream);
    masks[static_cast<std::size_t>(confinement.rest_stream)] = rest;
  }
  for (const std::vector<unsigned>& mask : masks) {
    GpuStream handle = nullptr;
    check(api, api.stream_create_masked(&handle, static_cast<unsigned>(mask.size()), mask.data()),
          "creating a stream on a part of the device");
    add(GpuStreamOwner(handle, {&api}), units_in(mask));
  }
}

void GpuStreams::make_in_parts(const GpuApi& api, int device, const std::vector<int>& priorities,
                               const GpuConfinement& confinement) {
  const auto count = static_cast<int>(priorities.size());
  const bool has_rest = confinement.rest_stream >= 0 && confinement.rest_stream < count;
  GpuDivision division;
  // At least one part, even if the rest stream is alone: see make_masked().
  check(api, api.divide(device, confinement.units, std::max(1, count - (has_rest ? 1 : 0)), has_rest, &division),
        "dividing the device");
  for (GpuPart part : division.parts) parts.emplace_back(part, GpuClose<GpuPart, &GpuApi::part_destroy>{&api});
  if (division.rest != nullptr) parts.emplace_back(division.rest, GpuClose<GpuPart, &GpuApi::part_destroy>{&api});
  if (division.parts.empty())
    reject_setting("compute_units", std::to_string(confinement.units), "the driver makes no such part", "Use fewer.");
  if (has_rest && division.rest == nullptr) reject_rest(confinement.units, confinement.rest_stream);
  std::size_t part = 0;
  for (int stream = 0; stream < count; ++stream) {
    const bool is_rest = stream == confinement.rest_stream;
    // If there are more streams than parts, they share them in turn.
    GpuPart const at = is_rest ? division.rest : division.parts[part++ % division.parts.size()];
    GpuStream handle = nullptr;
    check(api, api.part_stream(&handle, at, kGpuStreamNonBlocking, priorities[static_cast<std::size_t>(stream)]),
          "creating a stream on a part of the device");
    add(GpuStreamOwner(handle, {&api}), is_rest ? division.rest_units : division.units);
  }
}

Capability can_confine(const GpuApi& api) {
  if (api.stream_create_masked != nullptr || api.divide != nullptr) return {};
  return lacking(api.parts_reason.empty() ? "streams cannot be confined to a part of this device" : api.parts_reason);
}

int confined_units(const PrimaryContext& context, const GpuFacts& facts, int wanted) {
  const GpuApi& api = context.api();
  const auto refuse = [&](const std::string& problem, const std::string& hint) {
    reject_setting("compute_units", std::to_string(wanted), fmt::format("{} {}", context.device_name(), problem), hint);
  };
  if (const Capability able = can_confine(api); !able)
    refuse(fmt::format("cannot confine streams: {}", able.reason), "Leave it out.");
  if (wanted > facts.multiprocessors) refuse(fmt::format("has {}", facts.multiprocessors), "");
  if (api.divide == nullptr) return wanted;
  int units = 0;
  check(api, api.part_units(context.index(), wanted, &units), "asking how the device is divided");
  if (units == 0)
    refuse(fmt::format("has {}, and the driver makes no part of that size", facts.multiprocessors),
           "Use fewer: drivers give multiprocessors in groups, of 8 on compute capability 9.");
  return units;
}

}  // namespace weir
