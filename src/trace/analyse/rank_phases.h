// Which rank is slowest in each phase of a step, and why: its kernels take longer, it does more, or its host is later.
// Each device counts as a rank. Ranks are summed up one by one, so their timelines may be in different processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Of what the device did between its first start and its last end, but for the last, which is the host's: they add up.
enum class RankPhase : std::uint8_t {
  forward,
  backward,
  optimizer,
  other,          // none of these, or the source has no operators
  communication,  // exposed: while nothing else ran
  data_loading    // the program waited for its data loader
};
inline constexpr std::size_t kRankPhases = 6;
const char* to_string(RankPhase phase) noexcept;

enum class SlowReason : std::uint8_t {
  alike,           // less than 2 % above the median
  longer_kernels,  // some commands take longer than the median rank's
  slower_clock,    // nearly all of them do, by the same factor
  more_work,       // more commands
  late_host,       // the device was idle because the host had not submitted the phase's next command
  waiting,         // idle, although the next command was submitted; or in collectives, for other ranks
  loading          // the data loader
};
const char* to_string(SlowReason reason) noexcept;

// One device, with what the caller knows of it.
struct RankOfPhases {
  std::uint16_t device = 0;
  std::size_t steps = 0;  // 0 if unknown
  std::optional<double> loading_ns, waiting_ns;
  std::array<double, kRankPhases> ns{};  // of one step where all ranks have steps, else of everything; filled in
};

// Commands of one name that an operator launched.
struct SlowCommands {
  std::uint32_t operator_name = kNoName, shapes = kNoName;
  std::uint32_t name = kNoName;
  SpanKind kind = SpanKind::kernel;
  double more_ns = 0;  // than on the median rank
};

struct SlowestRank {
  RankPhase phase = RankPhase::other;
  std::size_t slowest = 0, median = 0;  // positions in the list of ranks
  double ns = 0, median_ns = 0;
  SlowReason reason = SlowReason::alike;
  // Parts of the difference, which add up to it (of data loading there are none): below 0 where the median rank has
  // more.
  double longer_ns = 0, more_work_ns = 0, late_host_ns = 0, waiting_ns = 0;
  std::optional<double> ratio;       // of durations of the same commands
  std::optional<SlowCommands> most;  // that contribute most to longer kernels or more work
};

// operator, shapes, name, kind
using CommandKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, SpanKind>;
struct CommandSum {
  double count = 0, ns = 0;
};

struct PhaseUse {
  double busy_ns = 0, late_host_ns = 0, waiting_ns = 0;
  std::map<CommandKey, CommandSum> commands;  // busy: where two run at once, the one that began first counts
  double ns() const noexcept { return busy_ns + late_host_ns + waiting_ns; }
};
// What one device did, in all its steps together.
using RankUse = std::array<PhaseUse, kRankPhases>;

// By position in `devices`; names are those of the timeline.
std::vector<RankUse> rank_uses(const Timeline& timeline, std::span<const std::uint16_t> devices);

struct RankPhases {
  std::vector<RankOfPhases> ranks;
  bool are_steps = false;           // times are of one step
  std::vector<SlowestRank> phases;  // of which there is some; by RankPhase
};

// `ranks` are devices with commands, two or more, in the order of the result; `uses` are theirs. Needs no commands, and
// leaves out the reasons.
RankPhases slowest_ranks(std::vector<RankOfPhases> ranks, std::span<const RankUse> uses);

// Adds the reasons. Needs the commands of the slowest and the median rank of each phase; names are those of one list.
void explain_slowest(RankPhases& found, std::span<const RankUse> uses);

}  // namespace weir
