// What is measured against each other: our channels and other people's queues behind one face. All of them are bounded
// or made to hold the same number of commands, never wait by themselves, and copy what they carry.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "channel/lanes.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/mutex_deque.h"
#include "channel/spsc.h"
#include "weir_build.h"

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

// A contestant is made for one capacity, and gives each thread that pushes or pops an end of its own (a reference to
// the queue for most, a token for some). kProducers and kConsumers: how many threads it can serve, 1 or kMany.
inline constexpr int kMany = 1 << 20;

template <class Channel, int kMostProducers, int kMostConsumers>
struct OurContestant {
  using Item = typename Channel::Item;
  static constexpr bool kIsOurs = true;
  static constexpr int kProducers = kMostProducers, kConsumers = kMostConsumers;

  explicit OurContestant(std::size_t capacity) : channel(capacity) {}
  struct End {
    Channel& channel;
    bool try_push(const Item& item) noexcept { return channel.try_push(item) == Outcome::done; }
    bool try_pop(Item& item) noexcept { return channel.try_pop(item) == Outcome::done; }
  };
  End producer() noexcept { return {channel}; }
  End consumer() noexcept { return {channel}; }

  Channel channel;
};

template <class T>
struct SpscContestant : OurContestant<Spsc<T>, 1, 1> {
  static constexpr std::string_view kName = "spsc";
  using OurContestant<Spsc<T>, 1, 1>::OurContestant;
};
template <class T>
struct MpscContestant : OurContestant<Mpsc<T>, kMany, 1> {
  static constexpr std::string_view kName = "mpsc";
  using OurContestant<Mpsc<T>, kMany, 1>::OurContestant;
};
template <class T>
struct MpmcContestant : OurContestant<Mpmc<T>, kMany, kMany> {
  static constexpr std::string_view kName = "mpmc";
  using OurContestant<Mpmc<T>, kMany, kMany>::OurContestant;
};
template <class T>
struct MutexDequeContestant : OurContestant<MutexDeque<T>, kMany, kMany> {
  static constexpr std::string_view kName = "mutex_deque";
  using OurContestant<MutexDeque<T>, kMany, kMany>::OurContestant;
};
// A lane for each of so many producers, of which each may have one end; all lanes together hold the capacity.
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

#if WEIR_HAVE_BOOST_LOCKFREE
template <class T>
struct BoostSpscContestant {
  static constexpr std::string_view kName = "boost_spsc";
  static constexpr bool kIsOurs = false;
  static constexpr int kProducers = 1, kConsumers = 1;
  explicit BoostSpscContestant(std::size_t capacity) : queue(capacity) {}
  struct End {
    boost::lockfree::spsc_queue<T>& queue;
    bool try_push(const T& item) { return queue.push(item); }
    bool try_pop(T& item) { return queue.pop(item); }
  };
  End producer() { return {queue}; }
  End consumer() { return {queue}; }
  boost::lockfree::spsc_queue<T> queue;
};
// Its nodes are made beforehand and a push that finds none fails.
template <class T>
struct BoostQueueContestant {
  static constexpr std::string_view kName = "boost_queue";
  static constexpr bool kIsOurs = false;
  static constexpr int kProducers = kMany, kConsumers = kMany;
  explicit BoostQueueContestant(std::size_t capacity) : queue(capacity) {}
  struct End {
    boost::lockfree::queue<T>& queue;
    bool try_push(const T& item) { return queue.bounded_push(item); }
    bool try_pop(T& item) { return queue.pop(item); }
  };
  End producer() { return {queue}; }
  End consumer() { return {queue}; }
  boost::lockfree::queue<T> queue;
};
#endif

#if WEIR_HAVE_CONCURRENTQUEUE
// Unbounded: grows where the others would be full, so it never waits for its consumer.
template <class T>
struct MoodycamelContestant {
  static constexpr std::string_view kName = "moodycamel";
  static constexpr bool kIsOurs = false;
  static constexpr int kProducers = kMany, kConsumers = kMany;
  explicit MoodycamelContestant(std::size_t capacity) : queue(capacity) {}
  struct End {
    moodycamel::ConcurrentQueue<T>& queue;
    bool try_push(const T& item) { return queue.enqueue(item); }
    bool try_pop(T& item) { return queue.try_dequeue(item); }
  };
  End producer() { return {queue}; }
  End consumer() { return {queue}; }
  moodycamel::ConcurrentQueue<T> queue;
};
// The same with a token per thread, as its author advises.
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
template <class T>
struct ReaderWriterContestant {
  static constexpr std::string_view kName = "moodycamel_spsc";
  static constexpr bool kIsOurs = false;
  static constexpr int kProducers = 1, kConsumers = 1;
  explicit ReaderWriterContestant(std::size_t capacity) : queue(capacity) {}
  struct End {
    moodycamel::ReaderWriterQueue<T>& queue;
    bool try_push(const T& item) { return queue.try_enqueue(item); }
    bool try_pop(T& item) { return queue.try_dequeue(item); }
  };
  End producer() { return {queue}; }
  End consumer() { return {queue}; }
  moodycamel::ReaderWriterQueue<T> queue;
};
#endif

// Calls f.template operator()<Contestant<T>>() for each that can serve so many threads.
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
}

}  // namespace weir::channel_bench
