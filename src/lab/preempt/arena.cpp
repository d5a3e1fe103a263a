#include "lab/preempt/arena.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernel/toil.h"
#include "lab/preempt/victim.h"
#include "measure/statistics.h"
#include "submit/placement.h"

namespace weir::preempt {
namespace {

constexpr std::int64_t kHoldLimitNs = 100'000'000;  // the clock's kernel ends by itself after this time
constexpr std::size_t kClockFlag = 16;              // element index, one cache line after the victim's

}  // namespace

Capability can_observe(const DeviceInfo& info) {
  if (!info.runs()) return lacking("nothing takes any time on this device");
  if (!info.host_memory) return info.host_memory;
  return info.kernel_clock;
}

Arena::Arena(Device& device, const Options& options) : device_(device), info_(device.info()) {
  if (const Capability can = can_observe(info_); !can) fail("preemption cannot be observed here: " + can.reason);
  // Kernels of virtual and cpu devices read the host's own clock.
  has_own_clock_ = !info_.is_virtual && info_.backend != "cpu";
  build(options);
  warm_up();
}

void Arena::build(const Options& options) {
  StepBuilder builder(1);
  requests_ = options.requests;
  flag_ = builder.host(ElementType::i32, 32, Init::constant, 1, 0);
  if (options.victim != nullptr) {
    const VictimSize size = size_victim(device_, *options.victim);
    const VictimBuffers buffers = add_victim_buffers(builder, flag_, size, options.slots, info_.is_virtual);
    takes_units_ = options.is_stoppable || options.victim->kind == VictimKind::persistent;
    // Limits how many jobs of a victim that takes units may wait.
    slots_ = takes_units_ ? std::min<std::uint32_t>(options.slots, kToilCursors - 1) : options.slots;
    units_ = size.units();
    waves_ = size.waves;
    block_words_ = size.memory_words > 0 ? size.amount : 0;
    blocks_at_once_ = size.blocks_at_once;
    first_launch_ = builder.command_count();
    for (std::uint32_t slot = 0; slot < slots_; ++slot)
      add_victim(builder, {.stream = kVictimStream, .role = 0}, size, buffers, slot, takes_units_,
                 options.is_stoppable);
    records_ = buffers.records;
    state_ = buffers.state;
    done_ = buffers.done;
    // A simulated block with several units counts none of them.
    is_counted_ = !info_.is_virtual || options.is_stoppable || !takes_units_;
  }
  const auto count = static_cast<std::uint64_t>(std::max(1, requests_));
  moments_ = builder.host(ElementType::i32, (count + 1) * kMomentElements, Init::constant, 1, 0);
  hold_ = builder.launch("hold", {.stream = kVictimStream, .role = 1},
                         {.type = ElementType::i32, .dims = {kHoldLimitNs}, .scalars = {}},
                         {{flag_, kClockFlag, 1}, {moments_, count * kMomentElements, kMomentElements}});
  first_request_ = builder.command_count();
  const Lane lane{
      .stream = kIntruderStream, .role = 1, .priority = static_cast<std::int8_t>(options.intruder_priority)};
  for (std::uint64_t i = 0; i < count; ++i)
    builder.launch("stamp", lane, {.type = ElementType::i32, .dims = {options.intruder_ns, 1}, .scalars = {}},
                   {{moments_, i * kMomentElements, kMomentElements}});
  step_ = std::make_unique<const Step>(std::move(builder).seal(2));
  placement_ = std::make_unique<const Placement>(place(*step_, "natural"));
  session_ =
      device_.prepare(*step_, *placement_, {.host_threads = info_.is_virtual ? 1 : 2, .marks_iterations = false});
  const auto elements = [&](BufferId buffer) {
    return reinterpret_cast<std::int32_t*>(session_->host_memory(buffer).data());
  };
  flag_at_ = elements(flag_);
  moments_at_ = elements(moments_);
  if (slots_ > 0) records_at_ = elements(records_);
}

// Drivers load code at a kernel's first launch. The victim's later launches show the real length of its blocks.
void Arena::warm_up() {
  constexpr std::int64_t kEnoughNs = 300'000'000;
  session_->begin_iteration();
  request(0);
  std::vector<double> times;
  std::int64_t spent_ns = 0;
  for (std::int64_t i = 0; slots_ > 0 && i < 4 && spent_ns < kEnoughNs; ++i) {
    launch(0, i, 0);
    session_->finish();
    const VictimRecord last = report(0);
    spent_ns += last.ended_ns - last.started_ns;
    if (i > 0 || spent_ns >= kEnoughNs) times.push_back(static_cast<double>(last.ended_ns - last.started_ns));
  }
  session_->finish();
  if (!times.empty()) {
    kernel_ns_ = static_cast<std::int64_t>(median(times));
    block_ns_ = kernel_ns_ / waves_;
  }
  session_->reset();
}

std::int64_t* Arena::record(std::uint32_t slot) const noexcept {
  return reinterpret_cast<std::int64_t*>(records_at_ + std::size_t{slot} * kToilRecordElements);
}

void Arena::launch(std::uint32_t slot, std::int64_t job, std::int64_t epoch) noexcept {
  std::int64_t* const at = record(slot);
  // Relaxed: the submission orders this before the launch.
  std::atomic_ref(at[kToilJob]).store(job, std::memory_order_relaxed);
  std::atomic_ref(at[kToilEpoch]).store(epoch, std::memory_order_relaxed);
  const CommandId id = first_launch_ + slot;
  session_->submit({&id, 1});
}

Arena::VictimRecord Arena::report(std::uint32_t slot) const noexcept {
  std::int64_t* const at = record(slot);
  const auto word = [&](int index) { return std::atomic_ref(at[index]).load(std::memory_order_relaxed); };
  VictimRecord found;
  found.launches = std::atomic_ref(at[kToilLaunches]).load(std::memory_order_acquire);  // pairs with toil's bodies
  found.started_ns = word(kToilStarted);
  found.ended_ns = word(kToilEnded);
  found.taken = word(kToilTaken);
  return found;
}

void Arena::raise_flag(std::int32_t epoch) noexcept {
  std::atomic_ref(*flag_at_).store(epoch, std::memory_order_release);  // pairs with the loads in toil's bodies
}

void Arena::request(int index) noexcept {
  const CommandId id = first_request_ + static_cast<CommandId>(index);
  session_->submit({&id, 1});
}

Moment Arena::moment(int index) const noexcept {
  return read_moment(moments_at_ + std::ptrdiff_t{index} * kMomentElements);
}

KernelClockFix Arena::fix_clock() {
  constexpr int kExchanges = 30;
  std::atomic_ref flag(flag_at_[kClockFlag]);
  std::int32_t* const at = moments_at_ + std::ptrdiff_t{std::max(1, requests_)} * kMomentElements;
  std::vector<Exchange> exchanges;
  for (int i = 0; i < kExchanges; ++i) {
    write_started(at, 0);
    write_ended(at, 0);
    flag.store(0, std::memory_order_release);  // pairs with the loads in hold's bodies
    session_->submit({&hold_, 1});
    const std::int64_t begun_ns = now_ns();
    while (read_moment(at).started_ns == 0 && now_ns() - begun_ns < kHoldLimitNs) session_->poll(kVictimStream);
    Exchange one;
    one.set_ns = now_ns();
    flag.store(1, std::memory_order_release);  // as above
    while (read_moment(at).ended_ns == 0 && now_ns() - begun_ns < 2 * kHoldLimitNs) session_->poll(kVictimStream);
    one.seen_ns = now_ns();
    one.kernel_ns = read_moment(at).ended_ns;
    session_->finish();
    // An exchange that ran into the limit did not wait for the flag.
    if (one.kernel_ns != 0 && one.seen_ns - begun_ns < kHoldLimitNs) exchanges.push_back(one);
  }
  if (exchanges.empty()) fail("no kernel answered in time when the clocks were compared");
  return closest(exchanges);
}

std::vector<std::int32_t> Arena::words(BufferId buffer) {
  std::vector<std::int32_t> read(static_cast<std::size_t>(step_->buffers()[buffer].count));
  const auto bytes = std::as_writable_bytes(std::span(read));
  if (info_.is_virtual) {
    std::memcpy(bytes.data(), session_->host_memory(buffer).data(), bytes.size());
  } else {
    session_->read(buffer, bytes);
  }
  return read;
}

std::optional<Arena::Count> Arena::count(std::int64_t jobs) {
  if (slots_ == 0 || !is_counted_) return std::nullopt;
  const std::vector<std::int32_t> state = words(state_);
  Count found{static_cast<std::uint64_t>(state[kToilLost]), static_cast<std::uint64_t>(state[kToilRepeated])};
  for (const std::int32_t done : words(done_)) {
    if (done < jobs) found.lost += static_cast<std::uint64_t>(jobs - done);
    if (done > jobs) found.repeated += static_cast<std::uint64_t>(done - jobs);
  }
  return found;
}

}  // namespace weir::preempt
