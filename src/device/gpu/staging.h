// Collectives through host memory, for ranks that share a GPU or have no vendor's library: a stream copies out, waits
// for a word that a thread of ours writes when the communicator is done, and copies in. Knows streams and a
// communicator; no vendor's collectives. Host memory is per stream: a collective copies out after the one before it in
// its stream was copied in.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/gpu/context.h"
#include "device/gpu/memory.h"
#include "device/rank/communicator.h"

namespace weir {

class StagedCollectives {
 public:
  // Why a driver cannot do this; empty where it can.
  static std::string lacking(const GpuApi& api);

  // All ranks make theirs at the same time. The communicator outlives it; after a failure it is not to be used any
  // more, because what was started there knows our memory.
  StagedCollectives(PrimaryContext& context, const Step& step, const Placement& placement, const GpuBuffers& buffers,
                    Communicator& communicator);
  ~StagedCollectives();  // no stream has any of it left
  StagedCollectives(const StagedCollectives&) = delete;
  StagedCollectives& operator=(const StagedCollectives&) = delete;

  // Submits a command that is a collective. Several threads may call it at once, each with streams of its own.
  int launch(CommandId id, GpuStream stream) noexcept;
  // What went wrong first; collectives from then on give nothing, so it stays.
  std::exception_ptr failure() noexcept;
  // Lets every stream go that waits for what will not come, now and later; what it then copies in is worth nothing.
  void give_up() noexcept;

 private:
  struct Staged {
    CollectiveOp op{};
    ElementType type{};
    int channel = 0;
    std::uint64_t count = 0;  // elements of `in`
    GpuPointer from = 0, to = 0;
    std::uint64_t from_bytes = 0, to_bytes = 0;
    std::byte* in = nullptr;  // its stream's
    std::byte* out = nullptr;
    std::uint32_t launched = 0;  // by the thread that submits its stream
    // The rest is the communicator's thread's.
    std::uint32_t ended = 0;
    bool is_running = false;
    Communicator::Request request = 0;
  };
  // Words that a stream and the thread hand each other: how often the input was there, how often the output.
  struct alignas(64) Words {
    std::uint32_t arrived;
    std::uint32_t done;
  };

  void wake() noexcept;
  void work() noexcept;
  // One look at a collective; true where it has ended.
  bool advance(std::size_t index);
  void let_streams_go() noexcept;

  PrimaryContext& context_;
  Communicator& communicator_;
  std::vector<std::uint32_t> index_of_;  // by command
  std::vector<Staged> staged_;
  std::vector<GpuHostMemoryOwner> memory_;
  Words* words_ = nullptr;                  // by collective; `done` is written by the thread alone
  std::atomic<std::uint64_t> launched_{0};  // all of them, and wake-ups at the end; the thread sleeps on it
  std::atomic<bool> is_stopping_{false}, has_given_up_{false};
  std::mutex mutex_;  // of failure_
  std::exception_ptr failure_;
  std::jthread thread_;  // last: joined before what it uses goes
};

}  // namespace weir
