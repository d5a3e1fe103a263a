// Programs for the explorer around what is built on rings and events: events alone, lanes, priorities, broadcasts,
// replies and requests.
#pragma once

#include <array>
#include <climits>
#include <optional>
#include <vector>

#include "channel/broadcast.h"
#include "channel/explored_ring.h"
#include "channel/lanes.h"
#include "channel/mpsc.h"
#include "channel/oneshot.h"
#include "channel/priority.h"
#include "channel/request.h"

namespace weir::explored {

// Some wait for a count, others make it true.
template <Wait kWait, class Sync>
class Waiters : public Scenario {
 public:
  Waiters(int waiters, int wakers, bool wakes_all) : waiters_(waiters), wakers_(wakers), wakes_all_(wakes_all) {}
  int threads() const override { return waiters_ + wakers_; }
  void run(int thread) override {
    if (thread < waiters_) {
      await<kWait, Sync>(event_, Limit::forever(), Outcome::empty, [&] {
        std::uint32_t left = left_.load(std::memory_order_relaxed);
        while (left != 0) {
          const std::uint32_t taken = wakes_all_ ? 0 : 1;
          if (left_.compare_exchange_weak(left, left - taken, std::memory_order_relaxed)) return Outcome::done;
        }
        return Outcome::empty;
      });
    } else {
      left_.fetch_add(1, std::memory_order_relaxed);
      event_.notify(wakes_all_ ? INT_MAX : 1);
    }
  }

 private:
  const int waiters_, wakers_;
  const bool wakes_all_;
  Event<kWait, Sync> event_;
  typename Sync::template Atomic<std::uint32_t> left_{0};
};

// Lanes as a ring: each producer has its own.
template <class Sync, Wait kWait, std::size_t kLanes>
class LanesRing {
 public:
  explicit LanesRing(std::size_t capacity) : lanes_(capacity, kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) remember(&lanes_.producer(i), sizeof(lanes_.producer(i)));
  }
  Outcome push(const Item& item, Limit limit) { return lanes_.producer(item.producer).push(item, limit); }
  Moved push_batch(std::span<const Item> items, Limit limit) {
    return lanes_.producer(items.front().producer).push_batch(items, limit);
  }
  Outcome pop(Item& item, Limit limit) { return lanes_.pop(item, limit); }
  Moved pop_batch(std::span<Item> items, Limit limit) { return lanes_.pop_batch(items, limit); }
  void close() { lanes_.close(); }
  std::size_t capacity() const { return kLanes * lanes_.capacity(); }

 private:
  Lanes<Item, kWait, Sync> lanes_;
};

// Producers push at their own level; a level's bit is taken away at the first fruitless look.
template <class Sync, Wait kWait>
class PriorityRing {
 public:
  explicit PriorityRing(std::size_t capacity) : channel_(capacity) {}
  Outcome push(const Item& item, Limit limit) { return channel_.push(item, item.producer, limit); }
  Moved push_batch(std::span<const Item> items, Limit limit) { return channel_.push_batch(items, limit); }
  Outcome pop(Item& item, Limit limit) { return channel_.pop(item, limit); }
  Moved pop_batch(std::span<Item> items, Limit limit) { return channel_.pop_batch(items, limit); }
  void close() { channel_.close(); }
  std::size_t capacity() const { return 2 * channel_.capacity(); }

 private:
  Priority<Item, kWait, Sync, 2, 1> channel_;
};

struct Word {
  std::uint64_t value;
};

// One producer, and consumers that see everything, or are told how much they did not.
template <Wait kWait, class Sync>
class Listeners : public Scenario {
 public:
  using Channel = Broadcast<Word, kWait, Sync>;
  Listeners(std::uint64_t pushes, std::size_t capacity, std::vector<LagPolicy> behind)
      : pushes_(pushes), channel_(capacity, 2), count_(static_cast<int>(behind.size())) {
    for (int i = 0; i < count_; ++i) {
      behind_[index(i)] = behind[index(i)];
      subscribers_[index(i)].emplace(channel_.subscribe(behind_[index(i)]));
    }
  }
  ~Listeners() override = default;
  int threads() const override { return 1 + count_; }
  void run(int thread) override {
    if (thread == 0) {
      for (std::uint64_t i = 0; i < pushes_; ++i) {
        settle();
        if (channel_.push({i}) != Outcome::done) fail("a push of an open channel failed");
      }
      channel_.close();
      return;
    }
    auto& subscriber = *subscribers_[index(thread - 1)];
    std::uint64_t next = 0;
    for (;;) {
      settle();
      Word word{};
      const Outcome outcome = subscriber.pop(word);
      if (outcome == Outcome::missed) {
        if (behind_[index(thread - 1)] == LagPolicy::blocks) fail("one who blocks has missed something");
        if (subscriber.missed() == 0) fail("told of nothing missed");
        next += subscriber.missed();
        continue;
      }
      if (outcome != Outcome::done) {
        if (outcome != Outcome::closed) fail("a pop ended as it must not");
        break;
      }
      if (word.value != next++) fail("out of order, or torn");
    }
    if (next != pushes_) fail("not everything was seen or told of");
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const std::uint64_t pushes_;
  Channel channel_;
  int count_;
  std::array<LagPolicy, 2> behind_{};
  std::array<std::optional<typename Channel::Subscriber>, 2> subscribers_;
};

// A consumer that comes while commands are pushed sees all from some point on.
template <Wait kWait, class Sync>
class Latecomer : public Scenario {
 public:
  Latecomer(LagPolicy behind, std::uint64_t pushes) : behind_(behind), pushes_(pushes) {}
  int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      for (std::uint64_t i = 0; i < pushes_; ++i) {
        settle();
        channel_.push({i});
      }
      channel_.close();
      return;
    }
    auto subscriber = channel_.subscribe(behind_);
    bool has_begun = false;
    std::uint64_t next = 0;
    for (;;) {
      settle();
      Word word{};
      const Outcome outcome = subscriber.pop(word);
      if (outcome == Outcome::missed && behind_ == LagPolicy::misses) {
        next += subscriber.missed();
        if (!has_begun) continue;
      } else if (outcome != Outcome::done) {
        if (outcome != Outcome::closed) fail("a pop ended as it must not");
        break;
      } else if (has_begun && word.value != next) {
        fail("out of order, or torn");
      } else {
        next = word.value + 1;
        has_begun = true;
      }
    }
    if (has_begun && next != pushes_) fail("what came after the first was not all seen");
  }

 private:
  const LagPolicy behind_;
  const std::uint64_t pushes_;
  Broadcast<Word, kWait, Sync> channel_{1, 1};
};

// The receiver may give up and use the slot again, while the sender still answers the first question.
template <Wait kWait, class Sync>
class Reply : public Scenario {
 public:
  explicit Reply(bool drops) : drops_(drops) { replies_.open(first_); }
  int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      if (drops_) return replies_.drop(first_);
      was_set_ = replies_.set(first_, 11);
      return;
    }
    std::uint64_t reply = 0;
    outcome_ = replies_.wait(first_, reply, Limit::until(INT64_MAX - 1));
    if (outcome_ == Outcome::done && reply != 11) fail("the reply is not what was sent");
    if (outcome_ == Outcome::late) replies_.give_up(first_);
    settle();
    Ticket second = 0;
    if (replies_.open(second) != Outcome::done) return;  // the sender still has the slot
    if (!replies_.set(second, 22)) fail("nobody waits for the second reply");
    if (replies_.wait(second, reply, Limit::none()) != Outcome::done || reply != 22) fail("a late reply came through");
  }
  void judge() override {
    if (outcome_ == Outcome::done && !was_set_) fail("the sender was told that nobody waits");
    if (outcome_ == Outcome::closed && !drops_) fail("closed, and nobody dropped it");
    if (outcome_ == Outcome::empty || outcome_ == Outcome::full) fail("a wait ended as it must not");
    Ticket ticket = 0;
    if (replies_.open(ticket) != Outcome::done) fail("a slot was lost");
  }

 private:
  const bool drops_;
  Oneshots<std::uint64_t, kWait, Sync> replies_{1};
  Ticket first_ = 0;
  bool was_set_ = false;
  Outcome outcome_ = Outcome::empty;
};

// Two receivers share one slot: whoever waits for it is woken.
template <Wait kWait, class Sync>
class SlotShared : public Scenario {
 public:
  int threads() const override { return 2; }
  void run(int thread) override {
    Ticket ticket = 0;
    if (replies_.open(ticket, Limit::forever()) != Outcome::done) return fail("no slot, and no limit either");
    const auto sent = static_cast<std::uint64_t>(thread) + 5;
    if (!replies_.set(ticket, sent)) fail("nobody waits");
    std::uint64_t reply = 0;
    if (replies_.wait(ticket, reply) != Outcome::done || reply != sent) fail("another's reply");
  }

 private:
  Oneshots<std::uint64_t, kWait, Sync> replies_{1};
};

struct Question {
  static constexpr bool kLeavesRoomForStamp = true;
  std::uint64_t stamp;
  std::uint64_t value;
};

// A client asks, the server answers so many and goes away; with a deadline the client may give up at any time.
template <Wait kWait, class Sync>
class Asking : public Scenario {
 public:
  Asking(int answers, bool has_deadline) : answers_(answers), has_deadline_(has_deadline) {}
  int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      std::uint64_t result = 0;
      const Limit limit = has_deadline_ ? Limit::until(INT64_MAX - 1) : Limit::forever();
      outcome_ = requests_.call({0, 4}, result, limit);
      if (outcome_ == Outcome::done && result != 5) fail("a wrong result");
      return;
    }
    typename Service::Server server(requests_);
    for (int i = 0; i < answers_; ++i) {
      typename Service::Taken taken;
      if (requests_.take(taken) != Outcome::done) fail("a server of an open channel was refused");
      has_replied_ = taken.reply(taken.record().value + 1);
    }
  }
  void judge() override {
    if (outcome_ == Outcome::done && !has_replied_) fail("a result, and the server knows of none");
    if (outcome_ == Outcome::late && !has_deadline_) fail("late without a deadline");
    if (outcome_ == Outcome::closed && has_replied_) fail("a reply was lost");
  }

 private:
  using Channel = Mpsc<weir::Request<Question>, kWait, Sync>;
  using Service = Requests<Channel, std::uint64_t, kWait, Sync>;
  const int answers_;
  const bool has_deadline_;
  Channel channel_{1};
  Service requests_{channel_, 1};
  Outcome outcome_ = Outcome::empty;
  bool has_replied_ = false;
};

}  // namespace weir::explored
