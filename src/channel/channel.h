// The interface of every channel, as concepts, and the names of channels on the command line.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "channel/blocking.h"
#include "channel/broadcast.h"
#include "channel/command_record.h"
#include "channel/lanes.h"
#include "channel/metered.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/mutex_deque.h"
#include "channel/priority.h"
#include "channel/spsc.h"

namespace weir {

// The pushing end. The caller chooses what happens when full: fail (try_push), block (push), or block until a limit.
template <class Channel>
concept CommandSink = requires(Channel& channel, const typename Channel::Item& item,
                               std::span<const typename Channel::Item> items, Limit limit) {
  { channel.try_push(item) } noexcept -> std::same_as<Outcome>;
  { channel.try_push_batch(items) } noexcept -> std::same_as<Moved>;
  { channel.push(item, limit) } noexcept -> std::same_as<Outcome>;
  { channel.push_batch(items, limit) } noexcept -> std::same_as<Moved>;
};

// The popping end.
template <class Channel>
concept CommandSource =
    requires(Channel& channel, typename Channel::Item& item, std::span<typename Channel::Item> items, Limit limit) {
      { channel.try_pop(item) } noexcept -> std::same_as<Outcome>;
      { channel.try_pop_batch(items) } noexcept -> std::same_as<Moved>;
      { channel.pop(item, limit) } noexcept -> std::same_as<Outcome>;
      { channel.pop_batch(items, limit) } noexcept -> std::same_as<Moved>;
    };

// The channel itself. Closing it wakes all waiters; commands in it can still be popped, and then pops return `closed`.
template <class Channel>
concept Closable = requires(Channel& channel, const Channel& same) {
  { channel.close() } noexcept;
  { same.is_closed() } noexcept -> std::same_as<bool>;
  { same.capacity() } noexcept -> std::same_as<std::size_t>;
};

template <class Channel>
concept CommandChannel = CommandSink<Channel> && CommandSource<Channel> && Closable<Channel>;

static_assert(CommandChannel<MutexDeque<CommandRecord>>);
static_assert(CommandChannel<Spsc<CommandRecord>>);
static_assert(CommandChannel<Mpsc<CommandRecord>>);
static_assert(CommandChannel<Mpmc<CommandRecord>>);
static_assert(CommandChannel<Priority<CommandRecord>>);
static_assert(CommandChannel<Metered<Mpsc<CommandRecord>>>);
// Each producer has a lane of its own, each consumer a subscription.
static_assert(CommandSink<Lanes<CommandRecord>::Producer> && CommandSource<Lanes<CommandRecord>> &&
              Closable<Lanes<CommandRecord>>);
static_assert(CommandSink<Broadcast<CommandRecord>> && CommandSource<Broadcast<CommandRecord>::Subscriber> &&
              Closable<Broadcast<CommandRecord>>);

// In display order: file names, and the values of --channel and --submit channel:NAME.
inline constexpr std::array<std::string_view, 7> kChannelNames = {"mutex_deque", "spsc",      "mpsc",    "lanes",
                                                                  "mpmc",        "broadcast", "priority"};
constexpr std::span<const std::string_view> channel_names() noexcept { return kChannelNames; }

// Held by a consumer: when it ends, for whatever reason, producers that wait or push later get `closed`.
template <Closable Channel>
class CloseOnExit {
 public:
  explicit CloseOnExit(Channel& channel) noexcept : channel_(channel) {}
  ~CloseOnExit() { channel_.close(); }
  CloseOnExit(const CloseOnExit&) = delete;
  CloseOnExit& operator=(const CloseOnExit&) = delete;

 private:
  Channel& channel_;
};

}  // namespace weir
