// Daemon and clients are killed at any instant, again and again: everybody else has to go on, compute what it should,
// and end as it would have. 25 rounds here; with WEIR_LONG_TESTS=1 (make test-long) 500, about 30 s on two busy cores.
// How long anybody stood still is printed and not judged: it is the machine's business as well, which a bystander who
// is never scheduled shows; and where a client was killed, others that live may come first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iostream>
#include <optional>
#include <random>
#include <set>

#include "base/units.h"
#include "cli/sched_client.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

// Only for what would never come: on two cores with 20 busy threads three iterations took longer than 20 s.
constexpr std::int64_t kLimitNs = 200'000'000'000;
constexpr int kRounds = 25, kLongRounds = 500;

bool soon(const std::function<bool()>& is_so) {
  for (const std::int64_t end = now_ns() + kLimitNs; !is_so();) {
    if (now_ns() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

constexpr std::size_t kClients = 3;

// One daemon and its clients, all of them children of the test.
class Faults {
 public:
  explicit Faults(std::uint64_t seed)
      : random_(seed), bystander_([&] { return live_as_client("", {}, seed, notes_[kClients]); }) {}

  // False: something went wrong, and the test knows.
  bool round(int number) {
    if (!daemon_ && !start_daemon(number)) return false;
    for (std::size_t i = 0; i < kClients; ++i)
      if (!clients_[i]) start_client(i);
    // Some are killed while they join, most while they wait or run.
    const auto all_run = [&] {
      return std::all_of(std::begin(clients_), std::end(clients_), [&](const auto& client) {
        return notes_[static_cast<std::size_t>(&client - clients_.data())].iterations > 0;
      });
    };
    if (random_() % 4 != 0 && !soon(all_run)) {
      ADD_FAILURE() << "a client does not come to its first iteration";
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4000));
    const std::size_t victim = random_() % (kClients + 2);
    return victim < kClients ? kill_client(victim) : kill_daemon();
  }

  bool end() {
    for (std::size_t i = 0; i < kClients; ++i)
      if (clients_[i] && !end_client(i)) return false;
    if (daemon_) {
      if (!shows_seats()) return false;
      ask_stop(folder_.socket());
      EXPECT_EQ(daemon_->wait(), 0);
      daemon_.reset();
    }
    notes_[kClients].should_end = true;
    EXPECT_EQ(bystander_.wait(), 0);
    return true;
  }

  int daemons_killed() const { return daemons_killed_; }
  int clients_killed() const { return clients_killed_; }
  std::string words() const {
    const auto duration = [](std::int64_t ns) { return format_duration(static_cast<double>(ns)); };
    return fmt::format(
        "{} daemons and {} clients killed; longest that others stood still then: {} and {}, a bystander: {}; "
        "{} clients found no daemon",
        daemons_killed_, clients_killed_, duration(daemon_stall_ns_), duration(client_stall_ns_),
        duration(notes_[kClients].longest_ns), unscheduled_);
  }

 private:
  bool start_daemon(int number) {
    const auto all = policies();
    ServerOptions options = folder_.options();
    options.policy = &all[static_cast<std::size_t>(number) % all.size()];
    daemon_.emplace(daemon_process(options));
    const bool answers = soon([&] {
      try {
        ask_status(folder_.socket());
        return true;
      } catch (const Error&) {
        return false;
      }
    });
    EXPECT_TRUE(answers) << "a daemon does not come up, over the socket of one that was killed";
    return answers;
  }

  void start_client(std::size_t i) {
    const Terms terms{.priority = static_cast<int>(random_() % 3) * 10 - 10,
                      .weight = i == 0 ? 4.0 : 1.0,
                      .deadline_ns = i == 1 ? 5'000'000 : 0};
    const std::uint64_t seed = random_();
    new (&notes_[i]) Note;
    clients_[i].emplace([&] { return live_as_client(folder_.socket(), terms, seed, notes_[i]); });
  }

  bool end_client(std::size_t i) {
    notes_[i].should_end = true;
    const int code = clients_[i]->wait();
    clients_[i].reset();
    EXPECT_EQ(code, 0) << (code == kWrongOutput ? "wrong output" : "");
    return code == 0;
  }

  bool kill_client(std::size_t victim) {
    ++clients_killed_;
    Child dying = std::move(*clients_[victim]);
    clients_[victim].reset();
    if (!others_go_on(dying, client_stall_ns_)) return false;
    dying.wait();
    if (!shows_seats()) return false;
    // Now and then one ends by itself, and another comes.
    const std::size_t leaver = random_() % (4 * kClients);
    return leaver >= kClients || !clients_[leaver] || end_client(leaver);
  }

  bool kill_daemon() {
    ++daemons_killed_;
    if (!others_go_on(*daemon_, daemon_stall_ns_)) return false;
    daemon_->wait();
    daemon_.reset();
    for (std::size_t i = 0; i < kClients; ++i)
      if (!end_client(i)) return false;
    return true;
  }

  // Not one iteration more, which may have been under way, but several.
  bool others_go_on(const Child& victim, std::int64_t& longest_ns) {
    std::array<std::uint64_t, kClients> before{};
    for (std::size_t i = 0; i < kClients; ++i) {
      before[i] = notes_[i].iterations;
      notes_[i].longest_ns = 0;
    }
    victim.send(SIGKILL);
    for (std::size_t i = 0; i < kClients; ++i) {
      if (!clients_[i]) continue;
      const bool goes_on = soon([&] { return notes_[i].iterations >= before[i] + 3; });
      EXPECT_TRUE(goes_on) << "client " << i << " waits for ever";
      if (!goes_on) return false;
      longest_ns = std::max(longest_ns, notes_[i].longest_ns.load());
      unscheduled_ += notes_[i].joined == Joined::unscheduled ? 1 : 0;
    }
    return true;
  }

  // All who live and came to a seat, and nobody else.
  bool shows_seats() {
    std::set<int> expected, shown;
    for (std::size_t i = 0; i < kClients; ++i)
      if (clients_[i] && notes_[i].joined == Joined::scheduled) expected.insert(clients_[i]->pid());
    const bool is_right = soon([&] {
      shown.clear();
      const Json status = ask_status(folder_.socket());
      for (const Json& client : status["clients"]) shown.insert(client["pid"].get<int>());
      return shown == expected;
    });
    EXPECT_EQ(shown, expected);
    return is_right;
  }

  SocketFolder folder_;
  Notes<kClients + 1> notes_;
  std::mt19937_64 random_;
  Child bystander_;
  std::optional<Child> daemon_;
  std::array<std::optional<Child>, kClients> clients_;
  int daemons_killed_ = 0, clients_killed_ = 0, unscheduled_ = 0;
  std::int64_t daemon_stall_ns_ = 0, client_stall_ns_ = 0;
};

TEST(SchedFaults, whoever_is_killed_the_others_go_on) {
  const char* const asked = std::getenv("WEIR_LONG_TESTS");
  const bool is_long = asked != nullptr && std::string_view(asked) != "0";
  const char* const chosen = std::getenv("WEIR_FAULT_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 11;
  Faults faults(seed);
  for (int i = 0; i < (is_long ? kLongRounds : kRounds); ++i)
    ASSERT_TRUE(faults.round(i)) << "round " << i << ", WEIR_FAULT_SEED=" << seed;
  ASSERT_TRUE(faults.end());
  EXPECT_GT(faults.daemons_killed(), 0);
  EXPECT_GT(faults.clients_killed(), 0);
  std::cout << "  " << faults.words() << "\n";
  RecordProperty("faults", faults.words());
}

}  // namespace
}  // namespace weir::testing
