#include "lab/preempt/victim.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernel/toil.h"
#include "submit/placement.h"

namespace weir::preempt {
namespace {

constexpr std::int64_t kMaxUnits = 1 << 24;  // of one kernel: each has a counter
// Larger than any cache: the H200's L2 has 50 MB, and servers' L3 less than that per core.
constexpr std::int64_t kGpuWords = std::int64_t{256} << 20 >> 4, kHostWords = std::int64_t{64} << 20 >> 4;

// A step with victims only, and the time of each: the median of some launches, on the kernel's clock.
class Trial {
 public:
  Trial(Device& device, std::span<const VictimSize> sizes) {
    StepBuilder builder(1);
    const bool is_virtual = device.info().is_virtual;
    VictimSize largest = sizes.front();
    for (const VictimSize& size : sizes) largest.waves = std::max(largest.waves, size.waves);
    const auto slots = static_cast<std::uint32_t>(sizes.size());
    const BufferId flag = builder.host(ElementType::i32, 1, Init::constant, 1, 0);
    const VictimBuffers buffers = add_victim_buffers(builder, flag, largest, slots, is_virtual);
    records_ = buffers.records;
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      add_victim(builder, {.stream = 0}, sizes[slot], buffers, slot, false, false);
    step_ = std::move(builder).seal(1);
    placement_ = place(step_, "natural");
    session_ = device.prepare(step_, placement_, {.marks_iterations = false});
  }

  std::uint32_t blocks_per_multiprocessor() const {
    const auto footprint = session_->footprint(0);
    return footprint ? std::max(1u, footprint->blocks_per_multiprocessor) : 1;
  }
  double launch_ns(std::uint32_t slot) {
    std::array<double, 3> samples{};
    for (int i = -1; i < static_cast<int>(samples.size()); ++i) {  // the first one is warm-up
      session_->begin_iteration();
      const CommandId id = slot;
      session_->submit({&id, 1});
      session_->finish();
      const auto* const record = reinterpret_cast<const std::int64_t*>(session_->host_memory(records_).data()) +
                                 std::ptrdiff_t{kToilRecordWords} * slot;
      if (i >= 0) samples[static_cast<std::size_t>(i)] = static_cast<double>(record[kToilEnded] - record[kToilStarted]);
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
  }

 private:
  Step step_;
  Placement placement_;
  BufferId records_ = 0;
  std::unique_ptr<Session> session_;
};

// The number of words that a block reads in that time while all others read theirs: from two lengths, so that the cost
// of a launch cancels out.
std::int64_t words_for(Device& device, VictimSize size, std::int64_t block_ns) {
  constexpr std::int64_t kFew = 1 << 12, kMany = 1 << 15;
  std::array<VictimSize, 2> sizes{size, size};
  sizes[0].amount = kFew;
  sizes[1].amount = kMany;
  for (VictimSize& each : sizes) each.waves = 4;
  Trial trial(device, sizes);
  const double few_ns = trial.launch_ns(0) / 4, many_ns = trial.launch_ns(1) / 4;
  // On a busy machine few words may take as long as many: the time per word is at least a tenth of the observed one, or
  // blocks would read for hours.
  const double word_ns = std::max({(many_ns - few_ns) / (kMany - kFew), 0.1 * many_ns / kMany, 1e-6});
  const double fixed_ns = std::max(0.0, few_ns - word_ns * kFew);
  return std::max<std::int64_t>(1, std::llround((static_cast<double>(block_ns) - fixed_ns) / word_ns));
}

}  // namespace

VictimSize size_victim(Device& device, const Victim& victim) {
  const DeviceInfo info = device.info();
  VictimSize size;
  size.amount = victim.block_ns;
  if (victim.kind == VictimKind::memory) size.memory_words = info.is_virtual ? 1 : info.is_gpu ? kGpuWords : kHostWords;
  {
    VictimSize one = size;
    one.amount = 1;
    one.memory_words = std::min<std::int64_t>(1, size.memory_words);
    const Trial trial(device, std::span(&one, 1));
    // On a partitioned device the victim has what the intruder's part leaves.
    const int units = info.multiprocessors.value.value_or(1) - info.stream_compute_units;
    size.blocks_at_once = trial.blocks_per_multiprocessor() * static_cast<std::uint32_t>(std::max(1, units));
  }
  if (victim.kind == VictimKind::memory) size.amount = words_for(device, size, victim.block_ns);
  size.waves = victim.waves;
  if (victim.kind == VictimKind::persistent)
    size.waves = std::max(kPersistentBlocks, kPersistentNs / std::max<std::int64_t>(1, victim.block_ns));
  size.waves = std::clamp<std::int64_t>(size.waves, 1, std::max<std::int64_t>(1, kMaxUnits / size.blocks_at_once));
  return size;
}

VictimBuffers add_victim_buffers(StepBuilder& builder, BufferId flag, const VictimSize& size, std::uint32_t slots,
                                 bool is_virtual) {
  const auto own = [&](std::int64_t count) {
    const auto elements = static_cast<std::uint64_t>(std::max<std::int64_t>(1, count));
    return is_virtual ? builder.host(ElementType::i32, elements, Init::constant, 1, 0)
                      : builder.constant(ElementType::i32, elements, 0);
  };
  VictimBuffers buffers;
  buffers.flag = flag;
  buffers.records = builder.host(ElementType::i32, std::uint64_t{slots} * kToilRecordElements, Init::constant, 1, 0);
  buffers.state = own(kToilStateElements);
  buffers.done = own(size.units());
  buffers.memory = own(4 * size.memory_words);
  return buffers;
}

CommandId add_victim(StepBuilder& builder, Lane lane, const VictimSize& size, const VictimBuffers& buffers,
                     std::uint32_t slot, bool takes_units, bool is_stoppable) {
  const std::int64_t style = size.memory_words << kToilSizeShift | (size.memory_words > 0 ? kToilStreams : 0) |
                             (is_stoppable ? kToilStoppable : 0);
  const std::int64_t blocks = takes_units || is_stoppable ? std::int64_t{size.blocks_at_once} : 0;
  const KernelShape shape{.type = ElementType::i32, .dims = {size.amount, size.units(), blocks, style}, .scalars = {}};
  return builder.launch("toil", lane, shape,
                        {{buffers.flag, 0, 1},
                         {buffers.records, std::uint64_t{slot} * kToilRecordElements, kToilRecordElements},
                         {buffers.state},
                         {buffers.done},
                         {buffers.memory}});
}

}  // namespace weir::preempt
