// Every channel behind one face, so that one test can ask the same of all of them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "channel/channel.h"

namespace weir::test {

// Long enough for any machine that is busy with other things; short enough that a broken channel is not waited for all
// day.
inline Limit patience() { return Limit::within(200'000'000'000); }

template <class Channel>
struct Simple {
  Simple(std::size_t capacity, int) : channel(capacity) {}
  Channel& sink(int) { return channel; }
  Channel& source() { return channel; }
  Channel channel;
};
template <class T, Wait kWait>
struct OnLanes {
  OnLanes(std::size_t capacity, int producers) : channel(capacity, static_cast<std::size_t>(producers)) {}
  auto& sink(int producer) { return channel.producer(static_cast<std::size_t>(producer)); }
  auto& source() { return channel; }
  Lanes<T, kWait> channel;
};
template <class T, Wait kWait>
struct Subscribed {
  Subscribed(std::size_t capacity, int) : channel(capacity), subscriber(channel.subscribe(LagPolicy::blocks)) {}
  auto& sink(int) { return channel; }
  auto& source() { return subscriber; }
  Broadcast<T, kWait> channel;
  typename Broadcast<T, kWait>::Subscriber subscriber;
};

inline constexpr int kAny = 1 << 20;

struct MutexDequeKind {
  static constexpr const char* kName = "mutex_deque";
  static constexpr int kProducers = kAny, kConsumers = kAny;
  static constexpr bool kCopiesOnlyWhatIsUsed = false;
  static constexpr std::size_t kMin = 1;
  template <class T, Wait kWait>
  using Made = Simple<MutexDeque<T, kWait>>;
};
struct SpscKind {
  static constexpr const char* kName = "spsc";
  static constexpr int kProducers = 1, kConsumers = 1;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 1;
  template <class T, Wait kWait>
  using Made = Simple<Spsc<T, kWait>>;
};
struct MpscKind {
  static constexpr const char* kName = "mpsc";
  static constexpr int kProducers = kAny, kConsumers = 1;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 1;
  template <class T, Wait kWait>
  using Made = Simple<Mpsc<T, kWait>>;
};
struct LanesKind {
  static constexpr const char* kName = "lanes";
  static constexpr int kProducers = kAny, kConsumers = 1;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 1;
  template <class T, Wait kWait>
  using Made = OnLanes<T, kWait>;
};
struct MpmcKind {
  static constexpr const char* kName = "mpmc";
  static constexpr int kProducers = kAny, kConsumers = kAny;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 2;
  template <class T, Wait kWait>
  using Made = Simple<Mpmc<T, kWait>>;
};
struct BroadcastKind {
  static constexpr const char* kName = "broadcast";
  static constexpr int kProducers = kAny, kConsumers = 1;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 1;
  template <class T, Wait kWait>
  using Made = Subscribed<T, kWait>;
};
struct PriorityKind {
  static constexpr const char* kName = "priority";
  static constexpr int kProducers = kAny, kConsumers = 1;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 1;
  template <class T, Wait kWait>
  using Made = Simple<Priority<T, kWait>>;
};
struct MeteredKind {
  static constexpr const char* kName = "metered";
  static constexpr int kProducers = kAny, kConsumers = kAny;
  static constexpr bool kCopiesOnlyWhatIsUsed = true;
  static constexpr std::size_t kMin = 2;
  template <class T, Wait kWait>
  using Made = Simple<Metered<Mpmc<T, kWait>>>;
};

using Kinds =
    ::testing::Types<MutexDequeKind, SpscKind, MpscKind, LanesKind, MpmcKind, BroadcastKind, PriorityKind, MeteredKind>;
struct KindName {
  template <class Kind>
  static std::string GetName(int) {
    return Kind::kName;
  }
};

// f.template operator()<kWait>() for each way to wait.
template <class F>
void for_each_wait(F&& f) {
  const auto run = [&]<Wait kWait>() {
    SCOPED_TRACE(fmt::format("wait: {}", name_of(kWait)));
    f.template operator()<kWait>();
  };
  run.template operator()<Wait::spin>();
  run.template operator()<Wait::spin_then_park>();
  run.template operator()<Wait::park>();
}

// The `sequence`-th command of a producer; every byte of it follows from both.
inline CommandRecord command(int producer, std::uint32_t sequence) {
  std::array<std::byte, kNarrowParams> params;
  for (std::size_t i = 0; i < params.size(); ++i)
    params[i] = static_cast<std::byte>(sequence * 31 + static_cast<std::uint32_t>(producer) * 7 + i);
  return make_launch(static_cast<std::uint16_t>(producer), sequence ^ 0xabcdU, {sequence, 2, 3}, {4, 5, 6}, params,
                     sequence);
}
inline bool is_whole(const CommandRecord& record) {
  const CommandRecord wanted = command(record.stream, record.id);
  return record.kind == wanted.kind && record.launch.kernel == wanted.launch.kernel &&
         record.launch.grid.x == wanted.launch.grid.x && record.launch.params == wanted.launch.params;
}

}  // namespace weir::test
