// libweir_hip_gate.so: preloaded into other people's HIP programs by `weir sched run`, which holds their launches, and
// by `weir record`, which records their calls. Knows HIP's headers; the library is the program's.
#include <cstdlib>
#include <exception>
#include <mutex>

#include "submit/inject/hip_pass.h"
#include "submit/inject/hip_record.h"
#include "submit/inject/join.h"

namespace weir::inject {
namespace {

HipUsers find_users() {
  HipUsers users;
  if (std::getenv(record::kFolderVariable) != nullptr) {
    start_hip_record();
    users.is_recorded = true;
  }
  if (missing_in_hip() == nullptr)
    users.gate = join(first_device_driver());
  else if (is_scheduled())
    report_unscheduled("HIP lacks events, or does not show which streams are being captured");
  return users;
}

}  // namespace

constinit std::atomic<bool> g_is_hip_unwatched{false};

const HipUsers* hip_users() noexcept {
  static std::once_flag once;
  static constinit HipUsers known;
  static constinit std::atomic<const HipUsers*> users{nullptr};
  static constinit std::atomic<bool> is_known{false};
  if (is_known.load(std::memory_order_acquire))  // pairs with the store below
    return users.load(std::memory_order_relaxed);
  try {
    std::call_once(once, [] {
      known = find_users();
      if (known.gate != nullptr || known.is_recorded)
        users.store(&known, std::memory_order_relaxed);
      else
        g_is_hip_unwatched.store(true, std::memory_order_relaxed);
      is_known.store(true, std::memory_order_release);
    });
  } catch (const std::exception&) {
    return nullptr;
  }
  return users.load(std::memory_order_relaxed);
}

}  // namespace weir::inject
