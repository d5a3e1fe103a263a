// Collectives through host memory, for ranks that share a GPU or have no vendor's library: a stream copies out, waits
// for a word that a thread of ours writes when the communicator is done, and copies in. Knows streams and a
// communicator; no vendor's collectives.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/gpu_context.h"
#include "device/gpu_memory.h"
#include "rank/communicator.h"

namespace weir {

class StagedCollectives {
 public:
  // Why a driver cannot do this; empty where it can.
  static std::string lacking(const GpuApi& api);

  // All ranks make theirs at the same time. The communicator outlives it.
  StagedCollectives(PrimaryContext& context, const Step& step, const Placement& placement, const GpuBuffers& buffers,
                    Communicator& communicator);
  ~StagedCollectives();
  StagedCollectives(const StagedCollectives&) = delete;
  StagedCollectives& operator=(const StagedCollectives&) = delete;

  // Submits a command that is a collective. Several threads may call it at once, each with streams of its own.
  int launch(CommandId id, GpuStream stream) noexcept;
  // What went wrong since the last call; the collectives after it gave nothing.
  std::exception_ptr take_failure() noexcept;
  // Lets every stream go that waits for what will not come; what it then copies in is worth nothing.
  void give_up() noexcept;

 private:
  struct Staged {
    CollectiveOp op{};
    ElementType type{};
    int channel = 0;
    std::uint64_t count = 0;  // elements of `in`
    GpuPointer from = 0, to = 0;
    std::uint64_t from_bytes = 0, to_bytes = 0;
    std::byte* in = nullptr;
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

  void work() noexcept;
  // One look at a collective; true where something happened.
  bool advance(std::size_t index);

  PrimaryContext& context_;
  Communicator& communicator_;
  std::vector<std::uint32_t> index_of_;  // by command
  std::vector<Staged> staged_;
  std::vector<GpuHostMemoryOwner> memory_;
  Words* words_ = nullptr;                  // by collective
  std::atomic<std::uint64_t> launched_{0};  // all of them; the thread sleeps on it
  std::atomic<bool> is_stopping_{false}, has_failed_{false};
  std::mutex mutex_;  // of failure_
  std::exception_ptr failure_;
  std::jthread thread_;  // last: joined before what it uses goes
};

}  // namespace weir
