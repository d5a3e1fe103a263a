#include "rank/watch.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

namespace weir {
namespace {

constexpr std::chrono::milliseconds kPeriod{500};

// When the process was started, in clock ticks since boot; nothing where it is gone, or dead and not yet buried.
// 1234 (weir (x)) S 1 1234 ... : the name may hold anything, so the fields are counted from the last ')'.
std::optional<unsigned long long> start_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 3 && (field == "Z" || field == "X")) return std::nullopt;
    if (number == 22) return std::stoull(field);
  }
  return std::nullopt;
}

}  // namespace

RankWatch::RankWatch(std::span<const RankProcess> processes,
                     std::function<void(const RankProcess& dead, int lowest_alive)> on_death)
    : on_death_(std::move(on_death)) {
  for (const RankProcess& process : processes)
    if (const auto started = start_of(process.pid)) watched_.push_back({process, *started});
  thread_ = std::jthread([this](const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "rank watch");  // for who looks with ps or top
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!never.wait_for(lock, stop, kPeriod, [&] { return stop.stop_requested(); })) {
      const Watched* dead = nullptr;
      int lowest_alive = -1;
      for (const Watched& watched : watched_) {
        const bool is_alive = start_of(watched.process.pid) == watched.started;
        if (!is_alive && dead == nullptr) dead = &watched;
        if (is_alive && (lowest_alive < 0 || watched.process.rank < lowest_alive)) lowest_alive = watched.process.rank;
      }
      if (dead == nullptr) continue;
      on_death_(dead->process, lowest_alive);
      return;
    }
  });
}

}  // namespace weir
