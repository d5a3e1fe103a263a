#include "device/rank/network.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"

namespace weir {

double link_bytes(CollectiveOp op, ElementType type, std::uint64_t count, int ranks) {
  const double bytes = static_cast<double>(count) * static_cast<double>(size_of(type));
  const double others = ranks - 1, all = ranks;
  switch (op) {
    case CollectiveOp::all_gather:
      return bytes * others;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
      return bytes * others / all;
    case CollectiveOp::all_reduce:
      return 2 * bytes * others / all;
    case CollectiveOp::shift:
      break;
  }
  return bytes;
}

Communicator::Request NetworkCommunicator::start(int channel, const Collective& collective, ElementType type,
                                                 const void* from, void* to, std::uint64_t count) {
  if (idle_.empty()) {
    all_.push_back(std::make_unique<Delayed>());
    idle_.reserve(all_.size());
    idle_.push_back(all_.back().get());
  }
  Delayed& delayed = *idle_.back();
  const bool is_absent = ranks().rank == network_.absent_rank && started_ == network_.absent_at;
  ++started_;
  delayed = {};
  delayed.is_absent = is_absent;
  if (!is_absent) {
    delayed.inner = inner_.start(channel, collective, type, from, to, count);
    joined_[static_cast<std::size_t>(channel)].fetch_add(1, std::memory_order_relaxed);  // read by watchers
  }
  idle_.pop_back();
  const std::int64_t now = now_ns();
  std::int64_t ready = now;
  if (network_.bandwidth_gbs > 0) {
    // 1 GB/s is one byte per nanosecond.
    link_free_ns_ =
        std::max(link_free_ns_, now) +
        std::llround(link_bytes(collective.op, type, count, std::max(2, collective.group.within(ranks()).count)) /
                     network_.bandwidth_gbs);
    ready = link_free_ns_;
  }
  delayed.due_ns = ready + std::llround(network_.latency_us * 1000);
  return reinterpret_cast<Request>(&delayed);
}

std::optional<std::uint64_t> NetworkCommunicator::started(int channel) const noexcept {
  return joined_[static_cast<std::size_t>(channel)].load(std::memory_order_relaxed);  // publishes nothing else
}

bool NetworkCommunicator::test(Request request) {
  auto& delayed = *reinterpret_cast<Delayed*>(request);
  if (delayed.is_absent) return false;
  if (!delayed.has_arrived) delayed.has_arrived = inner_.test(delayed.inner);
  if (!delayed.has_arrived || now_ns() < delayed.due_ns) return false;
  idle_.push_back(&delayed);
  return true;
}

void NetworkCommunicator::abort(int code) noexcept {
  inner_.abort(code);
  std::abort();  // gcc 12 ignores [[noreturn]] on a virtual function
}

}  // namespace weir
