#include "cli/hang.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/stop.h"
#include "cli/flag_values.h"
#include "cli/ranks.h"
#include "run/host_stacks.h"

namespace weir::cli {
namespace {

constexpr auto kGrace = std::chrono::milliseconds(2000);  // for the other ranks' reports
constexpr auto kLimit = std::chrono::milliseconds(4000);  // for the whole procedure

std::atomic<bool> is_ending{false};

void end_hung(const std::string& report) {
  if (is_ending.exchange(true, std::memory_order_relaxed)) return;  // read by is_ending_hung(); a claim only
  // Ends the process in any case, because the write below may block if nobody reads.
  try {
    std::thread([] {
      ::pthread_setname_np(::pthread_self(), "hang limit");  // so named because it appears among the stacks
      std::this_thread::sleep_for(kLimit);
      end_at_once(static_cast<int>(Fault::run));
    }).detach();
  } catch (const std::system_error&) {
    // Without a thread for it, the write below may take its time.
  }
  write_all(STDERR_FILENO,
            fmt::format("weir: {}\nHost threads, innermost function first:\n{}\n", report, host_stacks()));
  // Without other ranks there is no report to wait for. MPI is not asked to end the job: some thread may be inside it,
  // and MPI_THREAD_SERIALIZED does not allow two at once.
  if (job_ranks().count > 1) std::this_thread::sleep_for(kGrace);
  end_at_once(static_cast<int>(Fault::run));
}

}  // namespace

std::int64_t hang_timeout_ns(const std::string& flag) {
  if (flag.empty()) return 0;
  return static_cast<std::int64_t>(seconds_of("--hang-timeout", flag) * 1e9);
}

void watch_hangs(RunControl& control, const std::string& flag) {
  control.hang_timeout_ns = hang_timeout_ns(flag);
  control.on_hang = end_hung;
  watch_waits(control.hang_timeout_ns, end_hung);
}

bool is_ending_hung() noexcept { return is_ending.load(std::memory_order_relaxed); }

}  // namespace weir::cli
