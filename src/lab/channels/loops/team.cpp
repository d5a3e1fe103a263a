#include "lab/channels/loops/team.h"

#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "channel/system.h"

namespace weir::channel_bench {
namespace {

bool bind(const std::vector<int>& cores, int index) {
  if (cores.empty()) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(index) % cores.size()]), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace

std::int64_t run_team(const std::vector<int>& cores, int threads, const std::function<void(int)>& body) {
  std::atomic<int> ready{0};
  enum class Gate { closed, open, cancelled };
  std::atomic<Gate> gate{Gate::closed};
  std::atomic<std::int64_t> ended_ns{0};
  std::exception_ptr thrown;
  std::mutex thrown_mutex;
  std::vector<std::jthread> team;
  const auto start = [&](int i) {
    team.emplace_back([&, i] {
      bind(cores, i);
      ready.fetch_add(1, std::memory_order_relaxed);
      for (int spins = 0; gate.load(std::memory_order_acquire) == Gate::closed; ++spins)
        System::relax(spins);  // pairs with the stores below
      if (gate.load(std::memory_order_relaxed) == Gate::cancelled) return;
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(thrown_mutex);
        thrown = std::current_exception();
      }
      const std::int64_t now = now_ns();
      std::int64_t latest = ended_ns.load(std::memory_order_relaxed);
      while (latest < now && !ended_ns.compare_exchange_weak(latest, now, std::memory_order_relaxed)) {
      }
    });
  };
  try {
    for (int i = 0; i < threads; ++i) start(i);
  } catch (const std::system_error& error) {
    gate.store(Gate::cancelled, std::memory_order_release);  // or joining those that did start would never return
    fail(fmt::format("cannot start {} threads: {}", threads, error.code().message()),
         "Raise the limits on processes and address space (ulimit -u, ulimit -v).");
  }
  while (ready.load(std::memory_order_relaxed) != threads) yield_core();
  const std::int64_t began_ns = now_ns();
  gate.store(Gate::open, std::memory_order_release);  // pairs with the load of each thread
  team.clear();
  if (thrown) std::rethrow_exception(thrown);
  return ended_ns.load(std::memory_order_relaxed) - began_ns;
}

BoundToCore::BoundToCore(const std::vector<int>& cores, int index) {
  cpu_set_t set;
  if (cores.empty() || sched_getaffinity(0, sizeof set, &set) != 0) return;
  if (!bind(cores, index)) return;
  before_.resize(sizeof set);
  std::memcpy(before_.data(), &set, sizeof set);
}

BoundToCore::~BoundToCore() {
  if (before_.empty()) return;
  cpu_set_t set;
  std::memcpy(&set, before_.data(), sizeof set);
  sched_setaffinity(0, sizeof set, &set);
}

void judge(const Tally& sent, const Tally& received, Measurement& measurement) {
  measurement.sent += sent.count;
  measurement.received += received.count;
  if (sent == received) return;
  measurement.is_checksum_right = false;
  measurement.failure = sent.count != received.count
                            ? fmt::format("{} of {} commands arrived", received.count, sent.count)
                            : std::string("what arrived is not what was sent: the checksums differ");
  measurement.samples.clear();
}

}  // namespace weir::channel_bench
