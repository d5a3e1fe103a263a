#include "run/hang_watch.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "run/hang.h"

namespace weir {

HangWatch::HangWatch(std::int64_t timeout_ns, Source source,
                     std::function<void(std::span<const StreamProgress>, std::int64_t)> on_hang)
    : timeout_ns_(timeout_ns), source_(std::move(source)), on_hang_(std::move(on_hang)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

HangWatch::~HangWatch() {
  thread_.request_stop();
  thread_.join();
}

void HangWatch::watch(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "hang watch");  // for ps, top and stacks
  const std::chrono::nanoseconds period(std::clamp<std::int64_t>(timeout_ns_ / 20, 1'000'000, 100'000'000));
  std::uint64_t seen_calls = 0, seen_commands = 0;
  std::int64_t changed_ns = now_ns();
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, stop, period, [] { return false; })) {
    if (stop.stop_requested()) return;
    const std::uint64_t calls = calls_.load(std::memory_order_relaxed);
    const std::vector<StreamProgress> progress = source_();
    std::uint64_t commands = 0;
    bool is_outstanding = calls % 2 == 1;
    for (const StreamProgress& stream : progress) {
      commands += stream.submitted + stream.ended;  // both only increase
      is_outstanding |= stream.submitted != stream.ended;
    }
    const std::int64_t now = now_ns();
    if (!is_outstanding || calls != seen_calls || commands != seen_commands) {
      seen_calls = calls;
      seen_commands = commands;
      changed_ns = now;
    } else if (now - changed_ns >= timeout_ns_) {
      on_hang_(progress, now - changed_ns);
      return;
    }
  }
}

SessionWatch::SessionWatch(const RunControl& control, const DeviceInfo& info, Session& session, const Step& step,
                           const Placement& placement, std::span<const std::string> roles)
    : control_(control), step_(step), placement_(placement), roles_(roles.begin(), roles.end()) {
  if (control.hang_timeout_ns <= 0 || !control.on_hang || info.is_virtual) return;
  // Nothing is in flight now, so all collectives that the session has started have also ended.
  const std::vector<StreamProgress> before = session.progress();
  for (std::size_t i = 0; control.communicator != nullptr && i < before.size(); ++i) {
    const auto started = control.communicator->started(static_cast<int>(i));
    if (!started) {
      started_before_.clear();
      break;
    }
    std::uint64_t own = 0, position = 0;
    std::vector<CommandId> commands;
    for (CommandId id = 0; id < step.commands().size(); ++id)
      if (placement.stream_of[id] == i) commands.push_back(id);
    for (const CommandId id : commands) {
      const bool is_collective = step.commands()[id].kind == CommandKind::collective;
      const std::uint64_t ended = (before[i].ended + commands.size() - 1 - position++) / commands.size();
      if (is_collective) own += ended;
    }
    started_before_.push_back(*started - std::min(*started, own));
  }
  watch_.emplace(
      control.hang_timeout_ns, [&session] { return session.progress(); },
      [this](std::span<const StreamProgress> progress, std::int64_t still_ns) {
        HangFacts facts;
        if (control_.communicator != nullptr) facts.ranks = control_.communicator->ranks();
        facts.roles = roles_;
        facts.collectives = collectives();
        facts.still_ns = still_ns;
        control_.on_hang(diagnose(step_, placement_, progress, facts).text);
      });
}

std::vector<std::uint64_t> SessionWatch::collectives() const {
  std::vector<std::uint64_t> started;
  for (std::size_t i = 0; i < started_before_.size(); ++i)
    started.push_back(control_.communicator->started(static_cast<int>(i)).value_or(0) - started_before_[i]);
  return started;
}

}  // namespace weir
