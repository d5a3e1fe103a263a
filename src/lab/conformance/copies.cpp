// Copies to, from and on the device and between host buffers: every type, odd sizes, unaligned offsets, and many at
// once. Exact, and nothing else changes.
#include <fmt/format.h>

#include "lab/conformance/checks.h"
#include "lab/conformance/kernel_case.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

constexpr const char* name_of(Place place) { return place == Place::host ? "host" : "device"; }

BufferId buffer_in(StepBuilder& builder, Place place, ElementType type, std::uint64_t count, Init init) {
  if (place == Place::host) return builder.host(type, count, init, type == ElementType::i32 ? 1'000 : 2);
  if (init == Init::poison) return builder.output(type, count);
  return builder.uniform(type, count, type == ElementType::i32 ? 1'000 : 2);
}

struct CopyCase {
  Place from, to;
  ElementType type;
  std::uint64_t count, from_offset, to_offset;
};

Step copy_step(const CopyCase& copy) {
  StepBuilder builder(13);
  const BufferId from = buffer_in(builder, copy.from, copy.type, copy.count + copy.from_offset + 3, Init::uniform);
  const BufferId to = buffer_in(builder, copy.to, copy.type, copy.count + copy.to_offset + 3, Init::poison);
  builder.copy({}, {from, copy.from_offset, copy.count}, {to, copy.to_offset, copy.count});
  return std::move(builder).seal(1);
}

// Host to device, within the device, and back, on all streams at once.
Step chain_step(int streams, std::uint64_t count) {
  StepBuilder builder(14);
  for (int s = 0; s < streams; ++s) {
    const Lane lane{.stream = static_cast<StreamId>(s)};
    const BufferId first = builder.host(ElementType::f32, count, Init::uniform, 3);
    const BufferId here = builder.output(ElementType::f32, count), there = builder.output(ElementType::f32, count);
    const BufferId last = builder.host(ElementType::f32, count, Init::poison);
    builder.copy(lane, {first}, {here});
    builder.copy({.stream = static_cast<StreamId>((s + 1) % streams)}, {here}, {there});
    builder.copy(lane, {there}, {last});
  }
  return std::move(builder).seal(streams);
}

// Between parts of one buffer that do not overlap.
Step within_step(Place place) {
  StepBuilder builder(15);
  const BufferId data = buffer_in(builder, place, ElementType::f16, 10'000, Init::uniform);
  builder.copy({}, {data, 1, 3'001}, {data, 5'003, 3'001});
  return std::move(builder).seal(1);
}

}  // namespace

Cases copies() {
  Cases cases;
  const auto add = [&](std::string name, auto make) {
    ConformanceCase each{"copies", std::move(name), {}, {}};
    each.needs.results = true;
    each.examine = [make](Subject& subject) { return same_as_reference(subject, make()); };
    cases.push_back(std::move(each));
  };
  for (const Place from : {Place::host, Place::device}) {
    for (const Place to : {Place::host, Place::device}) {
      const std::string way = fmt::format("{} to {}", name_of(from), name_of(to));
      for (const ElementType type : kAllTypes) {
        for (const std::uint64_t count : {1u, 255u, 40'001u, 1u << 20}) {
          const CopyCase copy{from, to, type, count, 0, 0};
          add(fmt::format("{}/{}/{}", way, weir::name_of(type), count), [copy] { return copy_step(copy); });
        }
        const CopyCase copy{from, to, type, 4'097, 1, 3};
        add(fmt::format("{}/{}/4097 from 1 to 3", way, weir::name_of(type)), [copy] { return copy_step(copy); });
      }
    }
  }
  for (const Place place : {Place::host, Place::device})
    add(fmt::format("within a buffer/{}", name_of(place)), [place] { return within_step(place); });
  for (const int streams : {1, 3, 16})
    add(fmt::format("there and back on {} streams", streams), [streams] { return chain_step(streams, 30'011); });
  return cases;
}

}  // namespace weir::conformance
