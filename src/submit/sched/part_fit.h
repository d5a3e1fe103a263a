// Finds by trying in which part of the device a client's kernels cost least, because how their blocks fit into it
// cannot be known beforehand: products of 4096 keep 78 % of their rate in 112 or 120 of an H200's 132 compute units,
// and nearly all of it in 128. Candidates take turns for some moments each; then the one stays with which the client
// gets most done while those who come first take hardly longer than with the best. Knows no clock: times and counters
// are arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "submit/sched/board.h"

namespace weir::scheduler {

class PartFit {
 public:
  struct Candidate {
    Confine confine = Confine::never;
    std::uint32_t percent = 0;
    bool operator==(const Candidate&) const = default;
  };
  // What has been counted up to a moment.
  struct Counters {
    std::uint64_t commands = 0;  // of the client
    std::uint64_t requests = 0;  // of those who come first
    std::uint64_t requests_ns = 0;
  };

  // Call again and again while somebody who comes first is about. Other candidates than before begin a new fit, as does
  // the length of the commands when it changes by half. The first candidate is what is used where nothing can be found.
  void see(std::span<const Candidate> candidates, std::int64_t command_ns, const Counters& now, std::int64_t now_ns);
  Candidate candidate() const { return candidates_[at_]; }
  bool is_settled() const { return is_settled_; }
  bool has_found() const { return is_settled_ && has_found_; }

  // What came of a candidate; only after all have been tried.
  struct Tried {
    Candidate candidate;
    double commands_per_s = 0, request_ns = 0;
  };
  std::span<const Tried> tried() const { return std::span(tried_).first(tried_count_); }

  static constexpr std::size_t kMost = 4, kRounds = 5;

 private:
  struct Window {
    double commands_per_s = 0;
    std::uint64_t requests = 0, requests_ns = 0;
  };
  void begin(std::span<const Candidate> candidates, std::int64_t command_ns, std::int64_t now_ns);
  void settle(std::int64_t now_ns);

  std::array<Candidate, kMost> candidates_{};
  std::size_t count_ = 0, at_ = 0, round_ = 0;
  std::array<std::array<Window, kRounds>, kMost> windows_{};
  std::array<Tried, kMost> tried_{};
  std::size_t tried_count_ = 0;
  bool is_settled_ = false, has_found_ = false, is_open_ = false;
  Counters opened_;
  std::int64_t opened_ns_ = 0, changed_ns_ = 0, seen_ns_ = 0;
  std::int64_t command_ns_ = 0;
};

}  // namespace weir::scheduler
