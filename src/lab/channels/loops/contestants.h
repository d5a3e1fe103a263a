// The contestants: Weir's channels and third-party queues with one interface. All are bounded or made to hold the same
// number of commands, never wait by themselves, and copy what they carry.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "channel/broadcast.h"
#include "channel/lanes.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/mutex_deque.h"
#include "channel/spsc.h"
#include "weir_build.h"

#if WEIR_HAVE_ATOMIC_QUEUE
#include <atomic_queue/atomic_queue.h>
#endif
#if WEIR_HAVE_BOOST_LOCKFREE
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>
#endif
#if WEIR_HAVE_CONCURRENTQUEUE
#include <concurrentqueue.h>
#endif
#if WEIR_HAVE_READERWRITERQUEUE
#include <readerwriterqueue.h>
#endif

namespace weir::channel_bench {

// A contestant is made for one capacity, and gives each thread that pushes or pops its own end (for most a reference to
// the queue, for some a token). kProducers and kConsumers: how many threads it can serve, 1 or kMany.
inline constexpr int kMany = 1 << 20;

// A contestant's name as a part of its type.
template <std::size_t kSize>
struct Name {
  consteval Name(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }  // NOLINT(google-explicit-constructor)
  char text[kSize]{};
};

template <class Channel, Name kText, int kMaxProducers, int kMaxConsumers, bool kOurs = true>
struct ChannelContestant {
  using Item = typename Channel::Item;
  static constexpr std::string_view kName = kText.text;
  static constexpr bool kIsOurs = kOurs;
  static constexpr int kProducers = kMaxProducers, kConsumers = kMaxConsumers;

  explicit ChannelContestant(std::size_t capacity) : channel(capacity) {}
  struct End {
    Channel& channel;
    bool try_push(const Item& item) noexcept { return channel.try_push(item) == Outcome::done; }
    bool try_pop(Item& item) noexcept { return channel.try_pop(item) == Outcome::done; }
  };
  End producer() noexcept { return {channel}; }
  End consumer() noexcept { return {channel}; }
  // Returns how many were moved.
  std::size_t try_push_batch(std::span<const Item> items) noexcept { return channel.try_push_batch(items).count; }
  std::size_t try_pop_batch(std::span<Item> items) noexcept
    requires requires(Channel& each) { each.try_pop_batch(items); }
  {
    return channel.try_pop_batch(items).count;
  }

  Channel channel;
};

template <class T>
using SpscContestant = ChannelContestant<Spsc<T>, "spsc", 1, 1>;
template <class T>
using MpscContestant = ChannelContestant<Mpsc<T>, "mpsc", kMany, 1>;
template <class T>
using MpmcContestant = ChannelContestant<Mpmc<T>, "mpmc", kMany, kMany>;
template <class T>
using MutexDequeContestant = ChannelContestant<MutexDeque<T>, "mutex_deque", kMany, kMany>;
// A broadcast with one consumer, which blocks producers when it is a ring behind: then it carries what others carry.
template <class T, Wait kWait = Wait::spin_then_park>
class OneSubscriber {
 public:
  using Item = T;
  explicit OneSubscriber(std::size_t capacity)
      : channel_(capacity, 1), subscriber_(channel_.subscribe(LagPolicy::blocks)) {}

  Outcome try_push(const T& item) noexcept { return channel_.try_push(item); }
  Moved try_push_batch(std::span<const T> items) noexcept { return channel_.try_push_batch(items); }
  Outcome push(const T& item, Limit limit = Limit::forever()) noexcept { return channel_.push(item, limit); }
  Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
    return channel_.push_batch(items, limit);
  }
  Outcome try_pop(T& item) noexcept { return subscriber_.try_pop(item); }
  Moved try_pop_batch(std::span<T> items) noexcept { return subscriber_.try_pop_batch(items); }
  Outcome pop(T& item, Limit limit = Limit::forever()) noexcept { return subscriber_.pop(item, limit); }
  Moved pop_batch(std::span<T> items, Limit limit = Limit::forever()) noexcept {
    return subscriber_.pop_batch(items, limit);
  }
  void close() noexcept { channel_.close(); }
  bool is_closed() const noexcept { return channel_.is_closed(); }
  std::size_t capacity() const noexcept { return channel_.capacity(); }

 private:
  Broadcast<T, kWait> channel_;
  typename Broadcast<T, kWait>::Subscriber subscriber_;
};
template <class T>
using BroadcastContestant = ChannelContestant<OneSubscriber<T>, "broadcast", kMany, 1>;
// One lane for each of kLanes producers; each producer may have one end. All lanes together hold the capacity.
template <class T, int kLanes>
struct LanesContestant {
  static constexpr std::string_view kName = "lanes";
  static constexpr bool kIsOurs = true;
  static constexpr int kProducers = kLanes, kConsumers = 1;
  explicit LanesContestant(std::size_t capacity) : channel(std::max<std::size_t>(1, capacity / kLanes), kLanes) {}
  struct Producer {
    typename Lanes<T>::Producer& lane;
    bool try_push(const T& item) noexcept { return lane.try_push(item) == Outcome::done; }
  };
  struct Consumer {
    Lanes<T>& channel;
    bool try_pop(T& item) noexcept { return channel.try_pop(item) == Outcome::done; }
  };
  Producer producer() noexcept {
    return {channel.producer(static_cast<std::size_t>(taken.fetch_add(1, std::memory_order_relaxed)))};  // a number
  }
  Consumer consumer() noexcept { return {channel}; }

  Lanes<T> channel;
  std::atomic<int> taken{0};
};

// Third-party queues. `Calls` adapts their push and pop.
template <class T, class Queue, class Calls, Name kText, int kMaxProducers, int kMaxConsumers>
struct QueueContestant {
  static constexpr std::string_view kName = kText.text;
  static constexpr bool kIsOurs = false;
  static constexpr int kProducers = kMaxProducers, kConsumers = kMaxConsumers;

  explicit QueueContestant(std::size_t capacity) : queue(capacity) {}
  struct End {
    Queue& queue;
    bool try_push(const T& item) { return Calls::push(queue, item); }
    bool try_pop(T& item) { return Calls::pop(queue, item); }
  };
  End producer() { return {queue}; }
  End consumer() { return {queue}; }
  std::size_t try_push_batch(std::span<const T> items) { return Calls::push_batch(queue, items); }
  std::size_t try_pop_batch(std::span<T> items)
    requires requires(Queue& each) { Calls::pop_batch(each, items); }
  {
    return Calls::pop_batch(queue, items);
  }

  Queue queue;
};

#if WEIR_HAVE_BOOST_LOCKFREE
struct BoostSpscCalls {
  static bool push(auto& queue, const auto& item) { return queue.push(item); }
  static bool pop(auto& queue, auto& item) { return queue.pop(item); }
  static std::size_t push_batch(auto& queue, auto items) { return queue.push(items.data(), items.size()); }
  static std::size_t pop_batch(auto& queue, auto items) { return queue.pop(items.data(), items.size()); }
};
template <class T>
using BoostSpscContestant = QueueContestant<T, boost::lockfree::spsc_queue<T>, BoostSpscCalls, "boost_spsc", 1, 1>;
// Its nodes are allocated in advance, and a push that finds none fails.
struct BoostQueueCalls {
  static bool push(auto& queue, const auto& item) { return queue.bounded_push(item); }
  static bool pop(auto& queue, auto& item) { return queue.pop(item); }
};
template <class T>
using BoostQueueContestant =
    QueueContestant<T, boost::lockfree::queue<T>, BoostQueueCalls, "boost_queue", kMany, kMany>;
#endif

#if WEIR_HAVE_CONCURRENTQUEUE
// Unbounded: grows where the others would be full, so it never waits for its consumer.
struct MoodycamelCalls {
  static bool push(auto& queue, const auto& item) { return queue.enqueue(item); }
  static bool pop(auto& queue, auto& item) { return queue.try_dequeue(item); }
  static std::size_t push_batch(auto& queue, auto items) {
    return queue.enqueue_bulk(items.data(), items.size()) ? items.size() : 0;
  }
  static std::size_t pop_batch(auto& queue, auto items) { return queue.try_dequeue_bulk(items.data(), items.size()); }
};
template <class T>
using MoodycamelContestant =
    QueueContestant<T, moodycamel::ConcurrentQueue<T>, MoodycamelCalls, "moodycamel", kMany, kMany>;
// The same with a token per thread, as its author recommends.
template <class T>
struct MoodycamelTokensContestant {
  static constexpr std::string_view kName = "moodycamel_tokens";
  static constexpr bool kIsOurs = false;
  static constexpr int kProducers = kMany, kConsumers = kMany;
  explicit MoodycamelTokensContestant(std::size_t capacity) : queue(capacity) {}
  struct Producer {
    moodycamel::ConcurrentQueue<T>& queue;
    moodycamel::ProducerToken token{queue};
    bool try_push(const T& item) { return queue.enqueue(token, item); }
  };
  struct Consumer {
    moodycamel::ConcurrentQueue<T>& queue;
    moodycamel::ConsumerToken token{queue};
    bool try_pop(T& item) { return queue.try_dequeue(token, item); }
  };
  Producer producer() { return {queue}; }
  Consumer consumer() { return {queue}; }
  moodycamel::ConcurrentQueue<T> queue;
};
#endif

#if WEIR_HAVE_READERWRITERQUEUE
struct ReaderWriterCalls {
  static bool push(auto& queue, const auto& item) { return queue.try_enqueue(item); }
  static bool pop(auto& queue, auto& item) { return queue.try_dequeue(item); }
};
template <class T>
using ReaderWriterContestant =
    QueueContestant<T, moodycamel::ReaderWriterQueue<T>, ReaderWriterCalls, "moodycamel_spsc", 1, 1>;
#endif

#if WEIR_HAVE_ATOMIC_QUEUE
// A pop that has claimed a command waits for its producer to finish writing it.
struct AtomicQueueCalls {
  static bool push(auto& queue, const auto& item) { return queue.try_push(item); }
  static bool pop(auto& queue, auto& item) { return queue.try_pop(item); }
};
template <class T, bool kIsSpsc>
struct AtomicQueue : atomic_queue::AtomicQueueB2<T, std::allocator<T>, true, false, kIsSpsc> {
  explicit AtomicQueue(std::size_t capacity) : AtomicQueue::AtomicQueueB2(static_cast<unsigned>(capacity)) {}
};
template <class T>
using AtomicQueueSpscContestant = QueueContestant<T, AtomicQueue<T, true>, AtomicQueueCalls, "atomic_queue_spsc", 1, 1>;
template <class T>
using AtomicQueueContestant = QueueContestant<T, AtomicQueue<T, false>, AtomicQueueCalls, "atomic_queue", kMany, kMany>;
#endif

// Calls f.template operator()<Contestant<T>>() for each contestant that can serve this many threads.
template <class T, int kProducers, int kConsumers, class F>
void for_each_contestant(F&& f) {
  const auto offer = [&]<class Contestant>(std::type_identity<Contestant>) {
    if constexpr (Contestant::kProducers >= kProducers && Contestant::kConsumers >= kConsumers)
      f.template operator()<Contestant>();
  };
  offer(std::type_identity<SpscContestant<T>>{});
  offer(std::type_identity<MpscContestant<T>>{});
  if constexpr (kProducers > 1 && kProducers < kMany) offer(std::type_identity<LanesContestant<T, kProducers>>{});
  offer(std::type_identity<MpmcContestant<T>>{});
  offer(std::type_identity<BroadcastContestant<T>>{});
  offer(std::type_identity<MutexDequeContestant<T>>{});
#if WEIR_HAVE_BOOST_LOCKFREE
  offer(std::type_identity<BoostSpscContestant<T>>{});
  offer(std::type_identity<BoostQueueContestant<T>>{});
#endif
#if WEIR_HAVE_CONCURRENTQUEUE
  offer(std::type_identity<MoodycamelContestant<T>>{});
  offer(std::type_identity<MoodycamelTokensContestant<T>>{});
#endif
#if WEIR_HAVE_READERWRITERQUEUE
  offer(std::type_identity<ReaderWriterContestant<T>>{});
#endif
#if WEIR_HAVE_ATOMIC_QUEUE
  offer(std::type_identity<AtomicQueueSpscContestant<T>>{});
  offer(std::type_identity<AtomicQueueContestant<T>>{});
#endif
}

}  // namespace weir::channel_bench
