// The scheduler for a long time among clients that come, go, idle, stop and are killed at random, and connections that
// say nothing. One client always has work. Nobody may compute anything wrong or wait for ever, and the daemon must not
// grow. Two seconds here; with WEIR_LONG_TESTS=1 (make test-long) WEIR_SOAK_SECONDS of it, 600 unless it says
// otherwise. How long the steady client stood still is printed and not judged: on a busy machine a program that is not
// scheduled at all stands still as well, which a bystander shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

#include "base/units.h"
#include "cli/sched_client.h"
#include "submit/sched/ask.h"
#include "support/programs.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

constexpr std::size_t kGuests = 8, kSteady = kGuests, kBystander = kGuests + 1;
constexpr std::int64_t kSecondNs = 1'000'000'000, kBarNs = kSecondNs / 5;
constexpr std::int64_t kSoakLimitNs = 200 * kSecondNs;  // only for what would never come
constexpr std::size_t kMostSilentSockets = 200;

bool comes_soon(const std::function<bool()>& is_so) {
  for (const std::int64_t end = now_ns() + kSoakLimitNs; !is_so();) {
    if (now_ns() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::size_t open_files(pid_t pid) {
  std::error_code status;
  const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", pid), status);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// VmRSS:	    5280 kB
std::int64_t resident_kb(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::strtoll(line.c_str() + 6, nullptr, 10);
  return 0;
}

std::size_t shared_memory_files() {
  std::error_code status;
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", status))
    found += entry.path().filename().string().starts_with("weir_sched") ? 1 : 0;
  return found;
}

// Takes a seat and launches nothing.
int idle_as_client(const std::string& socket, const Terms& terms, Note& note) {
  std::string reason;
  const auto connection = Connection::open(socket, terms, "idle", &reason);
  note.joined = connection != nullptr ? Joined::scheduled : Joined::unscheduled;
  while (!note.should_end) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return 0;
}

class Soak {
 public:
  explicit Soak(std::uint64_t seed)
      : random_(seed), bystander_([&] { return live_as_client("", {}, seed, notes_[kBystander], kAlways); }) {}

  // One daemon, from its start to its end.
  bool live(std::int64_t length_ns, int number) {
    const auto all = policies();
    ServerOptions options = folder_.options();
    options.policy = &all[static_cast<std::size_t>(number) % all.size()];
    daemon_.emplace(daemon_process(options));
    if (!comes_soon([&] { return answers(); })) return failed("a daemon does not come up");
    const std::size_t files_before = open_files(daemon_->pid());
    new (&notes_[kSteady]) Note;
    steady_.emplace([&] { return live_as_client(folder_.socket(), {}, random_(), notes_[kSteady], kAlways); });
    const std::int64_t begun = now_ns(), end = begun + length_ns;
    std::vector<std::int64_t> sizes_kb;
    for (std::int64_t measured = begun; now_ns() < end;) {
      if (!act()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10 + random_() % 60));
      if (now_ns() - measured < kSecondNs / 2) continue;
      measured = now_ns();
      sizes_kb.push_back(resident_kb(daemon_->pid()));
      most_files_ = std::max(most_files_, open_files(daemon_->pid()));
      const std::uint64_t before = notes_[kSteady].iterations;
      const bool goes_on = comes_soon([&] { return notes_[kSteady].iterations > before || has_ended(steady_->pid()); });
      if (has_ended(steady_->pid()))
        return failed(fmt::format("the steady client ended by itself, with code {}", steady_->wait()).c_str());
      if (!goes_on) return failed("the steady client waits");
    }
    silent_sockets_.clear();
    for (std::size_t i = 0; i < kGuests; ++i)
      if (guests_[i] && !end_guest(i)) return false;
    notes_[kSteady].should_end = true;
    if (steady_->wait() != 0) return failed("the steady client ended otherwise than it should");
    steady_.reset();
    iterations_ += notes_[kSteady].iterations;
    judge_stalls();
    longest_ns_ = std::max(longest_ns_, notes_[kSteady].longest_ns.load());
    longest_held_ns_ = std::max(longest_held_ns_, notes_[kSteady].longest_held_ns.load());
    std::size_t files_after = 0;
    if (!comes_soon([&] { return (files_after = open_files(daemon_->pid())) <= files_before; }))
      return failed(fmt::format("the daemon had {} open files, and now {}", files_before, files_after).c_str());
    // Seats and buffers are made in the first moments.
    if (sizes_kb.size() >= 40) growth_kb_ = std::max(growth_kb_, sizes_kb.back() - sizes_kb[sizes_kb.size() / 10]);
    if (!sizes_kb.empty()) most_kb_ = std::max(most_kb_, *std::max_element(sizes_kb.begin(), sizes_kb.end()));
    ++daemons_;
    if (number % 2 == 0) {
      ask_stop(folder_.socket());
      if (daemon_->wait() != 0) return failed("the daemon ended otherwise than it should");
    }
    daemon_.reset();  // killed, where it was not asked
    return true;
  }

  bool end() {
    notes_[kBystander].should_end = true;
    return bystander_.wait() == 0 || failed("the bystander ended otherwise than it should");
  }

  std::int64_t growth_kb() const { return growth_kb_; }
  std::uint64_t iterations() const { return iterations_; }
  std::string words() const {
    const auto duration = [](std::int64_t ns) { return format_duration(static_cast<double>(ns)); };
    return fmt::format(
        "{} daemons, {} clients, {} of them killed, {} stops, {} silent connections; the steady client: {} iterations, "
        "longest stall {}, held by the scheduler for at most {}; {} stalls over 200 ms while a bystander stood still, "
        "too, and {} others, held for at most {}; the bystander's longest stall {}; daemon: at most {} files and {} "
        "kB, "
        "growth {} kB",
        daemons_, clients_, killed_, stops_, silent_, iterations_, duration(longest_ns_), duration(longest_held_ns_),
        stalls_of_machine_, stalls_, duration(longest_own_held_ns_), duration(notes_[kBystander].longest_ns),
        most_files_, most_kb_, growth_kb_);
  }

 private:
  // Two commands each, one for each stream (a stream without any is refused): a stall is that of one or two commands,
  // and not the sum over many.
  static constexpr Life kAlways{.commands = 2, .least_pause_us = 0, .more_pause_us = 0};

  static bool failed(const char* what) {
    ADD_FAILURE() << what;
    return false;
  }

  // A long stall is put down to the machine if the bystander, which is not scheduled, stood still at the same time.
  void judge_stalls() {
    const Note &steady = notes_[kSteady], &bystander = notes_[kBystander];
    for (std::uint32_t i = 0; i < steady.stall_count; ++i) {
      const Note::Stall& stall = steady.stalls[i];
      if (stall.took_ns < kBarNs) continue;
      bool is_shared = false;
      for (std::uint32_t other = 0; other < bystander.stall_count; ++other) {
        const Note::Stall& seen = bystander.stalls[other];
        is_shared |= seen.ended_ns > stall.ended_ns - stall.took_ns && seen.ended_ns - seen.took_ns < stall.ended_ns;
      }
      ++(is_shared ? stalls_of_machine_ : stalls_);
      if (!is_shared) longest_own_held_ns_ = std::max(longest_own_held_ns_, stall.held_ns.load());
    }
  }

  bool answers() const {
    try {
      return ask_status(folder_.socket()).at("schema") == "weir.sched_status/1";
    } catch (const Error&) {
      return false;
    }
  }

  bool act() {
    switch (random_() % 16) {
      case 0:
        for (std::uint64_t count = random_() % 80; count > 0; --count) connect_and_say_nothing();
        return true;
      case 1:
        silent_sockets_.clear();
        return true;
      case 2:
        return comes_soon([&] { return answers(); }) || failed("the daemon does not answer");
      default:
        return act_on_guest(random_() % kGuests);
    }
  }

  void connect_and_say_nothing() {
    Peer peer;
    std::string reason;
    if (silent_sockets_.size() >= kMostSilentSockets) return;
    if (Descriptor socket = connect_to_daemon(folder_.socket(), peer_of, &peer, &reason)) {
      // Some say something that nobody understands.
      if (random_() % 8 == 0) send_packet(socket.get(), std::string(random_() % 200, 'x'));
      silent_sockets_.push_back(std::move(socket));
      ++silent_;
    }
  }

  bool act_on_guest(std::size_t i) {
    if (!guests_[i]) {
      start_guest(i);
      return true;
    }
    const std::uint64_t dice = random_() % 8;
    if (dice < 2) {
      guests_[i]->send(SIGKILL);
      guests_[i]->wait();
      guests_[i].reset();
      ++killed_;
    } else if (is_stopped_[i]) {
      guests_[i]->send(SIGCONT);
      is_stopped_[i] = false;
    } else if (dice < 6) {
      guests_[i]->send(SIGSTOP);
      is_stopped_[i] = true;
      ++stops_;
    } else {
      return end_guest(i);
    }
    return true;
  }

  void start_guest(std::size_t i) {
    const Terms terms{.priority = static_cast<int>(random_() % 21) - 10,
                      .weight = 0.1 + static_cast<double>(random_() % 50) / 10,
                      .deadline_ns = static_cast<std::int64_t>(random_() % 3) * 4'000'000};
    const std::uint64_t seed = random_();
    const bool is_idle = random_() % 4 == 0;
    const Life life{.commands = 2 + static_cast<int>(random_() % 100),
                    .least_pause_us = static_cast<std::int64_t>(random_() % 3) * 300,
                    .more_pause_us = static_cast<std::int64_t>(random_() % 2) * 20'000};
    new (&notes_[i]) Note;
    is_stopped_[i] = false;
    ++clients_;
    guests_[i].emplace([&] {
      return is_idle ? idle_as_client(folder_.socket(), terms, notes_[i])
                     : live_as_client(folder_.socket(), terms, seed, notes_[i], life);
    });
  }

  bool end_guest(std::size_t i) {
    notes_[i].should_end = true;
    guests_[i]->send(SIGCONT);
    const int code = guests_[i]->wait();
    guests_[i].reset();
    return code == 0 || failed(code == kWrongOutput ? "wrong output" : "a client ended otherwise than it should");
  }

  SocketFolder folder_;
  Notes<kGuests + 2> notes_;
  std::mt19937_64 random_;
  Child bystander_;
  std::optional<Child> daemon_, steady_;
  std::array<std::optional<Child>, kGuests> guests_;
  std::array<bool, kGuests> is_stopped_{};
  std::vector<Descriptor> silent_sockets_;
  int daemons_ = 0, clients_ = 0, killed_ = 0, stops_ = 0, silent_ = 0;
  std::size_t most_files_ = 0;
  std::uint64_t iterations_ = 0;
  std::int64_t longest_ns_ = 0, longest_held_ns_ = 0, longest_own_held_ns_ = 0, growth_kb_ = 0, most_kb_ = 0;
  int stalls_ = 0, stalls_of_machine_ = 0;  // longer than kBarNs
};

TEST(SchedSoak, daemon_neither_grows_nor_stalls_anybody) {
  const char* const asked = std::getenv("WEIR_LONG_TESTS");
  const bool is_long = asked != nullptr && std::string_view(asked) != "0";
  const char* const chosen = std::getenv("WEIR_SOAK_SECONDS");
  const std::int64_t seconds = !is_long ? 2 : chosen != nullptr ? std::strtoll(chosen, nullptr, 10) : 600;
  const char* const seeded = std::getenv("WEIR_FAULT_SEED");
  const std::uint64_t seed = seeded != nullptr ? std::strtoull(seeded, nullptr, 10) : 11;
  const int daemons = is_long ? 5 : 2;  // one for each policy
  const std::size_t shared_before = shared_memory_files();
  Soak soak(seed);
  for (int i = 0; i < daemons; ++i) {
    ASSERT_TRUE(soak.live(seconds * kSecondNs / daemons, i)) << "daemon " << i << ", WEIR_FAULT_SEED=" << seed;
    if (is_long) std::cout << "  " << soak.words() << std::endl;
  }
  ASSERT_TRUE(soak.end());
  std::cout << "  " << soak.words() << "\n";
  RecordProperty("soak", soak.words());
  EXPECT_GT(soak.iterations(), 0U);
  EXPECT_LT(soak.growth_kb(), 1024);
  EXPECT_EQ(shared_memory_files(), shared_before);
}

}  // namespace
}  // namespace weir::testing
