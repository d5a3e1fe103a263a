// Iterations in flight: the last event of each stream's part, and the first if start times are wanted. Limits their
// number. Knows events; not what was submitted.
#pragma once

#include "device/opencl/api.h"

#if WEIR_HAVE_OPENCL
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace weir {

class OpenclIterations {
 public:
  // How many iterations may be in flight with that many lanes, or as command buffers.
  static std::size_t max_in_flight(std::size_t lanes, bool has_graphs) noexcept;

  // A lane is a stream, or the only lane of a graph. `is_marked`: take() will be called, and queues record times.
  OpenclIterations(const OpenclApi& api, std::size_t lanes, std::size_t max_in_flight, bool is_marked);
  // Call when nothing is in flight.
  ~OpenclIterations() { drain(); }
  OpenclIterations(const OpenclIterations&) = delete;
  OpenclIterations& operator=(const OpenclIterations&) = delete;

  bool is_marked() const noexcept { return is_marked_; }

  // Opens the next iteration; waits for the oldest if there are too many.
  void begin() noexcept;
  // Several threads may call the next two at once, each for its own lanes. They take ownership of their events.
  void start(std::size_t lane, cl_event event, bool is_marker) noexcept {
    Lane& entry = lanes_[first_ + lane];
    entry.started = event;
    entry.starts_by_marker = is_marker;
  }
  void end(std::size_t lane, cl_event event) noexcept { lanes_[first_ + lane].ended = event; }

  // Waits for all iterations. Returns the first error that a command ended with since the last call, or success.
  cl_int drain() noexcept;
  // All iterations since the last call, oldest first. Call after drain().
  std::vector<IterationSpan> take();

 private:
  struct Lane {
    cl_event started = nullptr, ended = nullptr;
    bool starts_by_marker = false;
  };
  void retire_oldest() noexcept;

  const OpenclApi& api_;
  std::size_t lane_count_;
  bool is_marked_;
  std::size_t slots_;
  std::vector<Lane> lanes_;                // slot, lane
  std::size_t first_ = 0;                  // first lane of the current slot
  std::uint64_t begun_ = 0, retired_ = 0;  // iterations
  cl_int failure_ = CL_SUCCESS;
  std::vector<IterationSpan> spans_;
};

}  // namespace weir
#endif
