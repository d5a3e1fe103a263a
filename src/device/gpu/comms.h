// A communicator of the vendor's collectives for every stream that has any. Opens the library only then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu/context.h"
#include "step/step.h"

namespace weir {

// One collective as its rank sees it. `count` is n of CollectiveOp: elements per rank.
struct GpuCollective {
  CollectiveOp op{};
  ElementType type{};
  Ranks ranks;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t count = 0;
};

int launch_collective(const GpuCollectives& collectives, GpuComm comm, const GpuCollective& collective,
                      GpuStream stream) noexcept;

// One for each stream, because only within a stream all ranks have the same order.
class StreamComms {
 public:
  // All ranks make theirs at the same time. Where the library cannot connect them (two share a GPU, or one has no
  // library), or `is_staged` asks for it, there are none: collectives are to be staged. Rejects where the driver cannot
  // do that either.
  StreamComms(PrimaryContext& context, const Step& step, const Placement& placement, Communicator* communicator,
              bool is_staged);

  // Null for a stream without collectives.
  GpuComm comm(StreamId stream) const noexcept { return comms_[stream].get(); }
  const GpuCollectives* collectives() const noexcept { return collectives_; }
  Ranks ranks() const noexcept { return ranks_; }
  // Why collectives are staged; empty where they are not, or there are none.
  const std::string& staged_reason() const noexcept { return staged_reason_; }
  // What carries the collectives, in words; empty where there are none.
  const std::string& carrier() const noexcept { return carrier_; }

  // After an error others may never come to what this rank still waits for: give up instead of waiting for them.
  void abandon() noexcept;

 private:
  struct Close {
    const GpuCollectives* collectives = nullptr;
    void operator()(GpuComm comm) const noexcept { collectives->comm_destroy(comm); }
  };

  const GpuCollectives* collectives_ = nullptr;
  Ranks ranks_;
  std::string staged_reason_, carrier_;
  std::vector<Handle<GpuComm, Close>> comms_;  // by stream
};

}  // namespace weir
