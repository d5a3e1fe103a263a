// A communicator that simulates a network: collectives take at least as long as on a link of given latency and
// bandwidth, and one rank may skip one of them. Carries no data itself.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "device/rank/communicator.h"

namespace weir {

struct Network {
  double latency_us = 0;        // of every collective
  double bandwidth_gbs = 0;     // GB/s that a rank's link carries, shared by all its collectives; 0: no limit
  int absent_rank = -1;         // this rank never joins ...
  std::uint64_t absent_at = 0;  // ... its collective of this number, counted from 0 over all channels

  bool is_plain() const { return latency_us <= 0 && bandwidth_gbs <= 0 && absent_rank < 0; }
};

// Forwards to `inner`, which must outlive it. The simulated time starts when this rank starts the collective; links are
// full duplex and unaffected by other ranks' load.
class NetworkCommunicator final : public Communicator {
 public:
  NetworkCommunicator(Communicator& inner, const Network& network) : inner_(inner), network_(network) {}

  Ranks ranks() const override { return inner_.ranks(); }
  Ranks local_ranks() const override { return inner_.local_ranks(); }
  std::string library() const override { return inner_.library(); }
  void open_channels(int count) override { inner_.open_channels(count); }
  void open_group(const RankGroup& group, int count) override { inner_.open_group(group, count); }
  Request start(int channel, const Collective& collective, ElementType type, const void* from, void* to,
                std::uint64_t count) override;
  bool test(Request request) override;
  // Does not count a collective that an absent rank skips.
  std::optional<std::uint64_t> started(int channel) const noexcept override;
  void barrier() override { inner_.barrier(); }
  void broadcast(std::span<std::byte> bytes, int from) override { inner_.broadcast(bytes, from); }
  std::vector<std::string> gather(const std::string& text) override { return inner_.gather(text); }
  std::string scatter(const std::vector<std::string>& texts) override { return inner_.scatter(texts); }
  bool any(bool claim) override { return inner_.any(claim); }
  RankClockOffset clock_offset() override { return inner_.clock_offset(); }
  std::string host() const override { return inner_.host(); }
  [[noreturn]] void abort(int code) noexcept override;

 private:
  struct Delayed {
    Request inner = 0;
    std::int64_t due_ns = 0;
    bool is_absent = false;    // never started on `inner`
    bool has_arrived = false;  // the inner collective has ended and its request is gone
  };

  Communicator& inner_;
  Network network_;
  std::uint64_t started_ = 0;
  std::array<std::atomic<std::uint64_t>, kMaxStreams> joined_{};  // by channel; a channel is a stream
  std::int64_t link_free_ns_ = 0;
  std::vector<std::unique_ptr<Delayed>> all_;
  std::vector<Delayed*> idle_;
};

// Bytes that a rank's link carries for a collective of `count` elements of `from`, with ring algorithms.
double link_bytes(CollectiveOp op, ElementType type, std::uint64_t count, int ranks);

}  // namespace weir
