// Request and response: a command goes through any channel, and its result comes back through a oneshot. One limit
// covers both ways and the wait for room, so that a full queue cannot block forever; a late reply is discarded, and can
// reach nobody else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/command_record.h"
#include "channel/oneshot.h"
#include "channel/wait.h"

namespace weir {

// The message. The server answers the ticket once.
template <class Record = CommandRecord>
struct alignas(64) Request {
  static_assert(Record::kLeavesRoomForStamp, "the channel's stamp lies in the record's first word");
  static constexpr bool kLeavesRoomForStamp = true;

  Record record;
  Ticket reply = 0;

  std::size_t used_bytes() const noexcept { return sizeof(Record) + sizeof(Ticket); }
};
static_assert(sizeof(Request<CommandRecord>) == 128);

// `Channel` carries Request<Record>. This and the channel must outlive clients, servers and everything they hold.
template <class Channel, class Result = std::uint64_t, Wait kWait = Wait::spin_then_park, class Sync = System>
class Requests {
 public:
  using Item = typename Channel::Item;
  using Record = decltype(Item::record);
  using Replies = Oneshots<Result, kWait, Sync>;

  // `max_in_flight`: how many results can be awaited at once.
  explicit Requests(Channel& channel, std::size_t max_in_flight = 64) : channel_(channel), replies_(max_in_flight) {}

  // For a client. Sends and waits. `late`: no room or no reply in time; whatever the server still does with the
  // command, its result is discarded. `closed`: the channel is closed, or the server dropped the command.
  Outcome call(const Record& record, Result& result, Limit limit) noexcept {
    Pending pending;
    const Outcome sent = send(record, pending, limit);
    if (sent != Outcome::done) return sent;
    const Outcome outcome = pending.wait(result, limit);
    return outcome == Outcome::empty ? Outcome::late : outcome;
  }
  // Sends; the result is awaited later, or given up when `pending` is destroyed. `full` only without a limit.
  using Pending = typename Replies::Receiver;
  Outcome send(const Record& record, Pending& pending, Limit limit) noexcept {
    Item item;
    item.record = record;
    const Outcome opened = replies_.open(item.reply, limit);
    if (opened != Outcome::done) return opened;
    pending = Pending(replies_, item.reply);
    const Outcome pushed = channel_.push(item, limit);
    if (pushed != Outcome::done) pending.give_up();
    return pushed;
  }

  // A command at the server. If destroyed without a reply, the client gets `closed`.
  class Taken {
   public:
    const Record& record() const noexcept { return record_; }
    // False: the client gave up, and the result was discarded.
    bool reply(const Result& result) noexcept { return sender_.set(result); }
    void drop() noexcept { sender_.drop(); }

   private:
    friend Requests;
    Record record_;
    typename Replies::Sender sender_;
  };
  // For servers, on as many threads as the channel has consumers.
  Outcome take(Taken& taken, Limit limit = Limit::forever()) noexcept {
    Item item;
    const Outcome outcome = channel_.pop(item, limit);
    if (outcome != Outcome::done) return outcome;
    taken.record_ = item.record;
    taken.sender_ = typename Replies::Sender(replies_, item.reply);
    return outcome;
  }

  // A server for its lifetime: when it ends, for whatever reason, the channel is closed and waiting clients get
  // `closed`. Must be destroyed on a thread that may pop.
  class Server {
   public:
    explicit Server(Requests& requests) noexcept : requests_(requests) {}
    ~Server() { requests_.refuse_all(); }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

   private:
    Requests& requests_;
  };
  void close() noexcept { channel_.close(); }

 private:
  void refuse_all() noexcept {
    channel_.close();
    Taken taken;
    // Terminates: after close(), only pushes already in progress can arrive.
    while (take(taken) == Outcome::done) taken.drop();
  }

  Channel& channel_;
  Replies replies_;
};

}  // namespace weir
