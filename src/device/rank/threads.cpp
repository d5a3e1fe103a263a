#include "device/rank/threads.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "kernel/random.h"

namespace weir {
namespace {

template <class T>
T sum_of(std::span<const T* const> from, std::uint64_t i) {
  if constexpr (std::is_integral_v<T>) {
    std::uint32_t sum = 0;  // wraps without being undefined
    for (const T* each : from) sum += static_cast<std::uint32_t>(each[i]);
    return static_cast<T>(sum);
  } else {
    float sum = 0;
    for (const T* each : from) sum += to_float(each[i]);
    return from_float<T>(sum);
  }
}

template <class T>
void apply(CollectiveOp op, std::span<const void* const> inputs, std::span<void* const> outputs, std::uint64_t count) {
  const std::size_t ranks = inputs.size();
  std::vector<const T*> from;
  for (const void* input : inputs) from.push_back(static_cast<const T*>(input));
  const std::uint64_t part = count / ranks;  // where `from` has one for every rank
  for (std::size_t r = 0; r < ranks; ++r) {
    T* const to = static_cast<T*>(outputs[r]);
    switch (op) {
      case CollectiveOp::all_gather:
        for (std::size_t s = 0; s < ranks; ++s) std::memcpy(to + s * count, from[s], count * sizeof(T));
        break;
      case CollectiveOp::reduce_scatter:
        for (std::uint64_t i = 0; i < part; ++i) to[i] = sum_of<T>(from, r * part + i);
        break;
      case CollectiveOp::all_reduce:
        for (std::uint64_t i = 0; i < count; ++i) to[i] = sum_of<T>(from, i);
        break;
      case CollectiveOp::all_to_all:
        for (std::size_t s = 0; s < ranks; ++s) std::memcpy(to + s * part, from[s] + r * part, part * sizeof(T));
        break;
      case CollectiveOp::shift:
        std::memcpy(to, from[(r + ranks - 1) % ranks], count * sizeof(T));
        break;
    }
  }
}

}  // namespace

void apply_collective(CollectiveOp op, ElementType type, std::span<const void* const> from, std::span<void* const> to,
                      std::uint64_t count) {
  if (type == ElementType::i32) {
    apply<std::int32_t>(op, from, to, count);
  } else {
    with_float_type(type, [&]<class T>(T*) { apply<T>(op, from, to, count); });
  }
}

class ThreadWorld::Rank final : public Communicator {
 public:
  Rank(ThreadWorld& world, int rank, int count) : world_(world), ranks_{rank, count} {}

  Ranks ranks() const override { return ranks_; }
  Ranks local_ranks() const override { return ranks_; }
  std::string library() const override { return "threads of one process"; }

  void open_channels(int count) override {
    const Alone alone(*this);
    const std::lock_guard lock(world_.mutex_);
    if (static_cast<std::size_t>(count) > started_.size()) started_.resize(static_cast<std::size_t>(count), 0);
  }

  void open_group(const RankGroup& group, int count) override {
    const Alone alone(*this);
    const std::lock_guard lock(world_.mutex_);
    std::vector<std::uint64_t>& channels = started_in_[group];
    if (static_cast<std::size_t>(count) > channels.size()) channels.resize(static_cast<std::size_t>(count), 0);
  }

  Request start(int channel, const Collective& collective, ElementType type, const void* from, void* to,
                std::uint64_t count) override {
    const Alone alone(*this);
    const std::lock_guard lock(world_.mutex_);
    if (is_broken_) fail(fmt::format("rank {} is broken", ranks_.rank));
    const auto& [op, group] = collective;
    const Ranks own = group.within(ranks_);
    std::vector<std::uint64_t>& channels = group.has_all() ? started_ : started_in_[group];
    if (static_cast<std::size_t>(channel) >= channels.size()) fail(fmt::format("channel {} is not open", channel));
    const Key key{channel, group, group.first(ranks_.rank), channels[static_cast<std::size_t>(channel)]++};
    Meeting& meeting = world_.meetings_[key];
    if (meeting.arrived == 0) {
      meeting.op = op;
      meeting.type = type;
      meeting.count = count;
      meeting.from.resize(static_cast<std::size_t>(own.count));
      meeting.to.resize(static_cast<std::size_t>(own.count));
    } else if (meeting.op != op || meeting.type != type || meeting.count != count) {
      fail(fmt::format("rank {} starts another collective than the others on channel {}", ranks_.rank, channel));
    }
    meeting.from[static_cast<std::size_t>(own.rank)] = from;
    meeting.to[static_cast<std::size_t>(own.rank)] = to;
    if (++meeting.arrived == own.count) apply_collective(op, type, meeting.from, meeting.to, count);
    const Request request = ++requests_;
    in_flight_[request] = {key, own.count, static_cast<int>(random_bits(world_.seed_, request) % 5)};
    return request;
  }

  bool test(Request request) override {
    const Alone alone(*this);
    const std::lock_guard lock(world_.mutex_);
    const auto found = in_flight_.find(request);
    if (found == in_flight_.end()) fail("test() of a request that is gone");
    if (!world_.ended_.empty()) fail(world_.ended_);
    InFlight& mine = found->second;
    const auto meeting = world_.meetings_.find(mine.key);
    if (meeting->second.arrived != mine.count || mine.delay-- > 0) return false;
    if (++meeting->second.left == mine.count) world_.meetings_.erase(meeting);
    in_flight_.erase(found);
    return true;
  }

  void barrier() override {
    const Alone alone(*this);
    std::unique_lock lock(world_.mutex_);
    meet(lock);
  }
  void broadcast(std::span<std::byte> bytes, int from) override {
    const Alone alone(*this);
    std::unique_lock lock(world_.mutex_);
    if (ranks_.rank == from) world_.broadcast_.assign(bytes.begin(), bytes.end());
    meet(lock);
    std::memcpy(bytes.data(), world_.broadcast_.data(), bytes.size());
    meet(lock);
  }
  std::vector<std::string> gather(const std::string& text) override {
    const Alone alone(*this);
    std::unique_lock lock(world_.mutex_);
    world_.gathered_[static_cast<std::size_t>(ranks_.rank)] = text;
    meet(lock);
    std::vector<std::string> all;
    if (ranks_.rank == 0) all = world_.gathered_;
    meet(lock);
    return all;
  }
  [[noreturn]] void abort(int) noexcept override { std::abort(); }

 private:
  friend class ThreadWorld;
  // Throws where two threads are inside at once, which the interface forbids.
  class Alone {
   public:
    explicit Alone(Rank& rank) : rank_(rank) {
      if (rank_.is_inside_.exchange(true)) fail("two threads in one communicator at once");
    }
    ~Alone() { rank_.is_inside_ = false; }

   private:
    Rank& rank_;
  };
  using Key = std::tuple<int, RankGroup, int, std::uint64_t>;
  struct InFlight {
    Key key;
    int count = 0;
    int delay = 0;
  };

  void meet(std::unique_lock<std::mutex>& lock) {
    if (!world_.ended_.empty()) fail(world_.ended_);
    const std::uint64_t now = world_.barriers_;
    if (++world_.waiting_ == ranks_.count) {
      world_.waiting_ = 0;
      ++world_.barriers_;
      world_.changed_.notify_all();
    }
    world_.changed_.wait(lock, [&] { return world_.barriers_ != now || !world_.ended_.empty(); });
    if (world_.barriers_ == now) fail(world_.ended_);
  }

  ThreadWorld& world_;
  Ranks ranks_;
  std::atomic<bool> is_inside_{false};
  std::vector<std::uint64_t> started_;                          // by channel; all below under the world's mutex
  std::map<RankGroup, std::vector<std::uint64_t>> started_in_;  // by group and channel
  std::map<Request, InFlight> in_flight_;
  Request requests_ = 0;
  bool is_broken_ = false;
};

ThreadWorld::ThreadWorld(int ranks, std::uint64_t seed) : seed_(seed), gathered_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank, ranks));
}

ThreadWorld::~ThreadWorld() = default;

Communicator& ThreadWorld::rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

std::uint64_t ThreadWorld::started(int rank, int channel) const {
  const std::lock_guard lock(mutex_);
  const auto& channels = ranks_[static_cast<std::size_t>(rank)]->started_;
  return static_cast<std::size_t>(channel) < channels.size() ? channels[static_cast<std::size_t>(channel)] : 0;
}

void ThreadWorld::end(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (ended_.empty()) ended_ = why.empty() ? "another rank has given up" : why;
  changed_.notify_all();
}

void ThreadWorld::break_rank(int rank) {
  const std::lock_guard lock(mutex_);
  ranks_[static_cast<std::size_t>(rank)]->is_broken_ = true;
}

}  // namespace weir
