#include "submit/scheduled.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "submit/hold_back.h"
#include "submit/sched/conductor.h"

namespace weir {
namespace {

constexpr int kMaxSpins = 1 << 30;

constexpr std::uint64_t bit(std::size_t stream) { return std::uint64_t{1} << stream; }

// A command is ready when everything that must be submitted before it was submitted (submit_predecessors()); the device
// waits for the ends, so that one command can follow another without a gap. Everything is on one thread: counting here
// costs a fraction of HoldBack's atomics.
class ScheduledSubmitter final : public Submitter {
 public:
  ScheduledSubmitter(const ScheduleRequest& request, const Step& step, const Placement& placement, Session& session,
                     int traced_iterations)
      : session_(session),
        conductor_(*request.policy, request.settings),
        max_in_flight_(static_cast<std::uint64_t>(request.in_flight)),
        nodes_(step.commands().size()),
        lanes_(static_cast<std::size_t>(placement.stream_count)),
        begun_ns_(static_cast<std::size_t>(traced_iterations), kNoTime) {
    link(step, placement);
    const std::int64_t now = session.now_ns();
    for (std::size_t stream = 0; stream < lanes_.size(); ++stream) {
      // Streams are seated in order, so a stream's number is its seat.
      conductor_.join(request.terms[stream], now);
      lanes_[stream].submitted = lanes_[stream].ended = *session.ended(static_cast<StreamId>(stream));
      // A device on which everything always counts as ended has no initial count.
      if (lanes_[stream].ended == Session::kAllEnded) lanes_[stream].submitted = lanes_[stream].ended = 0;
    }
  }

  void submit_step() noexcept override {
    const std::int64_t begun = session_.now_ns();
    if (iteration_ < begun_ns_.size()) begun_ns_[iteration_] = begun;
    ++iteration_;
    // What has ended since the last step belongs to the previous request: streams that come again arrive anew.
    look();
    conduct(begun);
    for (std::size_t stream = 0; stream < lanes_.size(); ++stream) {
      lanes_[stream].next = lanes_[stream].begin;
      note_head(stream);
    }
    for (std::size_t left = nodes_.size(); left != 0; --left) {
      for (int spins = 0;; spins = (spins + 1) % kMaxSpins) {
        const std::int64_t now = session_.now_ns();
        look();
        conduct(now);
        if (in_flight_ < max_in_flight_) break;
        session_.relax(spins);
      }
      submit_next();
    }
  }

  // Commands wait here from the beginning of the step: that is when the program wants them all.
  void stamp(Timeline& timeline) const override {
    for (Span& span : timeline.spans)
      if (span.iteration < begun_ns_.size()) span.enqueued_ns = begun_ns_[span.iteration];
  }

 private:
  struct Node {
    std::uint32_t pending;  // predecessors on other streams that are not yet submitted
    std::uint32_t initial;  // value of pending at the beginning of an iteration
    std::uint32_t first;    // index of its first successor on another stream
    std::uint32_t count;
  };
  struct Lane {
    std::uint32_t begin = 0, end = 0;  // its commands, in order_
    std::uint32_t next = 0;
    std::uint64_t submitted = 0;  // since the session began
    std::uint64_t ended = 0;      // of these, as far as seen
  };

  void link(const Step& step, const Placement& placement) {
    const auto before = submit_predecessors(step, placement);
    stream_of_ = placement.stream_of;
    std::vector<std::vector<CommandId>> after(nodes_.size());
    for (CommandId id = 0; id < nodes_.size(); ++id) {
      std::uint32_t others = 0;
      for (const CommandId other : before[id]) {
        if (stream_of_[other] == stream_of_[id]) continue;
        after[other].push_back(id);
        ++others;
      }
      nodes_[id].pending = nodes_[id].initial = others;
    }
    for (CommandId id = 0; id < nodes_.size(); ++id) {
      nodes_[id].first = static_cast<std::uint32_t>(successors_.size());
      nodes_[id].count = static_cast<std::uint32_t>(after[id].size());
      successors_.insert(successors_.end(), after[id].begin(), after[id].end());
    }
    order_.reserve(nodes_.size());
    for (std::size_t stream = 0; stream < lanes_.size(); ++stream) {
      lanes_[stream].begin = lanes_[stream].next = static_cast<std::uint32_t>(order_.size());
      for (CommandId id = 0; id < nodes_.size(); ++id)
        if (stream_of_[id] == stream) order_.push_back(id);
      lanes_[stream].end = static_cast<std::uint32_t>(order_.size());
    }
  }

  void note_head(std::size_t stream) noexcept {
    const Lane& lane = lanes_[stream];
    ready_ &= ~bit(stream);
    if (lane.next == lane.end) return;
    heads_[stream] = order_[lane.next];
    if (nodes_[heads_[stream]].pending == 0) ready_ |= bit(stream);
  }

  // Finds out which commands have ended.
  void look() noexcept {
    for (std::uint64_t streams = flying_; streams != 0; streams &= streams - 1) {
      const auto stream = static_cast<std::size_t>(std::countr_zero(streams));
      Lane& lane = lanes_[stream];
      const std::uint64_t seen = session_.ended(static_cast<StreamId>(stream)).value_or(Session::kAllEnded);
      // Never decreases: a device that had failed continues from its earlier count.
      const std::uint64_t ended = std::max(lane.ended, std::min(seen, lane.submitted));
      in_flight_ -= ended - lane.ended;
      lane.ended = ended;
      if (ended == lane.submitted) flying_ &= ~bit(stream);
    }
  }

  // A stream is active while it has a command on the device or could submit one. A stream that waits for another stream
  // is not: no client keeps it waiting, and it does not use the device's time.
  void conduct(std::int64_t now) noexcept {
    if (const std::uint64_t active = ready_ | flying_; active != conductor_.active()) {
      conductor_.set_active(active, now);
    } else if (now >= conductor_.next_change_ns()) {
      conductor_.advance(now);
    }
  }

  // Something is always ready while anything is left: of the commands not yet submitted, the first of the step waits
  // for nothing. Among ready streams with no other ready one before them, chooses the one whose command comes first in
  // the step; without branches, because the choice cannot be predicted.
  std::size_t first_stream() const noexcept {
    std::uint64_t least = UINT64_MAX;
    for (std::uint64_t streams = ready_; streams != 0; streams &= streams - 1) {
      const int stream = std::countr_zero(streams);
      const bool is_kept = (conductor_.yields_to(stream) & ready_) != 0;
      const std::uint64_t key = heads_[static_cast<std::size_t>(stream)] << 6 | static_cast<std::uint64_t>(stream);
      least = std::min(least, key | (std::uint64_t{is_kept} << 63));
    }
    return least & 63;
  }

  void submit_next() noexcept {
    const std::size_t first = first_stream();
    Lane& lane = lanes_[first];
    const CommandId id = order_[lane.next];
    session_.submit(std::span(order_).subspan(lane.next, 1));
    ++lane.next;
    ++lane.submitted;
    ++in_flight_;
    flying_ |= bit(first);
    Node& node = nodes_[id];
    node.pending = node.initial;  // for the next iteration: nobody decrements it before that
    for (std::uint32_t i = 0; i < node.count; ++i) {
      const CommandId next = successors_[node.first + i];
      if (--nodes_[next].pending == 0) note_head(stream_of_[next]);
    }
    note_head(first);
  }

  Session& session_;
  scheduler::Conductor conductor_;
  std::uint64_t max_in_flight_;
  std::vector<Node> nodes_;  // by command
  std::vector<CommandId> successors_;
  std::vector<StreamId> stream_of_;                            // by command
  std::vector<CommandId> order_;                               // stream by stream
  std::vector<Lane> lanes_;                                    // by stream
  std::array<std::uint64_t, scheduler::kMaxClients> heads_{};  // by stream: its next command
  std::uint64_t ready_ = 0;                                    // streams whose next command may be submitted
  std::uint64_t flying_ = 0;                                   // streams with commands on the device
  std::uint64_t in_flight_ = 0;                                // number of these commands
  std::uint64_t iteration_ = 0;
  std::vector<std::int64_t> begun_ns_;  // by traced iteration
};

}  // namespace

std::vector<scheduler::Terms> stream_terms(const Step& step, const Placement& placement) {
  std::vector<scheduler::Terms> terms(static_cast<std::size_t>(placement.stream_count));
  std::vector<bool> is_known(terms.size());
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const std::size_t stream = placement.stream_of[id];
    const int priority =
        std::clamp<int>(step.commands()[id].priority, scheduler::kLowestPriority, scheduler::kHighestPriority);
    terms[stream].priority = is_known[stream] ? std::max(terms[stream].priority, priority) : priority;
    is_known[stream] = true;
  }
  return terms;
}

std::unique_ptr<Submitter> scheduled_submitter(const ScheduleRequest& request, const Step& step,
                                               const Placement& placement, Session& session, int traced_iterations) {
  if (placement.stream_count > scheduler::kMaxClients)
    reject_setting(
        "schedule", request.policy->name,
        fmt::format("a policy ranks {} streams at most, not {}", scheduler::kMaxClients, placement.stream_count),
        "Use fewer --streams.");
  if (!session.ended(0))
    reject_setting("schedule", request.policy->name, "this device does not tell which commands have ended",
                   "Leave it out there.");
  return std::make_unique<ScheduledSubmitter>(request, step, placement, session, traced_iterations);
}

}  // namespace weir
