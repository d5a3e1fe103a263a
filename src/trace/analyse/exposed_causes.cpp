#include "trace/analyse/exposed_causes.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trace/analyse/collectives.h"
#include "trace/analyse/iterations.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// Waits that are followed from one command to the one before it; a longer chain is a dependency in any case.
constexpr int kMaxHops = 256;

struct CauseWords {
  const char *name, *meaning, *advice;
};
// By ExposedCause.
constexpr std::array<CauseWords, kExposedCauses> kWords = {{
    {"dependency", "what came next needed the collective, which could not have started earlier",
     "move independent work beside the collective, or make it shorter: fewer bytes, another algorithm, smaller pieces "
     "that start earlier"},
    {"shallow_prefetch",
     "what came next needed the collective, which had waited for a kernel that still used its buffer",
     "prefetch one layer further (fsdp.prefetch), so that the next gather has a buffer of its own"},
    {"shared_queue", "a command was ready, behind another stream's in its hardware queue",
     "give streams queues of their own (CUDA_DEVICE_MAX_CONNECTIONS, GPU_MAX_HW_QUEUES, --hw-queues), use fewer "
     "streams, or submit in another order"},
    {"launch_bound", "the host was late with the next command or the collective, or the device was just launching it",
     "submit earlier: graphs, fewer and larger kernels, a host thread of its own for communication"},
    {"no_room", "a command was ready, with nothing in front of it in its queue, and found no free compute units",
     "leave room beside the larger one: fewer channels for collectives (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS), smaller "
     "kernels, or a priority for the one that waits"},
    {"rank_skew", "the collective waited for the last rank",
     "look at what the last rank does before the collective: uneven work, a slower device or host"},
    {"step_end", "nothing followed in the iteration",
     "let the next iteration begin earlier, or split the last collective so that most of it runs before"},
    {"unknown", "the source does not report it",
     "trace the host's calls and the waits between streams too (weir profile, CUPTI's or rocprofv3's API traces)"},
}};

// A stretch of communication during which nothing else runs.
struct Piece {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint32_t owner = 0;  // of the collectives that run at once, the one that started first
};

bool is_communication(const Span& span) noexcept { return span.kind == SpanKind::collective; }

// Whether a command could hide communication. Commands without length hide nothing.
bool could_hide(const Span& span) noexcept {
  return is_device_work(span) && !is_communication(span) && span.ended_ns > span.started_ns;
}

std::vector<Piece> exposed_pieces(const Timeline& timeline, std::span<const std::uint32_t> order) {
  TimeIntervals others;
  std::vector<Piece> owned;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (span.kind == SpanKind::host) continue;
    if (!is_communication(span)) {
      append(others, {span.started_ns, span.ended_ns});
      continue;
    }
    const std::int64_t from = owned.empty() ? span.started_ns : std::max(span.started_ns, owned.back().to_ns);
    if (from < span.ended_ns) owned.push_back({from, span.ended_ns, index});
  }
  std::vector<Piece> pieces;
  auto other = others.begin();
  for (const Piece& whole : owned) {
    std::int64_t from = whole.from_ns;
    while (other != others.end() && other->to_ns <= from) ++other;
    // A command that reaches beyond this piece may also cover part of the next.
    for (auto at = other; at != others.end() && at->from_ns < whole.to_ns; ++at) {
      if (from < at->from_ns) pieces.push_back({from, at->from_ns, whole.owner});
      from = at->to_ns;
    }
    if (from < whole.to_ns) pieces.push_back({from, whole.to_ns, whole.owner});
  }
  return pieces;
}

class Attribution {
 public:
  Attribution(const Timeline& timeline, std::span<const LastArrival> arrivals, std::span<const TraceRange> ranges)
      : timeline_(timeline),
        order_(timed_by_start(timeline)),
        floors_(floors_of(timeline, order_)),
        limit_ns_(gap_limit(timeline, order_).ns),
        kinds_(collective_kinds(timeline)),
        arrived_(timeline.spans.size(), kNoTime),
        turns_(timeline.spans.size(), kNoTime) {
    for (const LastArrival& arrival : arrivals)
      if (arrival.span < arrived_.size()) arrived_[arrival.span] = arrival.arrived_ns;
    place(ranges);
    find_holders();  // before take_turns(): queues are independent of turns
    take_turns();
    find_waiting();
  }

  ExposedCauses run() {
    found_.are_dependencies_known = timeline_.has_dependencies;
    found_.are_submissions_known = std::any_of(order_.begin(), order_.end(), [&](std::uint32_t i) {
      return is_device_work(timeline_.spans[i]) && handed_over_ns(timeline_.spans[i]) != kNoTime;
    });
    for (const Piece& piece : exposed_pieces(timeline_, order_)) explain(piece);
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kExposedCauses; ++i) {
      found_.causes[i].total_ns = static_cast<double>(totals_[i]);
      all += totals_[i];
    }
    found_.exposed_ns = static_cast<double>(all);
    found_.reason = reason();
    return std::move(found_);
  }

 private:
  // How much earlier a collective could have run, and what prevented it.
  struct Lateness {
    ExposedCause cause = ExposedCause::dependency;
    std::uint64_t ns = 0;
    std::uint32_t blocker = kNoSpan;
  };
  // A command that is ready and has not started.
  struct Waiting {
    std::int64_t ready_ns = 0, started_ns = 0;
    std::uint32_t span = 0;

    bool operator>(const Waiting& other) const {
      return std::tie(ready_ns, started_ns, span) > std::tie(other.ready_ns, other.started_ns, other.span);
    }
  };

  const Span& span(std::uint32_t index) const { return timeline_.spans[index]; }
  bool is_clear(std::int64_t from_ns, std::int64_t to_ns) const {
    return length_between(from_ns, to_ns) > timeline_.clock_error_ns;
  }
  bool is_usual_gap(std::int64_t from_ns, std::int64_t to_ns) const {
    const auto gap_ns = length_between(from_ns, to_ns);
    return gap_ns <= std::max(limit_ns_, timeline_.clock_error_ns);
  }
  // The moment from which only the device held it; the host's time is used where it is later by more than the clock
  // error.
  std::int64_t ready_ns(std::uint32_t index) const {
    const std::int64_t handed = handed_over_ns(span(index)), floor = floors_.floor_ns[index];
    return is_clear(floor, handed) ? handed : floor;
  }

  void place(std::span<const TraceRange> ranges) {
    const Iterations placed = place_in_iterations(timeline_, order_, ranges);
    iteration_.assign(timeline_.spans.size(), kNoIteration);
    begins_.assign(placed.numbers.size() + 1, INT64_MAX);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      iteration_[order_[i]] = placed.of[i];
      const std::int64_t handed = handed_over_ns(span(order_[i]));
      std::int64_t& begin = begins_[group_of(order_[i])];
      begin = std::min(begin, handed != kNoTime ? handed : span(order_[i]).started_ns);
      if (could_hide(span(order_[i]))) hiding_.push_back(order_[i]);
    }
    numbers_ = placed.numbers;
    // A stable sort keeps them ordered by start within an iteration.
    std::stable_sort(hiding_.begin(), hiding_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return group_of(a) < group_of(b); });
  }
  std::size_t group_of(std::uint32_t index) const {
    return iteration_[index] == kNoIteration ? begins_.size() - 1 : iteration_[index];
  }

  // Collectives share links and usually a communicator, which runs them one after another whatever their streams. One
  // that starts right when another ends had to wait for that one, not for free compute units.
  void take_turns() {
    std::uint32_t last = kNoSpan;  // of those that started before, the one that ended last
    for (const std::uint32_t index : order_) {
      if (!is_communication(span(index))) continue;
      if (last != kNoSpan) {
        const std::int64_t ended = span(last).ended_ns;
        turns_[index] = ended;
        if (ended <= span(index).started_ns && is_usual_gap(ended, span(index).started_ns) &&
            ended > floors_.floor_ns[index]) {
          floors_.floor_ns[index] = ended;
          floors_.last[index] = last;
        }
      }
      if (last == kNoSpan || span(index).ended_ns >= span(last).ended_ns) last = index;
    }
  }

  // Until when a command of another stream kept its queue busy or blocked it.
  void find_holders() {
    held_until_.assign(timeline_.spans.size(), kNoTime);
    holder_.assign(timeline_.spans.size(), kNoSpan);
    const auto hold = [&](std::uint32_t first, std::uint32_t second, std::int64_t until) {
      if (until <= held_until_[second]) return;
      held_until_[second] = until;
      holder_[second] = first;
    };
    visit_neighbours(timeline_, order_, [&](std::uint32_t first, std::uint32_t second) {
      const Span &before = span(first), &after = span(second);
      if (before.stream == after.stream || after.started_ns < before.ended_ns) return;
      if (is_usual_gap(before.ended_ns, after.started_ns)) hold(first, second, before.ended_ns);
    });
    visit_blocked(timeline_, order_, floors_,
                  [&](std::uint32_t first, std::uint32_t second, std::int64_t, std::int64_t until) {
                    hold(first, second, until);
                  });
  }

  // Without dependencies it is not known which commands were ready.
  void find_waiting() {
    if (!timeline_.has_dependencies) return;
    for (const std::uint32_t index : hiding_) {
      if (handed_over_ns(span(index)) == kNoTime || !floors_.is_known[index]) continue;
      if (const std::int64_t ready = ready_ns(index); ready < span(index).started_ns)
        waiting_.push_back({ready, span(index).started_ns, index});
    }
    std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) { return b > a; });
  }

  void explain(Piece piece) {
    owner_ = piece.owner;
    const std::int64_t arrived = arrived_[piece.owner];
    if (arrived != kNoTime && is_clear(span(piece.owner).started_ns, arrived)) {
      const std::int64_t cut = std::clamp(arrived, piece.from_ns, piece.to_ns);
      add(ExposedCause::rank_skew, piece.from_ns, cut, kNoSpan, kNoSpan);
      piece.from_ns = cut;
    }
    if (piece.from_ns == piece.to_ns) return;
    while (next_waiting_ < waiting_.size() && waiting_[next_waiting_].ready_ns < piece.to_ns)
      ready_.push(waiting_[next_waiting_++]);
    while (!ready_.empty() && ready_.top().started_ns <= piece.from_ns) ready_.pop();
    // The first of the commands that were ready blocks from here on. Before that, the question is why the next command
    // was not ready.
    const std::int64_t cut = ready_.empty() ? piece.to_ns : std::max(piece.from_ns, ready_.top().ready_ns);
    if (piece.from_ns < cut) {
      const std::uint32_t next = next_of(piece);
      if (next == kNoSpan)
        add(ExposedCause::step_end, piece.from_ns, cut, kNoSpan, kNoSpan);
      else
        not_ready(next, piece.from_ns, cut);
    }
    if (cut < piece.to_ns) held(ready_.top().span, cut, piece.to_ns);
  }

  // The next command in the collective's iteration.
  std::uint32_t next_of(const Piece& piece) const {
    const auto key = [&](std::uint32_t i) { return std::pair(group_of(i), span(i).started_ns); };
    const std::pair wanted(group_of(piece.owner), piece.to_ns);
    const auto at = std::lower_bound(hiding_.begin(), hiding_.end(), wanted,
                                     [&](std::uint32_t i, const auto& value) { return key(i) < value; });
    return at == hiding_.end() || group_of(*at) != wanted.first ? kNoSpan : *at;
  }

  // `index` had not started by `to`: finds what it waited for, from the end backwards.
  void not_ready(std::uint32_t index, std::int64_t from, std::int64_t to) {
    for (int hop = 0; hop < kMaxHops; ++hop) {
      if (!floors_.is_known[index]) {
        lacks_ends_ = true;
        return add(ExposedCause::unknown, from, to, index, kNoSpan);
      }
      const std::int64_t floor = floors_.floor_ns[index];
      if (const std::int64_t after = std::max(from, floor); after < to) {
        const std::int64_t handed = handed_over_ns(span(index));
        if (handed == kNoTime) {
          lacks_submissions_ = true;
          add(ExposedCause::unknown, after, to, index, kNoSpan);
        } else {
          const std::int64_t cut = std::clamp(ready_ns(index), after, to);
          add(ExposedCause::launch_bound, after, cut, index, kNoSpan);
          held(index, cut, to);
        }
        to = after;
      }
      if (from >= to) return;
      const std::uint32_t before = floors_.last[index];
      if (const std::int64_t running = std::max(from, span(before).started_ns); running < to) {
        waited_for(before, index, running, to);
        to = running;
      }
      if (from >= to) return;
      // Clock errors can create cycles of waits.
      if (std::tuple(span(before).started_ns, before) >= std::tuple(span(index).started_ns, index)) {
        lacks_ends_ = true;
        return add(ExposedCause::unknown, from, to, index, kNoSpan);
      }
      index = before;
    }
    add(ExposedCause::dependency, from, to, index, kNoSpan);
  }

  // `index` was ready but had not started.
  void held(std::uint32_t index, std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    if (!timeline_.has_dependencies) return add(ExposedCause::unknown, from, to, index, kNoSpan);
    if (const std::int64_t until = std::min(to, held_until_[index]); from < until) {
      add(ExposedCause::shared_queue, from, until, index, holder_[index], span(index).queue);
      from = until;
    }
    if (is_usual_gap(std::max(ready_ns(index), held_until_[index]), span(index).started_ns))
      return add(ExposedCause::launch_bound, from, to, index, kNoSpan);
    if (span(index).queue == kNoQueue) {
      lacks_queues_ |= from < to;
      return add(ExposedCause::unknown, from, to, index, kNoSpan);
    }
    add(ExposedCause::no_room, from, to, index, kNoSpan);
  }

  // `index` needs the end of `before`, which ran. Had `before` begun earlier, its last part would not be exposed.
  void waited_for(std::uint32_t before, std::uint32_t index, std::int64_t from, std::int64_t to) {
    if (!is_communication(span(before)))
      return add(span(before).kind == SpanKind::host ? ExposedCause::launch_bound : ExposedCause::dependency, from, to,
                 index, before);
    const auto [at, is_new] = lateness_.try_emplace(before);
    if (is_new) at->second = lateness_of(before);
    const Lateness& late = at->second;
    const std::int64_t ended = span(before).ended_ns;
    const std::uint64_t length = distance_ns(span(before).started_ns, ended);
    const std::int64_t begin = static_cast<std::int64_t>(static_cast<std::uint64_t>(ended) - std::min(length, late.ns));
    const std::int64_t cut = late.ns == 0 ? to : std::clamp(begin, from, to);
    add(ExposedCause::dependency, from, cut, index, before);
    const bool is_itself = late.cause != ExposedCause::shallow_prefetch;
    add(late.cause, cut, to, is_itself ? before : index, late.blocker,
        late.cause == ExposedCause::shared_queue ? span(before).queue : kNoQueue);
  }

  Lateness lateness_of(std::uint32_t index) const {
    const Span& collective = span(index);
    const std::int64_t handed = handed_over_ns(collective), floor = floors_.floor_ns[index];
    if (!timeline_.has_dependencies || !floors_.is_known[index] || handed == kNoTime) return {};
    const std::int64_t ready = ready_ns(index), begin = begins_[group_of(index)];
    if (!is_usual_gap(ready, collective.started_ns)) {
      if (held_until_[index] > ready)
        return {ExposedCause::shared_queue, distance_ns(ready, held_until_[index]), holder_[index]};
      if (collective.queue == kNoQueue) return {};
      return {ExposedCause::no_room, distance_ns(ready, collective.started_ns)};
    }
    if (ready > floor) return {ExposedCause::launch_bound, distance_ns(std::max(floor, begin), ready)};
    const std::uint32_t before = floors_.last[index];
    // A reduction needs the results of the command before it; a gather only needs a buffer to write to.
    const CollectiveKind kind = kinds_[index];
    if (kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast) return {};
    if (before == kNoSpan || span(before).kind != SpanKind::kernel || span(before).stream == collective.stream)
      return {};
    std::int64_t free = std::max({handed, begin, turns_[index]});
    if (const std::uint32_t on_stream = floors_.stream_before[index]; on_stream != kNoSpan)
      free = std::max(free, span(on_stream).ended_ns);
    for (std::uint32_t i = floors_.first_edge[index]; i < floors_.first_edge[index + 1]; ++i)
      if (const Span& other = span(floors_.edges[i].before); other.kind != SpanKind::kernel)
        free = std::max(free, other.ended_ns);
    return {ExposedCause::shallow_prefetch, distance_ns(free, floor), before};
  }

  void add(ExposedCause cause, std::int64_t from, std::int64_t to, std::uint32_t blocked, std::uint32_t blocker,
           std::int32_t queue = kNoQueue) {
    if (from >= to) return;
    const std::uint32_t iteration = iteration_[owner_];
    const ExposedStretch made{from,
                              to,
                              owner_,
                              blocked,
                              blocker,
                              queue,
                              iteration == kNoIteration ? span(owner_).iteration : numbers_[iteration]};
    totals_[static_cast<std::size_t>(cause)] += distance_ns(from, to);
    CauseTotal& total = found_.causes[static_cast<std::size_t>(cause)];
    ++total.stretches;
    const auto longer = [](const ExposedStretch& a, const ExposedStretch& b) {
      const std::uint64_t first = distance_ns(a.from_ns, a.to_ns), second = distance_ns(b.from_ns, b.to_ns);
      return std::tie(second, a.from_ns) < std::tie(first, b.from_ns);
    };
    keep_worst(total.worst, made, kMaxExposedStretches, longer);
  }

  std::string reason() const {
    if (found_.of(ExposedCause::unknown).stretches == 0) return "";
    if (!found_.are_submissions_known) return "the source does not report when the host submitted commands";
    if (!timeline_.has_dependencies) return "the source records no waits between streams";
    if (lacks_submissions_) return "the source does not report when the host submitted some commands";
    if (lacks_queues_) return "the source does not name the hardware queue of commands that were ready";
    return lacks_ends_ ? "some commands wait for others whose times are missing or contradict theirs" : "";
  }

  const Timeline& timeline_;
  const std::vector<std::uint32_t> order_;
  Floors floors_;
  const double limit_ns_;
  const std::vector<CollectiveKind> kinds_;
  std::vector<std::int64_t> arrived_, held_until_;  // by span
  std::vector<std::int64_t> turns_;                 // by span: when the collectives that started before it had ended
  std::vector<std::uint32_t> iteration_, holder_;   // by span
  std::vector<std::uint32_t> numbers_;              // of iterations
  std::vector<std::int64_t> begins_;                // of iterations; the last entry is for commands that belong to none
  std::vector<std::uint32_t> hiding_;               // by iteration, by start
  std::vector<Waiting> waiting_;                    // by the moment when they became ready
  std::size_t next_waiting_ = 0;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> ready_;
  std::unordered_map<std::uint32_t, Lateness> lateness_;
  std::uint32_t owner_ = 0;
  std::array<std::uint64_t, kExposedCauses> totals_{};
  bool lacks_submissions_ = false, lacks_queues_ = false, lacks_ends_ = false;
  ExposedCauses found_;
};

}  // namespace

const char* to_string(ExposedCause cause) noexcept { return kWords[static_cast<std::size_t>(cause)].name; }
const char* meaning_of(ExposedCause cause) noexcept { return kWords[static_cast<std::size_t>(cause)].meaning; }
const char* advice_of(ExposedCause cause) noexcept { return kWords[static_cast<std::size_t>(cause)].advice; }

ExposedCauses exposed_causes(const Timeline& timeline, std::span<const LastArrival> arrivals,
                             std::span<const TraceRange> iterations) {
  return Attribution(timeline, arrivals, iterations).run();
}

}  // namespace weir
