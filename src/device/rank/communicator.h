// How the ranks of a run talk to each other. The interface that devices and the runner see; MPI is behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/numeric.h"
#include "step/command.h"

namespace weir {

// What to add to this rank's host clock to get rank 0's.
struct ClockOffset {
  double offset_ns = 0;
  double error_ns = 0;
};

// Calls may come from any thread, but never from two at once. What fails throws Error and names the rank.
class Communicator {
 public:
  using Request = std::uintptr_t;

  virtual ~Communicator() = default;

  virtual Ranks ranks() const = 0;
  virtual Ranks local_ranks() const = 0;  // among the ranks of this host: who owns which GPU
  virtual std::string library() const = 0;

  // Channels are independent sequences of collectives: on each, all ranks start the same ones in the same order;
  // between channels there is no order. All ranks call this with the same count; channels that are already open stay.
  virtual void open_channels(int count) = 0;
  // Starts a collective on host memory and returns at once. `count` is in elements of `from`, as CollectiveOp says.
  virtual Request start(int channel, CollectiveOp op, ElementType type, const void* from, void* to,
                        std::uint64_t count) = 0;
  // Makes progress; true once, when the collective has ended: then the request is gone.
  virtual bool test(Request request) = 0;

  // Collectives that this rank has started on a channel so far, for who watches a run that does not go on: from any
  // thread, at any time. Nothing where nobody counts them.
  virtual std::optional<std::uint64_t> started(int) const noexcept { return std::nullopt; }

  // For the runner, while no collective is in flight.
  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> bytes, int from) = 0;
  virtual std::vector<std::string> gather(const std::string& text) = 0;  // at rank 0: by rank; elsewhere empty
  // True on every rank if it is on any; nobody returns before all have called it.
  virtual bool any(bool claim) {
    std::byte answer{0};
    for (const std::string& other : gather(claim ? "1" : "0"))
      if (other == "1") answer = std::byte{1};
    broadcast({&answer, 1}, 0);
    return answer != std::byte{0};
  }
  // All ranks call this at the same time. By ping-pong: half of the shortest round trip bounds the error.
  virtual ClockOffset clock_offset() { return {}; }
  virtual std::string host() const { return "localhost"; }
  // Ends all ranks at once.
  [[noreturn]] virtual void abort(int code) noexcept = 0;
};

// What rank 0 has, on every rank. Called by all.
inline std::string broadcast_text(Communicator& ranks, std::string text) {
  std::uint64_t size = text.size();
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  ranks.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace weir
