#include "run/recorded_hang_process.h"

#include <algorithm>
#include <map>

namespace weir {
namespace {

using record::Kind;
using record::kNone;
using Why = StreamStand::Why;

constexpr std::int64_t kSilentNs = 5'000'000'000;  // writing stacks takes the library up to two seconds

record::State recorded_state(const Recording& recording) { return static_cast<record::State>(recording.header.state); }

bool is_nothing_known(const Recording& recording) {
  return recorded_state(recording) == record::State::refused || recording.header.is_off != 0;
}

}  // namespace

ProcessHang::ProcessHang(const HangedProcess& process, std::int64_t now_ns, std::int64_t timeout_ns)
    : process_(process),
      recording_(process.recording),
      now_ns_(now_ns),
      timeout_ns_(std::max<std::int64_t>(timeout_ns, 0)),
      streams_(process.recording),
      stacks_(recorded_stacks(process.stacks)) {
  examine();
}

bool ProcessHang::has_ended_normally() const noexcept {
  return !process_.is_alive && recorded_state(recording_) == record::State::ended;
}

void ProcessHang::examine() {
  const record::Header& header = recording_.header;
  examine_streams();
  if (!process_.is_alive) {
    if (recorded_state(recording_) == record::State::ended || recorded_state(recording_) == record::State::refused)
      return;
    cause_ = HangCause::ended;
    since_ns_ = std::max(header.beat_ns, last_activity_ns());
    choose_root();
    return;
  }
  const bool is_stopped = process_.state == 'T' || process_.state == 't' || process_.state == 'Z';
  // Its own thread writes the time every few milliseconds.
  is_silent_ =
      is_stopped || (header.beat_ns != 0 && elapsed_ns(header.beat_ns, now_ns_) >= std::max(timeout_ns_, kSilentNs));
  if (is_silent_) {
    cause_ = HangCause::host;
    since_ns_ = header.beat_ns != 0 ? header.beat_ns : last_activity_ns();
  }
  if (!is_silent_ && is_nothing_known(recording_)) return;
  // The library's thread is not answered either while a launch waits in the driver because too much is outstanding.
  const bool has_long_call =
      std::any_of(recording_.threads.begin(), recording_.threads.end(), [&](const record::Thread& thread) {
        return is_in_call(thread) && elapsed_ns(thread.started_ns, now_ns_) >= timeout_ns_;
      });
  if (!is_silent_ || (has_long_call && !is_stopped && !is_nothing_known(recording_))) choose_root();
  if (root_ != nullptr) return;
  for (const record::Thread& thread : recording_.threads) {
    if (!is_in_call(thread) || elapsed_ns(thread.started_ns, now_ns_) < timeout_ns_ || is_explained(thread)) continue;
    if (thread_ == nullptr || thread.started_ns < thread_->started_ns) thread_ = &thread;
  }
  if (is_silent_) return;
  if (thread_ != nullptr) {
    cause_ = HangCause::driver;
    since_ns_ = thread_->started_ns;
    return;
  }
  const bool is_working =
      std::any_of(unfinished_.begin(), unfinished_.end(), [](const auto& one) { return one.is_certain; }) ||
      std::any_of(recording_.threads.begin(), recording_.threads.end(),
                  [&](const auto& thread) { return is_in_call(thread); });
  const std::int64_t last_ns = last_activity_ns();
  if (is_working || elapsed_ns(last_ns, now_ns_) < timeout_ns_) return;
  since_ns_ = last_ns;
  cause_ = HangCause::host;
  if (const RecordedStack* const main = main_stack(stacks_, recording_.header.pid)) awaited_ = awaited_process(*main);
  const auto is_gone = [](const RecordedChild& child) {
    return child.state == 'T' || child.state == 't' || child.state == 'Z' || child.state == 'X';
  };
  // A program without a loader may have children that are none of its business.
  const bool waits_for_child =
      awaited_ == AwaitedProcess::data_loader ||
      (awaited_ == AwaitedProcess::any && std::any_of(process_.children.begin(), process_.children.end(), is_gone)) ||
      (awaited_ == AwaitedProcess::any && !process_.children.empty());
  if (waits_for_child) cause_ = HangCause::child;
}

bool ProcessHang::is_in_call(const record::Thread& thread) const noexcept {
  return thread.id != 0 && thread.has_ended == 0 && thread.started_ns != 0;
}

// Whether a thread's call does not return before work of the stream has ended.
bool ProcessHang::is_waited_for(std::uint32_t stream) const {
  for (const record::Thread& thread : recording_.threads) {
    if (!is_in_call(thread)) continue;
    const auto kind = static_cast<Kind>(thread.kind);
    // A launch waits while too much is outstanding.
    if ((kind == Kind::stream_synchronize || record::is_command(kind)) && thread.stream == stream) return true;
    if (kind == Kind::context_synchronize && thread.context == recording_.streams[stream].context) return true;
    if (kind == Kind::event_synchronize && streams_.recorded_last(thread.object).stream == stream) return true;
  }
  return false;
}

void ProcessHang::examine_streams() {
  // A program whose stacks can be asked for has marks after all that is quiet.
  const bool has_all_marks = !process_.stacks.empty() || recording_.header.stacks_given != 0;
  for (std::uint32_t place = 0; place < streams_.size(); ++place) {
    if (!streams_.is_used(place) || !streams_.is_unfinished(place)) continue;
    Unfinished one;
    one.stream = place;
    one.is_certain = streams_.is_proven(place) || has_all_marks || is_waited_for(place);
    one.is_stuck = one.is_certain && elapsed_ns(streams_.since_ns(place), now_ns_) >= timeout_ns_;
    one.chain = streams_.chain_of(place);
    unfinished_.push_back(std::move(one));
  }
}

// The stream that most of the stuck ones wait for; of equals the one that has been there longest.
void ProcessHang::choose_root() {
  std::map<std::uint32_t, std::size_t> chains;  // by the stream at their end
  const auto end_of = [](const StreamChain& chain) {
    // All streams of a cycle are at its end: the one with the lowest place stands for them.
    std::uint32_t end = chain.stands.back().stream;
    for (std::size_t i = chain.cycle; chain.is_cycle() && i < chain.stands.size(); ++i)
      end = std::min(end, chain.stands[i].stream);
    return end;
  };
  for (const Unfinished& one : unfinished_)
    if (one.is_stuck) ++chains[end_of(one.chain)];
  std::uint32_t best = kNone;
  for (const auto& [stream, count] : chains)
    if (best == kNone || count > chains[best] ||
        (count == chains[best] && streams_.since_ns(stream) < streams_.since_ns(best)))
      best = stream;
  if (best == kNone) return;
  for (const Unfinished& one : unfinished_)
    if (one.is_stuck && end_of(one.chain) == best && (root_ == nullptr || one.stream == best)) root_ = &one.chain;
  const std::size_t inside = root_->is_cycle() ? root_->stands.size() - root_->cycle : 1;
  waiters_ = chains[best] > inside ? chains[best] - inside : 0;
  if (cause_ == HangCause::ended) return;
  const StreamStand& end = root_->stands.back();
  since_ns_ = streams_.since_ns(best);
  cause_ = root_->is_cycle()                                                      ? HangCause::cycle
           : end.why == Why::written || end.why == Why::foreign                   ? HangCause::value
           : !end.candidates.empty() && streams_.is_collective(end.candidates[0]) ? HangCause::collective
                                                                                  : HangCause::command;
}

// Whether a thread in a call waits for something that is under way or, as far as is known, goes on.
bool ProcessHang::is_explained(const record::Thread& thread) const {
  const auto moves = [&](std::uint32_t place) {
    const record::Stream& stream = recording_.streams[place];
    return streams_.is_used(place) && elapsed_ns(std::max(stream.ended_ns, stream.submitted_ns), now_ns_) < timeout_ns_;
  };
  if (thread.stream < streams_.size()) return moves(thread.stream);
  for (std::uint32_t place = 0; place < streams_.size(); ++place)
    if (recording_.streams[place].context == thread.context && moves(place)) return true;
  return false;
}

std::int64_t ProcessHang::last_activity_ns() const {
  std::int64_t last_ns = recording_.header.started_ns;
  const auto saw = [&](std::int64_t time_ns) {
    if (time_ns <= now_ns_) last_ns = std::max(last_ns, time_ns);  // later ones are wrong
  };
  for (const record::Stream& stream : recording_.streams)
    if (stream.is_used != 0) {
      saw(stream.submitted_ns);
      saw(stream.ended_ns);
    }
  for (const record::Thread& thread : recording_.threads)
    if (is_in_call(thread)) saw(thread.started_ns);
  for (auto entry = recording_.entries.rbegin(); entry != recording_.entries.rend(); ++entry)
    if (entry->ended_ns <= now_ns_) {
      saw(entry->ended_ns);
      break;
    }
  return last_ns;
}

ProcessHang::Collective ProcessHang::collective() const {
  Collective found;
  if (cause_ != HangCause::collective || root_ == nullptr) return found;
  const StreamStand& end = root_->stands.back();
  found.stream = end.stream;
  found.ordinal = streams_.collectives_before(end.stream, end.candidates[0].number) + 1;
  found.kernel = kernel_name_within(recording_.text(recording_.entries[end.candidates[0].entry].name), 48);
  return found;
}

std::vector<std::uint32_t> ProcessHang::streams_with_collectives() const {
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < streams_.size(); ++place)
    if (streams_.is_used(place) && recording_.streams[place].collectives != 0) places.push_back(place);
  return places;
}

std::uint64_t ProcessHang::collectives_submitted(std::uint32_t stream) const {
  if (stream != kNone) return recording_.streams[stream].collectives;
  std::uint64_t sum = 0;
  for (const std::uint32_t place : streams_with_collectives()) sum += recording_.streams[place].collectives;
  return sum;
}

std::uint64_t ProcessHang::collectives_ended(std::uint32_t stream) const {
  if (stream != kNone) return streams_.collectives_before(stream, streams_.ended(stream) + 1);
  std::uint64_t sum = 0;
  for (const std::uint32_t place : streams_with_collectives())
    sum += streams_.collectives_before(place, streams_.ended(place) + 1);
  return sum;
}

}  // namespace weir
