#include "device/gpu_staging.h"

#include <cstring>
#include <limits>
#include <new>
#include <utility>

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
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    if (command.kind != CommandKind::collective) continue;
    const Access& from = step.accesses(id)[0];
    const Access& to = step.accesses(id)[1];
    index_of_[id] = static_cast<std::uint32_t>(staged_.size());
    Staged& staged = staged_.emplace_back();
    staged.op = command.collective;
    staged.type = command.shape.type;
    staged.channel = placement.stream_of[id];
    staged.count = from.size_bytes / size_of(staged.type);
    staged.from = reinterpret_cast<GpuPointer>(buffers.address(from.buffer) + from.offset_bytes);
    staged.to = reinterpret_cast<GpuPointer>(buffers.address(to.buffer) + to.offset_bytes);
    staged.from_bytes = from.size_bytes;
    staged.to_bytes = to.size_bytes;
    staged.in = pinned(staged.from_bytes);
    staged.out = pinned(staged.to_bytes);
  }
  words_ = reinterpret_cast<Words*>(pinned(std::max<std::size_t>(1, staged_.size()) * sizeof(Words)));
  std::memset(static_cast<void*>(words_), 0, staged_.size() * sizeof(Words));
  communicator.open_channels(placement.stream_count);
  thread_ = std::jthread([this] { work(); });
}

StagedCollectives::~StagedCollectives() {
  is_stopping_.store(true, std::memory_order_release);  // pairs with the acquire in work()
  launched_.fetch_add(1, std::memory_order_release);    // pairs with the acquire in work()
  launched_.notify_all();
}

int StagedCollectives::launch(CommandId id, GpuStream stream) noexcept {
  const GpuApi& api = context_.api();
  const std::uint32_t index = index_of_[id];
  Staged& staged = staged_[index];
  const std::uint32_t turn = ++staged.launched;
  int result = api.copy_to_host(staged.in, staged.from, staged.from_bytes, stream);
  if (result == 0) result = api.stream_write(stream, reinterpret_cast<GpuPointer>(&words_[index].arrived), turn, 0);
  launched_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in work()
  launched_.notify_one();
  if (result == 0)
    result = api.stream_wait_value(stream, reinterpret_cast<GpuPointer>(&words_[index].done), turn, kGpuWaitAtLeast);
  if (result == 0) result = api.copy_to_device(staged.to, staged.out, staged.to_bytes, stream);
  return result;
}

std::exception_ptr StagedCollectives::take_failure() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, nullptr);
}

bool StagedCollectives::advance(std::size_t index) {
  Staged& staged = staged_[index];
  if (!staged.is_running) {
    // Acquire: the stream's copy. Pairs with its write of the word behind it.
    if (std::atomic_ref(words_[index].arrived).load(std::memory_order_acquire) == staged.ended) return false;
    staged.request = communicator_.start(staged.channel, staged.op, staged.type, staged.in, staged.out, staged.count);
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
  for (std::size_t i = 0; i < staged_.size(); ++i)
    std::atomic_ref(words_[i].done).store(std::numeric_limits<std::uint32_t>::max() / 2, std::memory_order_release);
}

void StagedCollectives::work() noexcept {
  std::uint64_t ended = 0;
  for (;;) {
    std::uint64_t launched = launched_.load(std::memory_order_acquire);  // pairs with launch() and the destructor
    if (is_stopping_.load(std::memory_order_acquire)) return give_up();
    if (launched == ended) {
      launched_.wait(launched, std::memory_order_acquire);
      continue;
    }
    if (has_failed_.load(std::memory_order_relaxed)) {
      give_up();
      ended = launched;
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
      const std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
      has_failed_.store(true, std::memory_order_relaxed);
    }
    if (!is_busy) std::this_thread::yield();
  }
}

}  // namespace weir
