#include "lab/queues/stamps.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::uint64_t kFlagElements = 16;  // a cache line each, so that setting one does not slow kernels that poll
                                             // others
constexpr std::int64_t kPollNs = 20'000;

std::span<std::int32_t> elements(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::int32_t*>(bytes.data()), bytes.size() / sizeof(std::int32_t)};
}

bool has_happened(const Moment& moment) { return moment.started_ns != 0 && moment.ended_ns != 0; }

}  // namespace

StampStep::StampStep(std::uint32_t flags, std::uint32_t moments)
    : builder_(1),
      flags_(builder_.host(ElementType::i32, std::max(1u, flags) * kFlagElements, Init::constant)),
      moments_(builder_.host(ElementType::i32, std::uint64_t{moments} * kMomentElements, Init::constant)),
      flag_count_(flags),
      moment_count_(moments) {}

CommandId StampStep::hold(Lane lane, std::uint32_t flag, std::uint32_t moment, std::uint32_t count,
                          std::int64_t limit_ns) {
  const KernelShape shape{.type = ElementType::i32, .dims = {limit_ns}, .scalars = {}};
  return builder_.launch("hold", lane, shape,
                         {{flags_, flag * kFlagElements, 1},
                          {moments_, std::uint64_t{moment} * kMomentElements, std::uint64_t{count} * kMomentElements}});
}

CommandId StampStep::stamp(Lane lane, std::int64_t duration_ns, std::uint32_t moment, std::uint32_t blocks,
                           std::uint32_t count) {
  const KernelShape shape{.type = ElementType::i32, .dims = {duration_ns, blocks}, .scalars = {}};
  const std::uint64_t claimed = std::max(blocks, count);
  return builder_.launch("stamp", lane, shape,
                         {{moments_, std::uint64_t{moment} * kMomentElements, claimed * kMomentElements}});
}

StampSession::StampSession(Device& device, StampStep step, int streams, const SessionOptions& options) {
  step_ = std::make_unique<const Step>(std::move(step.builder_).seal(streams));
  placement_ = std::make_unique<const Placement>(place(*step_, "natural"));
  SessionOptions unmarked = options;
  unmarked.marks_iterations = false;
  session_ = device.prepare(*step_, *placement_, unmarked);
  all_.resize(step_->commands().size());
  std::iota(all_.begin(), all_.end(), CommandId{0});
  flags_ = elements(session_->host_memory(step.flags_)).first(std::max(1u, step.flag_count_) * kFlagElements);
  moments_ = elements(session_->host_memory(step.moments_)).first(std::size_t{step.moment_count_} * kMomentElements);
}

void StampSession::begin() {
  for (std::size_t i = 0; i < flags_.size(); i += kFlagElements)
    std::atomic_ref(flags_[i]).store(0, std::memory_order_release);  // pairs with the acquire in hold
  for (std::size_t i = 0; i < moments_.size(); i += kMomentElements) {
    write_started(&moments_[i], 0);
    write_ended(&moments_[i], 0);
  }
  session_->begin_iteration();
}

void StampSession::release(std::uint32_t flag) noexcept {
  std::atomic_ref(flags_[flag * kFlagElements]).store(1, std::memory_order_release);  // pairs with the acquire in hold
}

Moment StampSession::moment(std::uint32_t index) const noexcept {
  return read_moment(&moments_[std::size_t{index} * kMomentElements]);
}

std::vector<Moment> StampSession::moments(std::uint32_t first, std::uint32_t count) const {
  std::vector<Moment> found(count);
  for (std::uint32_t i = 0; i < count; ++i) found[i] = moment(first + i);
  return found;
}

bool StampSession::await_started(std::uint32_t index, std::int64_t limit_ns) noexcept {
  const std::int64_t since_ns = session_->now_ns();
  while (moment(index).started_ns == 0) {
    if (session_->now_ns() - since_ns > limit_ns) return false;
    session_->pause(kPollNs);
  }
  return true;
}

std::int64_t makespan_ns(std::span<const Moment> moments) {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Moment& moment : moments) {
    if (!has_happened(moment)) continue;
    first = std::min(first, moment.started_ns);
    last = std::max(last, moment.ended_ns);
  }
  return last < first ? 0 : last - first;
}

int most_at_once(std::span<const Moment> moments) {
  std::vector<TimeInterval> stretches;
  for (const Moment& moment : moments)
    if (has_happened(moment)) stretches.push_back({moment.started_ns, moment.ended_ns});
  return static_cast<int>(most_at_once(stretches));
}

ConcurrentBlocks count_concurrent_blocks(Device& device) {
  constexpr std::uint32_t kMaxBlocks = 1 << 16;
  constexpr std::int64_t kDurationNs = 300'000;
  ConcurrentBlocks found;
  for (std::uint32_t blocks = 256; blocks <= kMaxBlocks; blocks *= 4) {
    StampStep step(0, blocks);
    const CommandId stamp = step.stamp({}, kDurationNs, 0, blocks);
    StampSession session(device, std::move(step), 1);
    // Twice: at the first launch, threads are asleep and code is not loaded.
    for (int i = 0; i < 2; ++i) {
      session.begin();
      session.submit(stamp);
      session.finish();
      found.blocks = std::max(found.blocks, most_at_once(session.moments(0, blocks)));
    }
    found.is_more = found.blocks == static_cast<int>(blocks);
    // If at most half of a launch fits at once, it certainly needed more than one wave.
    if (found.blocks <= static_cast<int>(blocks / 2)) break;
  }
  return found;
}

}  // namespace weir
