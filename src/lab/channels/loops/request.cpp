// Request and response: a command through the channel, its result back through a oneshot, compared with the legacy way
// of a queue protected by a mutex and polling for completion.
#include "channel/request.h"

#include <algorithm>
#include <memory>

#include "channel/channel.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

constexpr std::int64_t kPatienceNs = 10'000'000'000;  // after this something is broken

std::uint64_t reply_to(std::uint64_t question) { return question * 3 + 1; }

// One client, one server, each trip timed. `Way` has call(record, result) and serve(), which returns when it is closed.
template <class Way>
Measurement measure(const Conditions& conditions) {
  Measurement measurement;
  const int trips = std::max(500, static_cast<int>(conditions.sample_ms * 1e6 / 1000));
  Trips times;
  Tally sent, received;
  for (int sample = 0; sample < conditions.samples; ++sample) {
    const auto way = std::make_unique<Way>(conditions.capacity);
    run_team(conditions.cores, 2, [&](int thread) {
      if (thread == 1) {
        way->serve();
        return;
      }
      const CloseOnExit closer(way->channel);
      for (int i = 0; i < trips; ++i) {
        const auto id = static_cast<std::uint32_t>(i);
        std::uint64_t result = 0;
        const std::int64_t began_ns = now_ns();
        if (!way->call(make_synchronize(0, id), result, Limit::until(began_ns + kPatienceNs))) return;
        times.add(now_ns() - began_ns);
        sent.add(reply_to(id));
        received.add(result);
      }
    });
    if (times.count() != static_cast<std::size_t>(trips)) {
      measurement.failure = "a request had no reply within 10 s";
      measurement.samples.clear();
      return measurement;
    }
    times.end_sample(measurement);
  }
  times.end(measurement);
  judge(sent, received, measurement);
  return measurement;
}

template <class Channel>
struct ThroughOneshot {
  explicit ThroughOneshot(std::size_t capacity) : channel(capacity), requests(channel) {}
  bool call(const CommandRecord& record, std::uint64_t& result, Limit limit) noexcept {
    return requests.call(record, result, limit) == Outcome::done;
  }
  void serve() noexcept {
    const typename Requests<Channel>::Server server(requests);
    typename Requests<Channel>::Taken taken;
    while (requests.take(taken) == Outcome::done) taken.reply(reply_to(taken.record().id));
  }
  Channel channel;
  Requests<Channel> requests;
};

// Both sides poll the mutex-protected queue.
struct Polling {
  explicit Polling(std::size_t capacity) : channel(capacity), replies(capacity) {}
  bool call(const CommandRecord& record, std::uint64_t& result, Limit limit) noexcept {
    if (channel.push(record, limit) != Outcome::done) return false;
    for (int spins = 0; replies.try_pop(result) != Outcome::done; ++spins) {
      System::relax(spins);
      if (spins % 64 == 63 && limit.is_past()) return false;
    }
    return true;
  }
  void serve() noexcept {
    CommandRecord record;
    Outcome outcome = Outcome::empty;
    for (int spins = 0; outcome != Outcome::closed; ++spins) {
      outcome = channel.try_pop(record);
      if (outcome == Outcome::done) {
        replies.push(reply_to(record.id));
        spins = 0;
      } else {
        System::relax(spins);
      }
    }
  }
  MutexDeque<CommandRecord> channel;
  MutexDeque<std::uint64_t> replies;
};

template <class Way>
Benchmark make(const Conditions& conditions, std::string contestant, std::string what) {
  const Target target = target_for(contestant, {5000, "< 5 us"}, {25'000, "mutex: < 25 us"});
  return {.name = "round_trip",
          .contestant = std::move(contestant),
          .what = std::move(what),
          .target = target,
          .run = measure<Way>,
          .unavailable = conditions.cores.size() == 1 ? "client and server need a core each" : ""};
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  const std::string what = "a client asks and waits, a server answers: through the channel, back by oneshot";
  std::vector<Benchmark> all = {
      make<ThroughOneshot<Spsc<Request<>>>>(conditions, "spsc", what),
      make<ThroughOneshot<Mpsc<Request<>>>>(conditions, "mpsc", what),
      make<ThroughOneshot<Mpmc<Request<>>>>(conditions, "mpmc", what),
      make<ThroughOneshot<OneSubscriber<Request<>>>>(conditions, "broadcast", what),
      make<ThroughOneshot<Priority<Request<>>>>(conditions, "priority", what),
      make<ThroughOneshot<MutexDeque<Request<>>>>(conditions, "mutex_deque", what),
      make<Polling>(conditions, "mutex_polling", "a queue behind a mutex each way, both sides poll"),
  };
  all.back().is_ours = false;
  return all;
}

}  // namespace

Group request() { return {"request", "request and response with a time-out", "Round-Trip Latency", benchmarks}; }

}  // namespace weir::channel_bench
