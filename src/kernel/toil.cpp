// Work that can be counted and stopped: the victim of experiments on preemption. A job is a number of units, each of
// which is done exactly once, however often the job is interrupted: a block that took a unit finishes it, and takes no
// more once it is asked to stop. Counts units that were lost or done twice.
#include "kernel/toil.h"

#include <algorithm>
#include <atomic>

#include "kernel/body.h"
#include "kernel/busy_wait.h"

namespace weir::catalogue {
namespace {

struct Toil {
  explicit Toil(const KernelCall& call)
      : amount(call.shape.dims[kToilAmount]),
        units(call.shape.dims[kToilUnits]),
        blocks(call.shape.dims[kToilBlocks]),
        style(call.shape.dims[kToilStyle]),
        flag(operand<std::int32_t>(call, 0)),
        record(operand<std::int64_t>(call, 1)),
        state(operand<std::int32_t>(call, 2)),
        done(operand<std::int32_t>(call, 3)),
        memory(operand<std::uint64_t>(call, 4)) {}

  // Relaxed unless noted: blocks coordinate by single atomics, and the host reads after the launch has ended.
  std::atomic_ref<std::int32_t> word(int index) const { return std::atomic_ref(state[index]); }
  std::atomic_ref<std::int64_t> entry(int index) const { return std::atomic_ref(record[index]); }

  void do_unit(std::int64_t unit) const {
    if ((style & kToilStreams) == 0) {
      busy_wait(now_ns(), amount);
      return;
    }
    const std::int64_t size = style >> kToilSizeShift;
    std::int64_t at = size > 0 ? unit * amount % size : 0;
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < amount && size > 0; ++i) {
      sum |= memory[2 * at] | memory[2 * at + 1];
      at = at + 1 == size ? 0 : at + 1;
    }
    if (sum != 0) word(kToilNotZero).fetch_add(1, std::memory_order_relaxed);
  }
  void count(std::int64_t unit, std::int64_t job) const {
    const auto after = static_cast<std::int32_t>(job + 1);
    const std::int32_t before = std::atomic_ref(done[unit]).exchange(after, std::memory_order_relaxed);
    if (before < after - 1) word(kToilLost).fetch_add(after - 1 - before, std::memory_order_relaxed);
    if (before >= after) word(kToilRepeated).fetch_add(1, std::memory_order_relaxed);
  }
  std::atomic_ref<std::int32_t> cursor_of(std::int64_t job) const {
    return word(static_cast<int>((job + kToilCursors) % kToilCursors));
  }
  void take_units() const {
    const std::int64_t job = entry(kToilJob).load(std::memory_order_relaxed);
    const std::int64_t epoch = entry(kToilEpoch).load(std::memory_order_relaxed);
    const auto cursor = cursor_of(job);
    for (;;) {
      // Acquire: pairs with the release of the thread that sets the flag.
      if ((style & kToilStoppable) != 0 && std::atomic_ref(*flag).load(std::memory_order_acquire) > epoch) return;
      const std::int64_t unit = cursor.fetch_add(1, std::memory_order_relaxed);
      if (unit >= units) return;
      if (unit == 0) cursor_of(job - 1).store(0, std::memory_order_relaxed);
      do_unit(unit);
      count(unit, job);
    }
  }
  void leave() const {
    const auto all = static_cast<std::int32_t>(blocks > 0 ? blocks : units);
    // Acquire and release: the last block to leave has seen the others' work.
    if (word(kToilEndedBlocks).fetch_add(1, std::memory_order_acq_rel) + 1 != all) return;
    word(kToilEndedBlocks).store(0, std::memory_order_relaxed);
    std::int64_t taken = units;
    if (blocks > 0) {
      const std::int64_t job = entry(kToilJob).load(std::memory_order_relaxed);
      taken = std::min<std::int64_t>(units, cursor_of(job).load(std::memory_order_relaxed));
    }
    entry(kToilTaken).store(taken, std::memory_order_relaxed);
    entry(kToilEnded).store(now_ns(), std::memory_order_relaxed);
    entry(kToilLaunches).fetch_add(1, std::memory_order_release);  // pairs with readers of the record
  }

  std::int64_t amount, units, blocks, style;
  std::int32_t* flag;
  std::int64_t* record;
  std::int32_t *state, *done;
  const std::uint64_t* memory;
};

void run_block(const KernelCall& call, std::uint32_t block) {
  const Toil toil(call);
  if (block == 0) toil.entry(kToilStarted).store(now_ns(), std::memory_order_release);  // pairs with watchers
  if (toil.blocks > 0) {
    toil.take_units();
  } else {
    toil.do_unit(block);
    std::atomic_ref(toil.done[block]).fetch_add(1, std::memory_order_relaxed);
  }
  toil.leave();
}

std::int64_t blocks_of(const KernelShape& shape) {
  return shape.dims[kToilBlocks] > 0 ? shape.dims[kToilBlocks] : shape.dims[kToilUnits];
}

}  // namespace

// Operands: the flag; the launch's record; the kernel's own words; per unit the number of jobs that have done it (of
// launches, if each block is a unit); memory of zeros to stream through.
Kernel toil() {
  return {.name = "toil",
          .summary = "does a job of so many units, each once, and ends between two of them when told so",
          .operands = [](const KernelShape&) -> std::string_view { return "ruuur"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const std::int64_t words = shape.dims[kToilStyle] >> kToilSizeShift;
            return {1, kToilRecordElements, kToilStateElements, shape.dims[kToilUnits],
                    std::max<std::int64_t>(1, 4 * words)};
          },
          .cost =
              [](const KernelShape& shape) {
                const bool streams = (shape.dims[kToilStyle] & kToilStreams) != 0;
                const double bytes = streams ? 16 * shape.dim(kToilAmount) : 0;
                return Cost{0, (bytes + 4) * shape.dim(kToilUnits)};
              },
          .blocks = [](const KernelShape& shape) { return block_count(blocks_of(shape), 1); },
          .run_block = run_block,
          .reference = nullptr,
          // One thread reads the clock; streaming memory takes enough threads to keep it busy.
          .geometry =
              [](const KernelShape& shape) {
                const bool streams = (shape.dims[kToilStyle] & kToilStreams) != 0;
                return Geometry{grid_of(blocks_of(shape)), streams ? kThreads : 32};
              },
          .is_probe = true,
          .places = "hhaaa",
          .lasts = Lasts::by_units};
}

}  // namespace weir::catalogue
