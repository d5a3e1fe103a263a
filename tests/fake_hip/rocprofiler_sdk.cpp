// A librocprofiler-sdk without a GPU: the fake HIP runtime reports to it what that runs, and it hands this on as the
// real one does. Knows the library's rules; no table of ours.
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "rocprofiler.h"

namespace weir::fake_rocprofiler {

// Never destroyed: the runtime's queues run until the process ends.
State& state() {
  static State& kState = *new State;
  return kState;
}

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
             .count() +
         kClockAhead;
}

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const char* const all = std::getenv("WEIR_FAKE_ROCPROF");
  std::string_view text = all == nullptr ? "" : all;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos && part.substr(0, equals) == name)
      return std::atoll(std::string(part.substr(equals + 1)).c_str());
  }
  return otherwise;
}

namespace {

thread_local std::vector<std::size_t> open_calls;  // places in `calls`

std::uint64_t own_thread() {
  static thread_local const auto kThread = static_cast<std::uint64_t>(::syscall(SYS_gettid));
  return kThread;
}

void call_began(const char* name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  open_calls.push_back(s.calls.size());
  s.calls.push_back({name, ++s.correlations, own_thread(), clock_ns(), 0});
}

void call_ended() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.calls[open_calls.back()].ended = clock_ns();
  open_calls.pop_back();
}

unsigned long long submitted(const FakeHipWork* what, int stream, int queue) {
  State& s = state();
  Work work;
  work.kind = what->kind;
  work.name = what->name;
  work.bytes = what->bytes;
  work.thread = own_thread();
  work.stream = stream + 1;  // 0 is the default stream's
  work.queue = queue;
  const Traced traced = ask_for_mark(work);
  work.is_traced = traced.is_traced;
  work.external = traced.external;
  const std::lock_guard lock(s.mutex);
  work.correlation = open_calls.empty() ? ++s.correlations : s.calls[open_calls.back()].correlation;
  s.works.push_back(work);
  return s.works.size();
}

void ran(unsigned long long number, long long started_ns, long long ended_ns) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  Work& work = s.works[number - 1];
  work.started = started_ns + kClockAhead;
  work.ended = ended_ns + kClockAhead;
  if (work.is_traced) hand_on(work, number);
}

}  // namespace
}  // namespace weir::fake_rocprofiler

using namespace weir::fake_rocprofiler;

WEIR_FAKE_EXPORT const FakeHipObserver* weir_fake_rocprofiler_attach() {
  static constexpr FakeHipObserver kObserver = {call_began, call_ended, submitted, ran};
  state().is_attached = true;
  std::atexit(write_json);
  return &kObserver;
}

WEIR_FAKE_EXPORT int rocprofiler_get_timestamp(std::uint64_t* timestamp) {
  if (setting("clock", 1) == 0) return 1;
  *timestamp = static_cast<std::uint64_t>(clock_ns());
  return 0;
}
