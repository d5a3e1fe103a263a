// A fake librocprofiler-sdk: what its parts share. Records what the fake HIP runtime reports, on a clock of its own.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fake_hip.h"

namespace weir::fake_rocprofiler {

// Far from the host's monotonic clock, so that a missing conversion fails a test.
inline constexpr std::int64_t kClockAhead = 777'000'000'000'000;

struct Call {
  std::string name;
  std::uint64_t correlation = 0, thread = 0;
  std::int64_t started = 0, ended = 0;
};

// A kernel or a copy.
struct Work {
  FakeHipWork::Kind kind = FakeHipWork::other;
  std::string name;
  std::uint64_t correlation = 0, thread = 0, external = 0, bytes = 0;
  int stream = 0, queue = 0;
  bool is_traced = false;
  std::int64_t started = 0, ended = 0;  // 0: not yet
};

struct State {
  std::mutex mutex;
  std::vector<Call> calls;
  std::vector<Work> works;
  std::uint64_t correlations = 0;
  bool is_attached = false;  // the runtime has begun, and found this
};

State& state();
// The library's own interface (rocprofiler_api.cpp): the mark that the program gives to what this thread submits, and
// what has ended. Nothing is traced outside of a started context.
struct Traced {
  bool is_traced = false;
  std::uint64_t external = 0;
};
Traced ask_for_mark(const Work& work);
void hand_on(const Work& work, std::uint64_t number);
std::int64_t clock_ns();
// A setting of WEIR_FAKE_ROCPROF ("drop=10,shuffle=1"); `otherwise` if it is not there.
std::int64_t setting(const char* name, std::int64_t otherwise = 0);
// What rocprofv3's tool writes when the process ends, if WEIR_FAKE_ROCPROF_FOLDER names a folder.
void write_json();

}  // namespace weir::fake_rocprofiler

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))
