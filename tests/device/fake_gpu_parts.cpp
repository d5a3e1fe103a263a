// Streams of the fake GPU on a part of it: by masks as HIP has them, or in parts that a driver cuts and rounds as
// CUDA's does. Confines nothing, because nothing here takes long; remembers who was given what.
#include <algorithm>

#include "device/fake_gpu_state.h"

namespace weir::fake_gpu {
namespace {

int make_stream(GpuStream* stream, GpuPart part, std::uint64_t units) {
  State& s = state();
  s.confined_to.push_back(units);
  *stream = new GpuStreamHandle{.number = s.streams_made++, .context = current_context(), .part = part};
  return s.streams.insert(*stream), 0;
}

int stream_create_masked(GpuStream* stream, unsigned words, const unsigned* mask) {
  const Lock lock(state().mutex);
  std::uint64_t units = 0;
  for (unsigned word = 0; word < std::min(words, 2u); ++word) units |= std::uint64_t{mask[word]} << 32 * word;
  return units == 0 ? kInvalid : make_stream(stream, nullptr, units);
}

int rounded(int wanted) {
  const Settings& settings = state().settings;
  if (wanted == settings.multiprocessors) return wanted;
  const int units = (wanted + settings.part_step - 1) / settings.part_step * settings.part_step;
  return units > settings.multiprocessors ? 0 : units;
}

int part_units(int, int wanted, int* units) {
  const Lock lock(state().mutex);
  if (wanted <= 0 || wanted > state().settings.multiprocessors) return kInvalid;
  return *units = rounded(wanted), 0;
}

int part_destroy(GpuPart part) {
  const Lock lock(state().mutex);
  State& s = state();
  if (s.parts.erase(part) == 0) return kInvalid;
  s.parts_orphaned +=
      std::any_of(s.streams.begin(), s.streams.end(), [&](GpuStream stream) { return stream->part == part; });
  return delete part, 0;
}

// The lock is held.
GpuPart make_part(int first, int count) {
  State& s = state();
  if (s.parts_made++ == s.settings.fail_part) return nullptr;
  std::uint64_t units = 0;
  for (int unit = first; unit < first + count; ++unit) units |= std::uint64_t{1} << unit;
  return *s.parts.insert(new GpuPartHandle{units}).first;
}

int divide(int, int wanted, int count, bool makes_rest, GpuDivision* division) {
  int failed = 0;
  {
    const Lock lock(state().mutex);
    const int all = state().settings.multiprocessors, each = rounded(wanted);
    division->units = each;
    int used = 0;
    for (; failed == 0 && each > 0 && count > 0 && used + each <= all; used += each, --count) {
      GpuPart const part = make_part(used, each);
      if (part == nullptr) failed = kOutOfMemory;
      if (part != nullptr) division->parts.push_back(part);
    }
    if (failed == 0 && makes_rest && used < all && each > 0) {
      division->rest = make_part(used, all - used);
      division->rest_units = all - used;
      if (division->rest == nullptr) failed = kOutOfMemory;
    }
  }
  if (failed == 0) return 0;
  for (GpuPart part : division->parts) part_destroy(part);
  *division = {};
  return failed;
}

int part_stream(GpuStream* stream, GpuPart part, unsigned flags, int priority) {
  const Lock lock(state().mutex);
  if (!state().parts.contains(part) || flags != kGpuStreamNonBlocking) return kInvalid;
  state().priorities.push_back(priority);
  return make_stream(stream, part, part->units);
}

}  // namespace

void offer_parts(GpuApi& table, const Settings& settings) {
  const bool has_parts = settings.part_step > 0 && !settings.has_masks;
  table.stream_create_masked = settings.has_masks ? stream_create_masked : nullptr;
  table.part_units = has_parts ? part_units : nullptr;
  table.divide = has_parts ? divide : nullptr;
  table.part_destroy = has_parts ? part_destroy : nullptr;
  table.part_stream = has_parts ? part_stream : nullptr;
  table.parts_reason = has_parts || settings.has_masks ? "" : "the fake driver cuts nothing";
}

}  // namespace weir::fake_gpu
