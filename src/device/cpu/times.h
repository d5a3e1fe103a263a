// When iterations and, if traced, commands ran on the cpu device. Knows clocks and counts; not which thread runs what.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "device/device.h"

namespace weir::cpu {

// An untraced iteration reads the clock twice: at its first start and its last end.
class Times {
 public:
  static constexpr std::uint32_t kWindow = 256;  // iterations in flight

  Times(const Step& step, const Placement& placement, const SessionOptions& options,
        std::span<const std::uint8_t> queue_of_stream);

  std::uint32_t begun() const noexcept { return begun_; }
  // False while the place of the next iteration is still used by one that has not ended.
  bool can_begin() const noexcept {
    return begun_ < kWindow || place(begun_).ended_ns.load(std::memory_order_seq_cst) != kNoTime;  // pairs with ended()
  }
  // Opens the next iteration. Call when can_begin() or when nothing is in flight.
  void begin();

  void submitted(CommandId command, std::uint32_t iteration) noexcept {
    if (iteration < traced_iterations_) [[unlikely]]
      span(command, iteration).submitted_ns = now_ns();
  }
  // Applies to all commands of a segment.
  void graph_submitted(std::uint32_t segment, std::uint32_t iteration) noexcept {
    if (iteration < traced_iterations_) [[unlikely]]
      graphs_[iteration * segment_count_ + segment].submitted_ns = now_ns();
  }
  // Called by the same thread after the command was written to its queue. It may have ended by then, but spans are not
  // read while anything is being submitted.
  void accepted(CommandId command, std::uint32_t iteration) noexcept {
    if (iteration < traced_iterations_) [[unlikely]]
      span(command, iteration).accepted_ns = now_ns();
  }
  void graph_accepted(std::uint32_t segment, std::uint32_t iteration) noexcept {
    if (iteration < traced_iterations_) [[unlikely]]
      graphs_[iteration * segment_count_ + segment].accepted_ns = now_ns();
  }
  void launched(CommandId command, std::uint32_t iteration) noexcept {
    if (iteration < traced_iterations_) [[unlikely]]
      span(command, iteration).launched_ns = now_ns();
  }
  void started(CommandId command, std::uint32_t iteration) noexcept {
    Place& mine = place(iteration);
    const bool is_traced = iteration < traced_iterations_;
    // Relaxed, like all accesses to started_ns: it is read after the iteration has ended.
    if (!is_traced && mine.started_ns.load(std::memory_order_relaxed) != kNoTime) [[likely]]
      return;
    const std::int64_t now = now_ns();
    if (is_traced) span(command, iteration).started_ns = now;
    std::int64_t first = mine.started_ns.load(std::memory_order_relaxed);
    while ((first == kNoTime || now < first) &&
           !mine.started_ns.compare_exchange_weak(first, now, std::memory_order_relaxed)) {
    }
  }
  // True if the iteration ended with this command. The iteration must not be touched afterwards.
  bool ended(CommandId command, std::uint32_t iteration) noexcept {
    Place& mine = place(iteration);
    const bool is_traced = iteration < traced_iterations_;
    const std::int64_t now = is_traced ? now_ns() : kNoTime;
    if (is_traced) span(command, iteration).ended_ns = now;
    // Releases to commands that end later; the last one acquires: pairs with itself.
    if (mine.ended.fetch_add(1, std::memory_order_acq_rel) + 1 != command_count_) return false;
    mine.ended_ns.store(is_traced ? now : now_ns(), std::memory_order_seq_cst);  // pairs with can_begin()
    return true;
  }

  // Call both only while nothing is in flight.
  std::vector<IterationSpan> take_spans();
  Timeline timeline() const;

  std::uint64_t size_bytes() const noexcept;

 private:
  struct alignas(64) Place {
    std::atomic<std::int64_t> started_ns{kNoTime};
    std::atomic<std::int64_t> ended_ns{kNoTime};
    std::atomic<std::uint32_t> ended{0};  // commands
  };
  Place& place(std::uint32_t iteration) noexcept { return window_[iteration % kWindow]; }
  const Place& place(std::uint32_t iteration) const noexcept { return window_[iteration % kWindow]; }
  Span& span(CommandId command, std::uint32_t iteration) noexcept {
    return spans_[static_cast<std::size_t>(iteration) * command_count_ + command];
  }
  void take_oldest();

  std::uint32_t command_count_;
  std::uint32_t traced_iterations_;
  std::uint32_t segment_count_ = 0;      // of graphs; 0 in eager mode
  std::span<const CommandId> segments_;  // the step's
  std::uint32_t begun_ = 0;
  std::uint32_t taken_ = 0;
  std::array<Place, kWindow> window_;
  std::vector<IterationSpan> iterations_;
  std::vector<Span> spans_;
  struct GraphCall {
    std::int64_t submitted_ns = kNoTime, accepted_ns = kNoTime;
  };
  std::vector<GraphCall> graphs_;  // iteration, segment
};

}  // namespace weir::cpu
