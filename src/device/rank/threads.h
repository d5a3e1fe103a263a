// Ranks as threads of one process: a Communicator with the semantics of MPI's, for the devices of a node that one
// process has, and for tests. A collective that all ranks have started is done, but says so only after some calls of
// test(), so that nobody relies on more than the interface promises.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "device/rank/communicator.h"

namespace weir {

// What a collective leaves in `to` of every rank, given `from` of every rank. `count` is in elements of `from`. Sums
// are taken in rank order, f16 and bf16 in f32.
void apply_collective(CollectiveOp op, ElementType type, std::span<const void* const> from, std::span<void* const> to,
                      std::uint64_t count);

class ThreadWorld {
 public:
  explicit ThreadWorld(int ranks, std::uint64_t seed = 1);
  ~ThreadWorld();
  Communicator& rank(int rank);

  // How many collectives a rank has started on a channel. From any thread.
  std::uint64_t started(int rank, int channel) const;
  // From now on every start() of this rank throws.
  void break_rank(int rank);
  // A rank has given up: from now on the others throw where they would wait for it. From any thread.
  void end(const std::string& why);

 private:
  class Rank;
  // One collective as its ranks come and go.
  struct Meeting {
    CollectiveOp op{};
    ElementType type{};
    std::uint64_t count = 0;
    int arrived = 0, left = 0;
    std::vector<const void*> from;
    std::vector<void*> to;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // By channel, group, its first rank, and sequence number
  std::map<std::tuple<int, RankGroup, int, std::uint64_t>, Meeting> meetings_;
  std::uint64_t seed_;
  std::string ended_;  // why; empty: it has not
  int waiting_ = 0;
  std::uint64_t barriers_ = 0;
  std::vector<std::byte> broadcast_;
  std::vector<std::string> gathered_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace weir
