// A vendor's communicator for every stream with collectives. Opens the library only if needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu/context.h"
#include "step/step.h"

namespace weir {

// One collective as seen by its rank. `count` is n of CollectiveOp: elements per rank.
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

// One communicator per stream and group of ranks, because ranks have the same order only within a stream.
class StreamComms {
 public:
  // All ranks construct theirs at the same time. If the library cannot connect them (two share a GPU, or one has no
  // library), or if `is_staged`, there are no communicators and collectives must be staged. Rejects a driver that
  // cannot do that either.
  StreamComms(PrimaryContext& context, const Step& step, const Placement& placement, Communicator* communicator,
              bool is_staged);

  // Null for a stream without collectives between the ranks of that group.
  GpuComm comm(StreamId stream, const RankGroup& group) const noexcept {
    for (const GroupComm& each : comms_)
      if (each.stream == stream && each.group == group) return each.comm.get();
    return nullptr;
  }
  const GpuCollectives* collectives() const noexcept { return collectives_; }
  Ranks ranks() const noexcept { return ranks_; }
  // Why collectives are staged; empty if they are not, or if there are none.
  const std::string& staged_reason() const noexcept { return staged_reason_; }
  // The transport of the collectives, in words; empty if there are none.
  const std::string& carrier() const noexcept { return carrier_; }

  // After an error other ranks may never reach a pending collective: abort it instead of waiting for them.
  void abandon() noexcept;

 private:
  struct Close {
    const GpuCollectives* collectives = nullptr;
    void operator()(GpuComm comm) const noexcept { collectives->comm_destroy(comm); }
  };

  const GpuCollectives* collectives_ = nullptr;
  Ranks ranks_;
  std::string staged_reason_, carrier_;
  struct GroupComm {
    StreamId stream = 0;
    RankGroup group;
    Handle<GpuComm, Close> comm;
  };
  std::vector<GroupComm> comms_;
};

}  // namespace weir
