#include "run/watched_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "base/process.h"
#include "base/units.h"

namespace weir {
namespace {

// The processors' time of a process without its own watches, which also run where everything else in it is stuck. Empty
// where there is no such process.
std::optional<unsigned long long> ticks_of(pid_t process) {
  std::optional<unsigned long long> ticks;
  std::error_code status;
  for (std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", process), status), end;
       !status && thread != end; thread.increment(status)) {
    // 1234 (hang watch) S 1200 ...: see facts_of()
    const std::string text = read_kernel_file((thread->path() / "stat").string(), 4096);
    const std::size_t name = text.find('('), name_end = text.rfind(')');
    if (name == std::string::npos || name_end == std::string::npos) continue;
    const std::string_view own = std::string_view(text).substr(name + 1, name_end - name - 1);
    std::istringstream fields(text.substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    unsigned long long user = 0, system = 0;
    if (fields >> user >> system)
      ticks = ticks.value_or(0) + (own == "hang watch" || own == "rank watch" ? 0 : user + system);
  }
  return ticks;
}

}  // namespace

void WatchedCommunicator::watch(std::int64_t timeout_ns, std::span<const RankProcess> neighbours,
                                std::function<void(const std::string&)> on_hang) {
  watch_.reset();
  neighbours_.clear();
  for (const RankProcess& each : neighbours) neighbours_.push_back({each});
  if (timeout_ns <= 0 || ranks().count == 1) return;
  watch_.emplace(
      timeout_ns,
      [this] {
        const std::uint64_t runs = is_waiting_.load(std::memory_order_relaxed) ? count_runs() : runs_;
        return std::vector<StreamProgress>{{runs, runs}};
      },
      [this, on_hang = std::move(on_hang)](std::span<const StreamProgress>, std::int64_t still_ns) {
        on_hang(report(still_ns));
      });
}

std::uint64_t WatchedCommunicator::count_runs() {
  // Ranks on other hosts cannot be seen, so a wait for them must end in time.
  if (neighbours_.empty() || static_cast<int>(neighbours_.size()) + 1 < ranks().count) return 0;
  for (Neighbour& each : neighbours_) {
    const auto ticks = ticks_of(each.process.pid);
    if (!ticks) continue;
    each.has_run |= *ticks != each.ticks;
    each.ticks = *ticks;
  }
  if (!std::all_of(neighbours_.begin(), neighbours_.end(), [](const Neighbour& each) { return each.has_run; }))
    return runs_;
  for (Neighbour& each : neighbours_) each.has_run = false;
  return ++runs_;
}

std::string WatchedCommunicator::report(std::int64_t still_ns) const {
  std::string text = fmt::format("rank {} of {}: has waited for the other ranks for {}", ranks().rank, ranks().count,
                                 format_duration(static_cast<double>(still_ns)));
  for (const Neighbour& each : neighbours_) {
    const auto facts = facts_of(each.process.pid);
    const bool is_stopped = facts && (facts->state == 'T' || facts->state == 't');
    if (is_stopped || !each.has_run)
      text += fmt::format("\n  rank {} (pid {}) {}", each.process.rank, each.process.pid,
                          is_stopped ? "is stopped: by SIGSTOP, Ctrl-Z or a debugger" : "has not run since");
  }
  return text;
}

void WatchedCommunicator::abort(int code) noexcept {
  inner_->abort(code);
  std::abort();  // gcc 12 ignores [[noreturn]] on a virtual function
}

}  // namespace weir
