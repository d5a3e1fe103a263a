// What Kineto's events say of each other: kept until all were read, then joined by KinetoTimeline::finish().
#pragma once

#include <cstdint>
#include <vector>

#include "trace/timeline_builder.h"

namespace weir {

struct KinetoFacts {
  // A command with facts in another event.
  struct Pending {
    std::uint32_t command = 0;
    std::uint16_t process = 0;
    std::uint64_t correlation = 0, external = 0;
  };
  struct Call {
    std::uint16_t process = 0;
    std::uint64_t correlation = 0, external = 0;
    std::int64_t thread = 0, started_ns = 0;
  };
  struct Copy {
    std::uint16_t process = 0;
    std::uint64_t correlation = 0, bytes = 0;
  };
  // Of a call that launches a kernel.
  struct Grid {
    std::uint16_t process = 0, threads = 0;
    std::uint32_t blocks = 0;
    std::uint64_t correlation = 0;
  };
  // A change of a device's memory, by the device's number in the file.
  struct Memory {
    std::uint16_t process = 0;
    std::uint32_t thread = 0;
    std::int64_t device = 0;
    std::uint64_t at = 0;  // position in the file
    MemoryChange change;
  };
  // record_param_comms and nccl:*
  struct Operation {
    std::uint16_t process = 0;
    std::int64_t thread = 0, started_ns = 0, ended_ns = 0;
    std::uint64_t external = 0;
    TraceCollective facts;
  };

  std::vector<Pending> collectives, copies, rocm_kernels;
  std::vector<Call> launches;
  std::vector<Copy> copy_calls;
  std::vector<Grid> grids;
  std::vector<Operation> operations;
  std::vector<Memory> memory;
};

}  // namespace weir
