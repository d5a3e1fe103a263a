// How the ranks of a run communicate: the interface that devices and the runner see. MPI implements it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/numeric.h"
#include "step/command.h"

namespace weir {

// The offset from this rank's host clock to rank 0's.
struct RankClockOffset {
  double offset_ns = 0;
  double error_ns = 0;
};

// What a collective does, and between which ranks.
struct Collective {
  CollectiveOp op{};
  RankGroup group;
  Collective() = default;
  Collective(CollectiveOp op, const RankGroup& group = {}) : op(op), group(group) {}
};

// Calls may come from any thread, but never from two at once. Failures throw an Error that names the rank.
class Communicator {
 public:
  using Request = std::uintptr_t;

  virtual ~Communicator() = default;

  virtual Ranks ranks() const = 0;
  virtual Ranks local_ranks() const = 0;  // among the ranks of this host, to assign GPUs
  virtual std::string library() const = 0;

  // Channels are independent sequences of collectives: on each, all ranks start the same ones in the same order;
  // channels are not ordered among each other. All ranks call this with the same count; open channels stay open.
  virtual void open_channels(int count) = 0;
  // Opens channels between the ranks of a group: on each, the ranks of the group start the same collectives in the same
  // order. Only they call it; whoever is in several groups calls it in their order.
  virtual void open_group(const RankGroup&, int /*count*/) {}
  // Starts a collective on host memory and returns at once. `count` is in elements of `from`; see CollectiveOp.
  virtual Request start(int channel, const Collective& collective, ElementType type, const void* from, void* to,
                        std::uint64_t count) = 0;
  // Makes progress; true once, when the collective has ended and the request is gone.
  virtual bool test(Request request) = 0;

  // Collectives that this rank has started on a channel so far, for watching a run that may hang. May be called from
  // any thread at any time. Empty if they are not counted.
  virtual std::optional<std::uint64_t> started(int) const noexcept { return std::nullopt; }

  // For the runner, while no collective is in flight.
  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> bytes, int from) = 0;
  virtual std::vector<std::string> gather(const std::string& text) = 0;  // on rank 0: by rank; on others: empty
  // Rank 0 passes one text per rank, the others nothing; returns this rank's.
  virtual std::string scatter(const std::vector<std::string>& texts);
  // True on every rank if it is on any; returns only after all ranks have called it.
  virtual bool any(bool claim) {
    std::byte answer{0};
    for (const std::string& other : gather(claim ? "1" : "0"))
      if (other == "1") answer = std::byte{1};
    broadcast({&answer, 1}, 0);
    return answer != std::byte{0};
  }
  // All ranks call this at the same time. By ping-pong: half of the shortest round trip bounds the error.
  virtual RankClockOffset clock_offset() { return {}; }
  virtual std::string host() const { return "localhost"; }
  // Terminates all ranks.
  [[noreturn]] virtual void abort(int code) noexcept = 0;
};

// Returns rank 0's value on every rank. Called by all.
inline std::string broadcast_text(Communicator& ranks, std::string text) {
  std::uint64_t size = text.size();
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  ranks.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

inline std::string Communicator::scatter(const std::vector<std::string>& texts) {
  std::string own;
  for (int rank = 0; rank < ranks().count; ++rank) {
    std::string text = broadcast_text(*this, texts.empty() ? std::string() : texts[static_cast<std::size_t>(rank)]);
    if (rank == ranks().rank) own = std::move(text);
  }
  return own;
}

}  // namespace weir
