#include "run/recorded_hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/units.h"
#include "run/recorded_hang_process.h"
#include "run/recorded_hang_text.h"

namespace weir {
namespace {

using Processes = std::vector<ProcessHang>;

// The processes that take part in collectives: of each rank the one that has submitted most, and without ranks all that
// have submitted any. Children of a rank have its number in their environment, too.
std::vector<const ProcessHang*> participants(const Processes& all) {
  std::vector<const ProcessHang*> found;
  std::map<int, const ProcessHang*> by_rank;
  const auto commands = [](const ProcessHang& one) {
    std::uint64_t sum = 0;
    for (std::uint32_t place = 0; place < one.streams().size(); ++place) sum += one.streams().submitted(place);
    return sum;
  };
  for (const ProcessHang& one : all) {
    const int rank = one.process().rank;
    if (rank < 0) {
      if (!one.streams_with_collectives().empty()) found.push_back(&one);
      continue;
    }
    const ProcessHang*& best = by_rank[rank];
    if (best == nullptr || std::pair(one.collectives_submitted(record::kNone), commands(one)) >
                               std::pair(best->collectives_submitted(record::kNone), commands(*best)))
      best = &one;
  }
  for (const auto& [rank, one] : by_rank) found.push_back(one);
  return found;
}

// What is compared between ranks: the collectives of streams that correspond, or else of all streams together.
class CollectiveCounts {
 public:
  explicit CollectiveCounts(const std::vector<const ProcessHang*>& ranks) {
    std::optional<std::size_t> streams;
    for (const ProcessHang* rank : ranks) {
      const std::size_t count = rank->streams_with_collectives().size();
      // One that has never got so far says nothing about the others.
      if (count == 0) continue;
      if (streams && *streams != count) is_by_stream_ = false;
      streams = count;
    }
  }
  // Which of its streams with collectives this is.
  std::size_t index_of(const ProcessHang& rank, std::uint32_t stream) const {
    const std::vector<std::uint32_t> places = rank.streams_with_collectives();
    return static_cast<std::size_t>(std::find(places.begin(), places.end(), stream) - places.begin());
  }
  bool is_by_stream() const noexcept { return is_by_stream_; }
  std::uint64_t submitted(const ProcessHang& rank, std::size_t index) const {
    const std::vector<std::uint32_t> places = rank.streams_with_collectives();
    if (!is_by_stream_) return rank.collectives_submitted(record::kNone);
    return index < places.size() ? rank.collectives_submitted(places[index]) : 0;
  }
  std::uint64_t ended(const ProcessHang& rank, std::size_t index) const {
    const std::vector<std::uint32_t> places = rank.streams_with_collectives();
    if (!is_by_stream_) return rank.collectives_ended(record::kNone);
    return index < places.size() ? rank.collectives_ended(places[index]) : 0;
  }
  // The number of the collective that a rank is in: from 1.
  std::uint64_t current(const ProcessHang& rank) const {
    return is_by_stream_ ? rank.collective().ordinal : rank.collectives_ended(record::kNone) + 1;
  }

 private:
  bool is_by_stream_ = true;
};

std::string names_of(const std::vector<const ProcessHang*>& some) {
  constexpr std::size_t kListed = 3;
  std::string text;
  for (std::size_t i = 0; i < some.size() && i < kListed; ++i) {
    const bool is_last = i + 1 == some.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + some[i]->name();
  }
  if (some.size() > kListed) text += fmt::format(" and {} more", some.size() - kListed);
  return text;
}

struct Verdict {
  HangCause cause = HangCause::none;
  std::string culprit;
};

// Ranks that are in a collective and all that is known of the others.
Verdict judge_collective(const std::vector<const ProcessHang*>& ranks, const std::vector<const ProcessHang*>& waiting) {
  const CollectiveCounts counts(ranks);
  const ProcessHang* first = waiting[0];  // the one that has come farthest: all before it have ended somewhere
  for (const ProcessHang* one : waiting)
    if (counts.current(*one) > counts.current(*first)) first = one;
  const ProcessHang::Collective here = first->collective();
  const std::size_t index = counts.index_of(*first, here.stream);
  const std::uint64_t number = counts.current(*first);
  const std::string which = fmt::format("collective {} ({})", number, here.kernel);

  // The lower, the surer: 0 dead, 1 has submitted fewer, 2 is in an earlier one, 3 has submitted it and is stuck
  // elsewhere.
  struct Absent {
    const ProcessHang* rank;
    int order;
    std::uint64_t submitted;
  };
  std::vector<Absent> absent;
  std::vector<const ProcessHang*> inside;
  for (const ProcessHang* rank : ranks) {
    const std::uint64_t submitted = counts.submitted(*rank, index);
    const bool is_inside = rank->cause() == HangCause::collective;
    if (is_inside && (counts.current(*rank) == number || !counts.is_by_stream())) {
      inside.push_back(rank);
    } else if (is_inside) {
      absent.push_back({rank, 2, submitted});
    } else if (!rank->process().is_alive) {
      absent.push_back({rank, 0, submitted});
    } else if (submitted < number) {
      absent.push_back({rank, 1, submitted});
    } else if (counts.ended(*rank, index) < number) {
      absent.push_back({rank, 3, submitted});
    }
  }
  Verdict verdict{.cause = HangCause::collective, .culprit = {}};
  if (!absent.empty()) {
    std::stable_sort(absent.begin(), absent.end(), [](const Absent& a, const Absent& b) {
      return std::pair(a.order, a.submitted) < std::pair(b.order, b.submitted);
    });
    const Absent& culprit = absent[0];
    std::string what = culprit.rank->sentence(false);
    if (culprit.order == 2)
      what = fmt::format("it is still in collective {} ({})", counts.current(*culprit.rank),
                         culprit.rank->collective().kernel);
    verdict.culprit = fmt::format("{} has not joined {}, which {} {} in: ", culprit.rank->name(), which,
                                  names_of(inside), inside.size() == 1 ? "is" : "are");
    if (culprit.order == 1) verdict.culprit += fmt::format("it has submitted {}, and ", culprit.submitted);
    verdict.culprit += what;
    if (absent.size() > 1)
      verdict.culprit +=
          fmt::format("; {} more {} not joined either", absent.size() - 1, absent.size() == 2 ? "has" : "have");
    return verdict;
  }
  for (const ProcessHang* one : inside)
    if (const ProcessHang::Collective other = one->collective(); other.kernel != here.kernel) {
      verdict.culprit = fmt::format("the ranks do not run the same collective: {} is in {}, and {} in {}",
                                    first->name(), which, one->name(), other.kernel);
      return verdict;
    }
  verdict.culprit = first->sentence(true);
  verdict.culprit += inside.size() == 1
                         ? "; which other ranks have joined is not known, because their recordings are not here"
                         : fmt::format(
                               "; all {} ranks that are recorded have joined: look at other ranks, the network, "
                               "and the sizes that they were called with",
                               inside.size());
  return verdict;
}

// Where several processes are stuck, the one that explains most.
int order_of(HangCause cause) noexcept {
  switch (cause) {
    case HangCause::command:
      return 0;
    case HangCause::cycle:
      return 1;
    case HangCause::value:
      return 2;
    case HangCause::ended:
      return 3;
    case HangCause::child:
      return 4;
    case HangCause::driver:
      return 5;
    case HangCause::host:
      return 6;
    case HangCause::collective:
      return 7;
    case HangCause::none:
      break;
  }
  return 8;
}

Verdict judge(const Processes& all, std::int64_t timeout_ns) {
  const std::vector<const ProcessHang*> ranks = participants(all);
  std::vector<const ProcessHang*> waiting;
  for (const ProcessHang* rank : ranks)
    if (rank->cause() == HangCause::collective) waiting.push_back(rank);
  if (!waiting.empty()) return judge_collective(ranks, waiting);
  const ProcessHang* worst = nullptr;
  std::size_t stuck = 0;
  for (const ProcessHang& one : all) {
    if (one.cause() == HangCause::none) continue;
    ++stuck;
    // A process that does not run explains more than one that does and launches nothing.
    const auto key = [](const ProcessHang& process) {
      return std::pair(order_of(process.cause()), process.since_ns());
    };
    if (worst == nullptr || key(one) < key(*worst)) worst = &one;
  }
  if (worst == nullptr) {
    const bool is_over = !all.empty() && std::all_of(all.begin(), all.end(),
                                                     [](const ProcessHang& one) { return one.has_ended_normally(); });
    return {HangCause::none, all.empty() ? "there is no recorded process"
                             : is_over   ? "every recorded process has ended normally"
                                         : "nothing has stood still for " + format_duration(timeout_ns)};
  }
  Verdict verdict{worst->cause(), worst->sentence(true)};
  if (stuck > 1)
    verdict.culprit +=
        fmt::format("; {} other {} not go on either", stuck - 1, stuck == 2 ? "process does" : "processes do");
  return verdict;
}

}  // namespace

RecordedHang diagnose_recordings(std::span<const HangedProcess> processes, std::int64_t now_ns,
                                 std::int64_t timeout_ns) {
  Processes all;
  all.reserve(processes.size());
  for (const HangedProcess& process : processes) all.emplace_back(process, now_ns, timeout_ns);
  Verdict verdict = judge(all, timeout_ns);
  RecordedHang hang;
  hang.cause = verdict.cause;
  hang.culprit = std::move(verdict.culprit) + ".";
  hang.text = recorded_hang_text(hang.culprit, all, now_ns);
  return hang;
}

}  // namespace weir
