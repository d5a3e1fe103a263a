// The cost of a clone, one more owner of the same bytes, by size: with an uncontended count, and with two cores
// contending for it. A deep copy is included to show what sharing saves.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "channel/payload.h"
#include "lab/channels/loops/allocators.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/team.h"

namespace weir::channel_bench {
namespace {

constexpr std::uint64_t kMark = 0x5eed'0f'b17e5;

struct OurPayload {
  static constexpr std::string_view kName = "payload";
  static constexpr bool kIsOurs = true;
  explicit OurPayload(std::size_t bytes) : payload(Payload::allocate(bytes)) {
    std::memcpy(payload.writable().data(), &kMark, sizeof kMark);
  }
  Payload clone() const { return payload.clone(); }
  static const std::byte* data(const Payload& clone) { return clone.data(); }
  Payload payload;
};

struct SharedPointer {
  static constexpr std::string_view kName = "shared_ptr";
  static constexpr bool kIsOurs = false;
  explicit SharedPointer(std::size_t bytes) : payload(std::make_shared<std::vector<std::byte>>(bytes)) {
    std::memcpy(payload->data(), &kMark, sizeof kMark);
  }
  std::shared_ptr<std::vector<std::byte>> clone() const { return payload; }
  static const std::byte* data(const std::shared_ptr<std::vector<std::byte>>& clone) { return clone->data(); }
  std::shared_ptr<std::vector<std::byte>> payload;
};

struct DeepCopy {
  static constexpr std::string_view kName = "deep_copy";
  static constexpr bool kIsOurs = false;
  explicit DeepCopy(std::size_t bytes) : payload(bytes) { std::memcpy(payload.data(), &kMark, sizeof kMark); }
  std::vector<std::byte> clone() const { return payload; }
  static const std::byte* data(const std::vector<std::byte>& clone) { return clone.data(); }
  std::vector<std::byte> payload;
};

// Clones and drops, one at a time, and reads from each clone.
template <class Contestant>
Tally clone_and_drop(const Contestant& contestant, std::uint64_t count) {
  Tally seen;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto clone = contestant.clone();
    keep(&clone);
    std::uint64_t word = 0;
    std::memcpy(&word, Contestant::data(clone), sizeof word);
    seen.add(word);
  }
  return seen;
}

template <class Contestant>
Measurement measure(const Conditions& conditions, std::size_t bytes, int threads) {
  Measurement measurement;
  const Contestant contestant(bytes);
  Tally expected, seen;
  std::uint64_t count = 16;
  // The first samples only determine how many clones make one sample.
  for (int sample = -8; sample < conditions.samples; ++sample) {
    std::vector<Tally> tallies(static_cast<std::size_t>(threads));
    // Always on separate threads: in a process with a single thread, shared_ptr skips its atomics.
    const std::int64_t ns = run_team(conditions.cores, threads, [&](int thread) {
      tallies[static_cast<std::size_t>(thread)] = clone_and_drop(contestant, count);
    });
    const double each = static_cast<double>(ns) / static_cast<double>(count);
    if (sample < 0) {
      count = static_cast<std::uint64_t>(std::clamp(conditions.sample_ms * 1e6 / std::max(1.0, each), 16.0, 1e7));
      continue;
    }
    measurement.samples.push_back(each);
    for (const Tally& tally : tallies) seen.add(tally);
    const std::uint64_t made = count * static_cast<std::uint64_t>(threads);
    expected.count += made;
    expected.sum += made * Tally::mix(kMark);
  }
  judge(expected, seen, measurement);
  return measurement;
}

template <class Contestant>
void offer(std::vector<Benchmark>& all, const Conditions& conditions, const std::string& size, std::size_t bytes,
           int threads) {
  all.push_back(
      entry<Contestant>(threads == 1 ? size : "two_threads/" + size, Unit::ns_per_operation,
                        threads == 1 ? "clone " + size + ", look into it, drop it; one thread"
                                     : "two threads clone and drop the same " + size + "; time of one clone on each",
                        [bytes, threads](const Conditions& c) { return measure<Contestant>(c, bytes, threads); }));
  if (size == "1MB" && threads == 1) all.back().target = Target{100, "clone of 1 MB < 100 ns"};
  if (static_cast<int>(conditions.cores.size()) < threads)
    all.back().unavailable = "two threads that are never idle need two cores";
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> all;
  constexpr std::pair<const char*, std::size_t> kSizes[] = {
      {"1KB", std::size_t{1} << 10}, {"64KB", std::size_t{1} << 16}, {"1MB", std::size_t{1} << 20}};
  const auto offer_all = [&](const std::string& size, std::size_t bytes, int threads) {
    offer<OurPayload>(all, conditions, size, bytes, threads);
    offer<SharedPointer>(all, conditions, size, bytes, threads);
    offer<DeepCopy>(all, conditions, size, bytes, threads);
  };
  for (const auto& [size, bytes] : kSizes) offer_all(size, bytes, 1);
  offer_all("1MB", kSizes[2].second, 2);
  return all;
}

}  // namespace

Group payload_clone() {
  return {"payload_clone", "one more owner of the same bytes, whatever their size", "Bytes Clone Latency", benchmarks};
}

}  // namespace weir::channel_bench
