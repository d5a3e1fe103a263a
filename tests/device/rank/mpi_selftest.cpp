// Runs under mpirun: the module's collectives against sums and moves worked out here. Exits 1 and says where on the
// first rank that sees something wrong; ends all ranks then.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "device/rank/mpi.h"
#include "kernel/random.h"

namespace weir {
namespace {

void expect(bool is_true, const std::string& claim) {
  if (!is_true) fail("not so: " + claim);
}

float value_of(int rank, std::uint64_t i, std::uint64_t salt) {
  // Small whole numbers: sums are exact in every type.
  return static_cast<float>(random_bits(static_cast<std::uint64_t>(rank) * 77 + salt, i) % 9);
}

std::vector<std::byte> encoded(ElementType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* const to = bytes.data() + i * size_of(type);
    if (type == ElementType::i32) {
      const auto whole = static_cast<std::int32_t>(values[i]);
      std::memcpy(to, &whole, sizeof whole);
    } else {
      with_float_type(type, [&](auto* none) {
        using T = std::remove_pointer_t<decltype(none)>;
        const T stored = from_float<T>(values[i]);
        std::memcpy(to, &stored, sizeof stored);
      });
    }
  }
  return bytes;
}

// A collective in flight, its input, and what must come out.
struct Case {
  int channel = 0;
  CollectiveOp op{};
  ElementType type{};
  std::vector<std::byte> from, to, expected;
  std::uint64_t count = 0;
  RankGroup group = {};
  Communicator::Request request = 0;

  // `ranks` within the group, if there is one.
  Case(Ranks ranks, int channel, CollectiveOp op, ElementType type, std::uint64_t n, std::uint64_t salt)
      : channel(channel), op(op), type(type) {
    const auto parts = static_cast<std::uint64_t>(ranks.count);
    const auto own = static_cast<std::uint64_t>(ranks.rank);
    const bool takes_all = op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all;
    count = takes_all ? n * parts : n;
    std::vector<float> in(count);
    for (std::uint64_t i = 0; i < count; ++i) in[i] = value_of(ranks.rank, i, salt);
    std::vector<float> out(op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all ? n * parts : n);
    for (std::uint64_t i = 0; i < out.size(); ++i) {
      const auto source = static_cast<int>(i / n);
      switch (op) {
        case CollectiveOp::all_gather:
          out[i] = value_of(source, i % n, salt);
          break;
        case CollectiveOp::all_to_all:
          out[i] = value_of(source, own * n + i % n, salt);
          break;
        case CollectiveOp::shift:
          out[i] = value_of((ranks.rank + ranks.count - 1) % ranks.count, i, salt);
          break;
        case CollectiveOp::all_reduce:
        case CollectiveOp::reduce_scatter:
          for (int rank = 0; rank < ranks.count; ++rank)
            out[i] += value_of(rank, op == CollectiveOp::all_reduce ? i : own * n + i, salt);
          break;
      }
    }
    from = encoded(type, in);
    expected = encoded(type, out);
    to.assign(expected.size(), std::byte{0xff});
  }

  void start(Communicator& ranks) { request = ranks.start(channel, {op, group}, type, from.data(), to.data(), count); }
  void finish(Communicator& ranks) {
    while (!ranks.test(request)) {
    }
    expect(to == expected,
           fmt::format("{} of {} elements of {} on channel {}", name_of(op), count, name_of(type), channel));
  }
};

constexpr CollectiveOp kOps[] = {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce,
                                 CollectiveOp::all_to_all, CollectiveOp::shift};
constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32};

void check_collectives(Communicator& ranks) {
  ranks.open_channels(1);
  for (const CollectiveOp op : kOps)
    for (const ElementType type : kTypes)
      for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{33}, std::uint64_t{1} << 20}) {
        Case one(ranks.ranks(), 0, op, type, n, n);
        one.start(ranks);
        one.finish(ranks);
      }
  std::vector<float> own(16, static_cast<float>(ranks.ranks().rank + 1));
  const auto request = ranks.start(0, CollectiveOp::all_reduce, ElementType::f32, own.data(), own.data(), own.size());
  while (!ranks.test(request)) {
  }
  const auto count = static_cast<float>(ranks.ranks().count);
  expect(own[7] == count * (count + 1) / 2, "all_reduce in place");
}

// Ranks start channels in different orders; within a channel the order is the same.
void check_channels(Communicator& ranks) {
  constexpr int kChannels = 5, kDepth = 4;
  ranks.open_channels(kChannels);
  std::vector<Case> cases;
  for (int depth = 0; depth < kDepth; ++depth)
    for (int channel = 0; channel < kChannels; ++channel)
      cases.emplace_back(ranks.ranks(), channel, kOps[(depth + channel) % 5], kTypes[depth], 5000,
                         static_cast<std::uint64_t>(depth * kChannels + channel));
  for (int depth = 0; depth < kDepth; ++depth)
    for (int i = 0; i < kChannels; ++i) {
      const int channel = (ranks.ranks().rank * 2 + (depth % 2 == 0 ? i : kChannels - 1 - i)) % kChannels;
      cases[static_cast<std::size_t>(depth * kChannels + channel)].start(ranks);
    }
  for (std::size_t i = 0; i < cases.size(); ++i)
    cases[ranks.ranks().rank == 1 ? cases.size() - 1 - i : i].finish(ranks);
}

// Each group exchanges its own data, at the same time as the others, on the channels of its own.
void check_groups(Communicator& ranks) {
  const Ranks all = ranks.ranks();
  for (const RankGroup& group : {RankGroup{1, 2}, RankGroup{1, 2, 1}, RankGroup{all.count - 1, 2}}) {
    if (all.count % group.stride != 0 || group.within(all).count == 1) continue;
    ranks.open_group(group, 2);
    std::vector<Case> cases;
    for (const CollectiveOp op : kOps)
      for (const ElementType type : kTypes)
        cases.emplace_back(group.within(all), static_cast<int>(cases.size()) % 2, op, type, 100,
                           static_cast<std::uint64_t>(group.first(all.rank)) * 1000 + cases.size());
    for (Case& each : cases) {
      each.group = group;
      each.start(ranks);
    }
    for (Case& each : cases) each.finish(ranks);
  }
}

void check_refusals(Communicator& ranks) {
  const auto is_refused = [&](int channel, const Collective& op, std::uint64_t count) {
    float from[4] = {}, to[16] = {};
    try {
      ranks.start(channel, op, ElementType::f32, from, to, count);
    } catch (const Error& error) {
      return std::string(error.what()).find(fmt::format("rank {}", ranks.ranks().rank)) != std::string::npos;
    }
    return false;
  };
  expect(is_refused(99, CollectiveOp::all_reduce, 4), "a closed channel is refused");
  expect(is_refused(0, {CollectiveOp::all_reduce, {1, 3, 1}}, 4), "a group that is not open is refused");
  expect(is_refused(0, CollectiveOp::all_reduce, std::uint64_t{1} << 32), "counts beyond int are refused");
  if (ranks.ranks().count == 3) expect(is_refused(0, CollectiveOp::all_to_all, 4), "parts of unequal size are refused");
}

void check_runner_calls(Communicator& ranks) {
  const int rank = ranks.ranks().rank, count = ranks.ranks().count;
  ranks.barrier();
  expect(!ranks.any(false), "nobody claims");
  expect(ranks.any(rank == count - 1), "one claims");
  const std::string text(static_cast<std::size_t>(3'000'000 * rank + 1), static_cast<char>('a' + rank));
  const std::vector<std::string> texts = ranks.gather(text);
  expect(texts.size() == (rank == 0 ? static_cast<std::size_t>(count) : 0), "gather gives rank 0 all texts");
  for (std::size_t i = 0; i < texts.size(); ++i)
    expect(texts[i] == std::string(3'000'000 * i + 1, static_cast<char>('a' + i)), "gather keeps texts whole");
  expect(broadcast_text(ranks, rank == 0 ? "told by 0" : "other") == "told by 0", "broadcast_text");
  std::vector<std::byte> bytes(10'000'000, static_cast<std::byte>(rank));
  ranks.broadcast(bytes, count - 1);
  expect(bytes.front() == static_cast<std::byte>(count - 1) && bytes.back() == bytes.front(),
         "broadcast from the last");
  const RankClockOffset clock = ranks.clock_offset();
  expect(rank != 0 || (clock.offset_ns == 0 && clock.error_ns == 0), "rank 0 is its own clock");
  // One host here, so one clock: the measured offset is within its own error of 0.
  if (ranks.local_ranks().count == count)
    expect(clock.offset_ns <= clock.error_ns && -clock.offset_ns <= clock.error_ns, "clock offsets hold their error");
}

int selftest(const std::filesystem::path& binary) {
  const MpiFound found = find_mpi_module(binary);
  if (found.module == nullptr) {
    fmt::print(stderr, "mpi_selftest: {}\n", found.reason);
    return 1;
  }
  const auto ranks = found.module->open();
  try {
    check_collectives(*ranks);
    check_channels(*ranks);
    check_groups(*ranks);
    check_refusals(*ranks);
    check_runner_calls(*ranks);
    expect(ranks->local_ranks().count <= ranks->ranks().count, "no more ranks here than everywhere");
  } catch (const Error& error) {
    fmt::print(stderr, "mpi_selftest: rank {}: {}\n", ranks->ranks().rank, error.what());
    ranks->abort(1);
  }
  if (ranks->ranks().rank == 0) fmt::print("{} ranks of {} agree\n", ranks->ranks().count, ranks->library());
  return 0;
}

}  // namespace
}  // namespace weir

int main() { return weir::selftest(std::filesystem::read_symlink("/proc/self/exe")); }
