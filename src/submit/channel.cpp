// Producer threads enqueue command ids into a channel; a submitter drains it in batches and passes them to the session
// in a safe order. The caller's thread is the submitter: it has to wait for the step anyway, and a separate thread
// measured no better. On the null device a command takes 12-34 ns from its producer to the session, 7 of them in
// HoldBack (tiny_kernel_stress, 3200 commands on 8 streams, 1-4 producers, two Neoverse-V1 cores, 2026-11). Only ids
// are sent: a CommandRecord, which fills its cell's line, took 1.3-1.5 times as long.
#include "submit/channel.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <functional>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "channel/lanes.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/mutex_deque.h"
#include "channel/priority.h"
#include "channel/spsc.h"
#include "submit/hold_back.h"

namespace weir {
namespace {

constexpr std::size_t kCapacity = 1024;  // producers wait when this many are in the channel
constexpr std::size_t kPushed = 16;      // commands at once: 1 takes 1.7 times as long, 64 takes the same (as above)
constexpr std::size_t kPopped = 128;

template <class Channel>
std::unique_ptr<Channel> make_channel(std::size_t producers) {
  if constexpr (requires { Channel(kCapacity, producers); }) {
    return std::make_unique<Channel>(kCapacity, producers);
  } else {
    return std::make_unique<Channel>(kCapacity);
  }
}

// A command for a channel with priorities.
struct UrgentCommand {
  CommandId id;
  std::uint8_t priority;  // a level of the channel: 0 is the most urgent
};
CommandId id_of(CommandId id) noexcept { return id; }
CommandId id_of(const UrgentCommand& command) noexcept { return command.id; }

// Where a producer pushes: its own lane if the channel has lanes.
template <class Channel>
auto& end_of(Channel& channel, std::size_t producer) noexcept {
  if constexpr (requires { channel.producer(producer); }) {
    return channel.producer(producer);
  } else {
    return channel;
  }
}

template <class Channel>
class ChannelSubmitter final : public Submitter {
 public:
  ChannelSubmitter(const SubmitChoice& choice, const Step& step, const Placement& placement, Session& session,
                   int traced_iterations)
      : session_(session),
        command_count_(step.commands().size()),
        producers_(static_cast<std::size_t>(choice.producers)),
        hold_back_(step, placement, choice.submitters),
        drains_(static_cast<std::size_t>(choice.submitters)),
        traced_iterations_(static_cast<std::uint64_t>(traced_iterations)),
        enqueued_ns_(traced_iterations_ * command_count_, kNoTime) {
    System::prepare();
    for (Drain& drain : drains_) drain.channel = make_channel<Channel>(producers_.size());
    divide(step, placement);
    try {
      for (std::size_t i = 0; i < producers_.size(); ++i)
        threads_.emplace_back([this, i] { serve([&](std::uint64_t iteration) { enqueue(i, iteration); }); });
      for (std::size_t i = 1; i < drains_.size(); ++i)
        threads_.emplace_back([this, i] { serve([&](std::uint64_t) { drain(i); }); });
    } catch (const std::exception& error) {
      close();  // threads that did start must end, or joining them would wait for ever
      fail(fmt::format("cannot start a thread of {}: {}", choice.name, error.what()), "Use fewer producers.");
    }
  }
  ~ChannelSubmitter() override { close(); }

  void submit_step() noexcept override {
    const std::uint64_t iteration = begun_.fetch_add(1, std::memory_order_release);  // pairs with serve()
    begin_.notify_all();
    drain(0);
    for (std::size_t i = 1; i < drains_.size(); ++i)
      for (int spins = 0; drains_[i].done.load(std::memory_order_acquire) == iteration; ++spins)  // pairs with drain()
        System::relax(spins);
  }

  void stamp(Timeline& timeline) const override {
    for (Span& span : timeline.spans)
      if (span.iteration < traced_iterations_)
        span.enqueued_ns = enqueued_ns_[span.iteration * command_count_ + span.command];
  }

 private:
  // Commands that go into one channel together.
  struct Piece {
    std::uint32_t begin, end;  // in Producer::commands
    std::uint32_t drain;
  };
  using Item = typename Channel::Item;
  struct Producer {
    std::vector<Item> commands;
    std::vector<Piece> pieces;
  };
  struct Drain {
    std::unique_ptr<Channel> channel;
    alignas(kApart) std::atomic<std::uint64_t> done{0};  // iterations
  };

  // Maps the step's priorities to levels: the most urgent commands have the first.
  static auto items_of(const Step& step) {
    if constexpr (std::is_same_v<Item, CommandId>) {
      return [](CommandId id) { return id; };
    } else {
      std::set<int, std::greater<>> priorities;
      for (const Command& command : step.commands()) priorities.insert(command.priority);
      return [&step, priorities](CommandId id) {
        const auto level = std::distance(priorities.begin(), priorities.find(step.commands()[id].priority));
        return Item{id, static_cast<std::uint8_t>(level)};
      };
    }
  }

  // Streams go to producers round robin, as they do to threads. A producer's commands keep the step's order, except
  // where neighbours go to different submitters.
  void divide(const Step& step, const Placement& placement) {
    const auto item_of = items_of(step);
    std::vector<std::vector<Item>> waiting(drains_.size());
    for (std::size_t p = 0; p < producers_.size(); ++p) {
      Producer& producer = producers_[p];
      const auto cut = [&](std::size_t drain) {
        const auto begin = static_cast<std::uint32_t>(producer.commands.size());
        producer.commands.insert(producer.commands.end(), waiting[drain].begin(), waiting[drain].end());
        waiting[drain].clear();
        const auto end = static_cast<std::uint32_t>(producer.commands.size());
        if (begin != end) producer.pieces.push_back({begin, end, static_cast<std::uint32_t>(drain)});
      };
      for (CommandId id = 0; id < command_count_; ++id) {
        const std::size_t stream = placement.stream_of[id];
        if (stream % producers_.size() != p) continue;
        waiting[stream % drains_.size()].push_back(item_of(id));
        if (waiting[stream % drains_.size()].size() == kPushed) cut(stream % drains_.size());
      }
      for (std::size_t drain = 0; drain < drains_.size(); ++drain) cut(drain);
    }
  }

  void enqueue(std::size_t index, std::uint64_t iteration) noexcept {
    const Producer& producer = producers_[index];
    std::int64_t* const times =
        iteration < traced_iterations_ ? enqueued_ns_.data() + iteration * command_count_ : nullptr;
    for (const Piece& piece : producer.pieces) {
      const auto commands = std::span(producer.commands).subspan(piece.begin, piece.end - piece.begin);
      if (times != nullptr) [[unlikely]]
        for (const Item& item : commands)
          times[id_of(item)] = now_ns();  // before the push, or a quick submitter would be earlier
      end_of(*drains_[piece.drain].channel, index).push_batch(commands);
    }
  }

  // Runs one submitter until its part of the step is submitted.
  void drain(std::size_t index) noexcept {
    Drain& drain = drains_[index];
    HoldBack::Part& part = hold_back_.part(static_cast<int>(index));
    part.begin();
    std::array<Item, kPopped> popped;
    for (int idle = 0; !part.is_done();) {
      // With several submitters, another one may release a command while nothing comes out of this channel, so this one
      // must not sleep.
      const Moved moved = drains_.size() == 1 ? drain.channel->pop_batch(popped) : drain.channel->try_pop_batch(popped);
      for (std::size_t i = 0; i < moved.count; ++i) part.arrive(id_of(popped[i]));
      part.take_released();
      bool is_idle = moved.count == 0;
      for (auto batch = part.next(); !batch.empty(); batch = part.next()) {
        session_.submit(batch);
        part.submitted();
        is_idle = false;
      }
      idle = is_idle ? idle + 1 : 0;
      if (is_idle) System::relax(idle);
    }
    drain.done.fetch_add(1, std::memory_order_release);  // pairs with submit_step()
  }

  template <class Body>
  void serve(Body&& body) noexcept {
    for (std::uint64_t done = 0;; ++done) {
      await<Wait::spin_then_park, System>(begin_, Limit::forever(), Outcome::empty, [&] {
        // Pairs with the releases in submit_step() and close().
        return begun_.load(std::memory_order_acquire) == done ? Outcome::empty : Outcome::done;
      });
      if (is_closing_.load(std::memory_order_relaxed)) return;
      body(done);
    }
  }

  void close() noexcept {
    is_closing_.store(true, std::memory_order_relaxed);  // published by the release below
    begun_.fetch_add(1, std::memory_order_release);      // pairs with serve()
    begin_.notify_all();
    for (Drain& drain : drains_)
      if (drain.channel) drain.channel->close();
  }

  Session& session_;
  std::size_t command_count_;
  std::vector<Producer> producers_;
  HoldBack hold_back_;
  std::vector<Drain> drains_;
  std::uint64_t traced_iterations_;
  std::vector<std::int64_t> enqueued_ns_;                // by iteration and command; each producer writes its own
  alignas(kApart) std::atomic<std::uint64_t> begun_{0};  // iterations
  std::atomic<bool> is_closing_{false};
  Event<Wait::spin_then_park, System> begin_;
  std::vector<std::jthread> threads_;  // declared last: joined before the other members are destroyed
};

template <class Channel>
std::unique_ptr<Submitter> make(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                Session& session, int traced_iterations) {
  return std::make_unique<ChannelSubmitter<Channel>>(choice, step, placement, session, traced_iterations);
}

}  // namespace

std::span<const ChannelWay> channel_ways() {
  static constexpr std::array kWays = {
      ChannelWay{"mpsc", kMaxStreams, make<Mpsc<CommandId>>},
      ChannelWay{"lanes", kMaxStreams, make<Lanes<CommandId>>},
      ChannelWay{"mpmc", kMaxStreams, make<Mpmc<CommandId>>},
      ChannelWay{"spsc", 1, make<Spsc<CommandId>>},
      ChannelWay{"priority", kMaxStreams, make<Priority<UrgentCommand>>},
      ChannelWay{"mutex_deque", kMaxStreams, make<MutexDeque<CommandId>>},
  };
  return kWays;
}

}  // namespace weir
