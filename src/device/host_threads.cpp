#include "device/host_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace weir {

int HostThreads::default_count() noexcept {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

HostThreads::HostThreads(int count) {
  try {
    for (int i = 1; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception& error) {
    stop();  // threads that did start must end, or joining them would never return
    fail(fmt::format("cannot start a thread for host functions: {}", error.what()),
         "Raise the limit on processes (ulimit -u).");
  }
}

HostThreads::~HostThreads() {
  const std::lock_guard lock(turn_);
  stop();
}

void HostThreads::stop() noexcept {
  is_stopping_.store(true, std::memory_order_relaxed);                 // published by the word
  word_.fetch_add(std::uint64_t{1} << 32, std::memory_order_release);  // pairs with the acquire in work()
  word_.notify_all();
}

bool HostThreads::run_one(std::uint64_t& word) noexcept {
  for (;;) {
    const std::uint32_t unclaimed = unclaimed_in(word);
    if (unclaimed == 0) return false;
    // Acquire: the call's fields. Pairs with the release in run(), whose release sequence other claims continue.
    if (word_.compare_exchange_weak(word, word - 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      --word;
      // The call cannot end before the block just taken does.
      try {
        run_block_(*call_, blocks_ - unclaimed);
      } catch (...) {
        if (!has_thrown_.exchange(true, std::memory_order_acq_rel)) thrown_ = std::current_exception();
      }
      // Release this block's writes, acquire those of the others: pairs with itself and with the load in run().
      if (unended_.fetch_sub(1, std::memory_order_acq_rel) == 1) unended_.notify_all();
      return true;
    }
  }
}

void HostThreads::work() noexcept {
  for (;;) {
    std::uint64_t word = word_.load(std::memory_order_acquire);  // pairs with the releases in run() and stop()
    while (run_one(word)) {
    }
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    word_.wait(word, std::memory_order_acquire);  // pairs with the releases in run() and stop()
  }
}

void HostThreads::run(void (*run_block)(const KernelCall&, std::uint32_t), const KernelCall& call,
                      std::uint32_t blocks) noexcept {
  if (blocks == 0) return;
  const std::lock_guard lock(turn_);
  run_block_ = run_block;
  call_ = &call;
  blocks_ = blocks;
  unended_.store(blocks, std::memory_order_relaxed);  // published by the word
  // Relaxed: only the thread that holds turn_ starts a call, and no thread claims blocks of a call that has ended.
  std::uint64_t word = ((word_.load(std::memory_order_relaxed) >> 32) + 1) << 32 | blocks;
  word_.store(word, std::memory_order_release);  // pairs with the acquire in work() and run_one()
  if (blocks > 1) word_.notify_all();
  while (run_one(word)) {
  }
  // Pairs with the release in run_one().
  for (std::uint32_t left; (left = unended_.load(std::memory_order_acquire)) != 0;)
    unended_.wait(left, std::memory_order_acquire);
  if (has_thrown_.exchange(false, std::memory_order_acquire)) {
    if (failure_ == nullptr) failure_ = thrown_;
    thrown_ = nullptr;
  }
}

std::exception_ptr HostThreads::take_failure() noexcept {
  const std::lock_guard lock(turn_);
  return std::exchange(failure_, nullptr);
}

}  // namespace weir
