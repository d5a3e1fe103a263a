#include "device/gpu/staging.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/relax.h"

namespace weir {
namespace {

constexpr std::uint32_t kNotStaged = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::string StagedCollectives::lacking(const GpuApi& api) {
  if (api.stream_write == nullptr || api.stream_wait_value == nullptr)
    return fmt::format("streams of {} cannot wait for a word in memory", api.vendor_name);
  return {};
}

StagedCollectives::StagedCollectives(PrimaryContext& context, const Step& step, const Placement& placement,
                                     const GpuBuffers& buffers, Communicator& communicator)
    : context_(context), communicator_(communicator), index_of_(step.commands().size(), kNotStaged) {
  const GpuApi& api = context.api();
  const auto pinned = [&](std::size_t bytes) {
    void* memory = nullptr;
    check(api, api.host_allocate(&memory, bytes, kGpuHostPortable), "allocating host memory for collectives");
    memory_.push_back(GpuHostMemoryOwner(memory, {&api}));
    return static_cast<std::byte*>(memory);
  };
  struct Lane {
    std::uint64_t from_bytes = 0, to_bytes = 0;
  };
  std::vector<Lane> lanes(static_cast<std::size_t>(placement.stream_count));
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    if (command.kind != CommandKind::collective) continue;
    const Access& from = step.accesses(id)[0];
    const Access& to = step.accesses(id)[1];
    index_of_[id] = static_cast<std::uint32_t>(staged_.size());
    Staged& staged = staged_.emplace_back();
    staged.collective = {command.collective, command.group};
    staged.type = command.shape.type;
    staged.channel = placement.stream_of[id];
    staged.count = from.size_bytes / size_of(staged.type);
    staged.from = reinterpret_cast<GpuPointer>(buffers.address(from.buffer) + from.offset_bytes);
    staged.to = reinterpret_cast<GpuPointer>(buffers.address(to.buffer) + to.offset_bytes);
    staged.from_bytes = from.size_bytes;
    staged.to_bytes = to.size_bytes;
    Lane& lane = lanes[placement.stream_of[id]];
    lane.from_bytes = std::max(lane.from_bytes, staged.from_bytes);
    lane.to_bytes = std::max(lane.to_bytes, staged.to_bytes);
  }
  for (std::size_t stream = 0; stream < lanes.size(); ++stream) {
    if (lanes[stream].to_bytes == 0) continue;
    std::byte* const in = pinned(lanes[stream].from_bytes);
    std::byte* const out = pinned(lanes[stream].to_bytes);
    for (Staged& staged : staged_) {
      if (static_cast<std::size_t>(staged.channel) != stream) continue;
      staged.in = in;
      staged.out = out;
    }
  }
  words_ = reinterpret_cast<Words*>(pinned(std::max<std::size_t>(1, staged_.size()) * sizeof(Words)));
  std::memset(static_cast<void*>(words_), 0, staged_.size() * sizeof(Words));
  communicator.open_channels(placement.stream_count);
  for (const RankGroup& group : rank_groups(step)) communicator.open_group(group, placement.stream_count);
  thread_ = std::jthread([this] { work(); });
}

StagedCollectives::~StagedCollectives() {
  is_stopping_.store(true, std::memory_order_release);  // pairs with the acquire in work()
  wake();
}

void StagedCollectives::wake() noexcept {
  launched_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in work()
  launched_.notify_one();
}

int StagedCollectives::launch(CommandId id, GpuStream stream) noexcept {
  const GpuApi& api = context_.api();
  const std::uint32_t index = index_of_[id];
  Staged& staged = staged_[index];
  const std::uint32_t turn = staged.launched + 1;  // wraps, like the stream's comparison
  int result = api.copy_to_host(staged.in, staged.from, staged.from_bytes, stream);
  if (result == 0) result = api.stream_write(stream, reinterpret_cast<GpuPointer>(&words_[index].arrived), turn, 0);
  if (result != 0) return result;  // it never arrives, so nothing may wait for it
  staged.launched = turn;
  wake();
  result = api.stream_wait_value(stream, reinterpret_cast<GpuPointer>(&words_[index].done), turn, kGpuWaitAtLeast);
  if (result == 0) result = api.copy_to_device(staged.to, staged.out, staged.to_bytes, stream);
  return result;
}

std::exception_ptr StagedCollectives::failure() noexcept {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool StagedCollectives::advance(std::size_t index) {
  Staged& staged = staged_[index];
  if (!staged.is_running) {
    // Acquire: the stream's copy. Pairs with its later write of the word.
    if (std::atomic_ref(words_[index].arrived).load(std::memory_order_acquire) == staged.ended) return false;
    staged.request =
        communicator_.start(staged.channel, staged.collective, staged.type, staged.in, staged.out, staged.count);
    staged.is_running = true;
  }
  if (!communicator_.test(staged.request)) return false;
  staged.is_running = false;
  ++staged.ended;
  // Release: the output. Pairs with the stream's wait for the word.
  std::atomic_ref(words_[index].done).store(staged.ended, std::memory_order_release);
  return true;
}

void StagedCollectives::give_up() noexcept {
  has_given_up_.store(true, std::memory_order_release);  // pairs with the acquire in work()
  wake();
}

void StagedCollectives::let_streams_go() noexcept {
  // As far ahead as the comparison of wrapping words allows.
  constexpr std::uint32_t kFarAhead = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < staged_.size(); ++i)  // release: pairs with the stream's wait
    std::atomic_ref(words_[i].done).store(staged_[i].ended + kFarAhead, std::memory_order_release);
}

void StagedCollectives::work() noexcept {
  std::uint64_t ended = 0;
  for (;;) {
    const std::uint64_t launched = launched_.load(std::memory_order_acquire);  // pairs with wake()
    const bool is_stopping = is_stopping_.load(std::memory_order_acquire);     // pairs with the destructor
    // Pairs with give_up(). A thread that sets a flag calls wake() afterwards, so this thread cannot sleep through it.
    const bool has_given_up = has_given_up_.load(std::memory_order_acquire);
    if (is_stopping || has_given_up) let_streams_go();
    if (is_stopping) return;
    if (has_given_up || launched == ended) {
      launched_.wait(launched, std::memory_order_acquire);
      continue;
    }
    bool is_busy = false;
    try {
      for (std::size_t i = 0; i < staged_.size(); ++i)
        if (advance(i)) {
          is_busy = true;
          ++ended;
        }
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      give_up();
    }
    if (!is_busy) yield_core();
  }
}

}  // namespace weir
