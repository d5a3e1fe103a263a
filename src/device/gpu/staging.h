// Collectives through host memory, for ranks that share a GPU or lack the vendor's library: a stream copies out, waits
// for a word that a Weir thread writes when the communicator is done, and copies in. Knows streams and a communicator;
// no vendor's collectives. Host memory is per stream: a collective copies out only after the previous one in its stream
// was copied in.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
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
  // Why a driver cannot do this; empty if it can.
  static std::string lacking(const GpuApi& api);

  // All ranks construct theirs at the same time. The communicator outlives it; it must not be used after a failure,
  // because pending collectives refer to this object's memory.
  StagedCollectives(PrimaryContext& context, const Step& step, const Placement& placement, const GpuBuffers& buffers,
                    Communicator& communicator);
  ~StagedCollectives();  // call when no stream uses it any more
  StagedCollectives(const StagedCollectives&) = delete;
  StagedCollectives& operator=(const StagedCollectives&) = delete;

  // Submits a collective. Several threads may call it at once, each for its own streams.
  int launch(CommandId id, GpuStream stream) noexcept;
  // The first failure. It stays, because later collectives produce no results.
  std::exception_ptr failure() noexcept;
  // Releases every stream that waits for a collective, now and later; the data that it then copies in is invalid.
  void give_up() noexcept;

 private:
  struct Staged {
    Collective collective;
    ElementType type{};
    int channel = 0;
    std::uint64_t count = 0;  // elements of `in`
    GpuPointer from = 0, to = 0;
    std::uint64_t from_bytes = 0, to_bytes = 0;
    std::byte* in = nullptr;  // shared within its stream
    std::byte* out = nullptr;
    std::uint32_t launched = 0;  // written by the thread that submits its stream
    // The rest is used only by the communicator's thread.
    std::uint32_t ended = 0;
    bool is_running = false;
    Communicator::Request request = 0;
  };
  // Counters shared by a stream and the thread: how often the input has arrived, how often the output is done.
  struct alignas(64) Words {
    std::uint32_t arrived;
    std::uint32_t done;
  };

  void wake() noexcept;
  void work() noexcept;
  // Tests a collective once; true if it has ended.
  bool advance(std::size_t index);
  void let_streams_go() noexcept;

  PrimaryContext& context_;
  Communicator& communicator_;
  std::vector<std::uint32_t> index_of_;  // by command
  std::vector<Staged> staged_;
  std::vector<GpuHostMemoryOwner> memory_;
  Words* words_ = nullptr;                  // by collective; only the thread writes `done`
  std::atomic<std::uint64_t> launched_{0};  // of all collectives, plus wake-ups at the end; the thread sleeps on it
  std::atomic<bool> is_stopping_{false}, has_given_up_{false};
  std::mutex mutex_;  // for failure_
  std::exception_ptr failure_;
  std::jthread thread_;  // last: joined before the members that it uses are destroyed
};

}  // namespace weir
