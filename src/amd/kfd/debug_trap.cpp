#include "amd/kfd/debug_trap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "amd/kfd/tracer.h"
#include "base/file.h"

namespace weir::kfd {
namespace {

// Copied from linux/kfd_ioctl.h (interface 1.17), because few systems have a header that new.
struct VersionArguments {
  std::uint32_t major, minor;
};
struct RuntimeEnableArguments {
  std::uint64_t r_debug;
  std::uint32_t mode_mask;  // 1: enable, 2: keep state that the trap handler needs
  std::uint32_t capabilities;
};
struct EnableArguments {
  std::uint64_t exception_mask;
  std::uint64_t runtime_info;
  std::uint32_t runtime_info_bytes;
  std::uint32_t event_descriptor;
};
struct SuspendArguments {
  std::uint64_t exception_mask;
  std::uint64_t queue_ids;
  std::uint32_t queues;
  std::uint32_t grace_period;
};
struct ResumeArguments {
  std::uint64_t queue_ids;
  std::uint32_t queues;
  std::uint32_t padding;
};
struct SnapshotArguments {
  std::uint64_t exception_mask;
  std::uint64_t entries;
  std::uint32_t queues;       // in: capacity; out: the number of queues
  std::uint32_t entry_bytes;  // in: size of an entry here; out: size of the driver's
};
struct TrapArguments {
  std::uint32_t pid, operation;
  union {
    EnableArguments enable;
    SuspendArguments suspend;
    ResumeArguments resume;
    SnapshotArguments snapshot;
  };
};
struct RuntimeInfo {
  std::uint64_t r_debug;
  std::uint32_t state;
  std::uint32_t has_ttmp_setup;
};
static_assert(sizeof(VersionArguments) == 8 && sizeof(RuntimeEnableArguments) == 16 && sizeof(RuntimeInfo) == 16);
static_assert(sizeof(EnableArguments) == 24 && sizeof(SuspendArguments) == 24 && sizeof(ResumeArguments) == 16 &&
              sizeof(SnapshotArguments) == 24);
static_assert(sizeof(TrapArguments) == 32 && offsetof(TrapArguments, enable) == 8);

constexpr unsigned long kGetVersion = _IOR('K', 0x01, VersionArguments);
constexpr unsigned long kRuntimeEnable = _IOWR('K', 0x25, RuntimeEnableArguments);
constexpr unsigned long kDebugTrap = _IOWR('K', 0x26, TrapArguments);
static_assert(kGetVersion == 0x80084b01 && kRuntimeEnable == 0xc0104b25 && kDebugTrap == 0xc0204b26);

enum Operation : std::uint32_t { kEnable = 0, kDisable = 1, kSuspend = 6, kResume = 7, kSnapshot = 13 };

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

class KfdDevice final : public DebugTrap {
 public:
  KfdDevice(int descriptor, std::array<int, 2> events) : descriptor_(descriptor), events_(events) {}
  ~KfdDevice() override {
    for (const int each : {descriptor_, events_[0], events_[1]}) close(each);
  }

  int version(InterfaceVersion* version) noexcept override {
    VersionArguments arguments{};
    const int result = call(kGetVersion, &arguments);
    *version = {arguments.major, arguments.minor};
    return result;
  }
  int own_pid() const noexcept override { return getpid(); }

  int attach(int pid) noexcept override { return trace(pid); }
  int detach(int pid) noexcept override { return stop_tracing(pid); }
  bool attend(int pid) noexcept override { return pid == getpid() || attend_traced(pid); }

  int runtime_enable() noexcept override {
    RuntimeEnableArguments arguments{0, 1, 0};
    return call(kRuntimeEnable, &arguments);
  }
  int runtime_disable() noexcept override {
    RuntimeEnableArguments arguments{0, 0, 0};
    return call(kRuntimeEnable, &arguments);
  }

  int enable(int pid, std::uint64_t exception_mask, RuntimeState* state) noexcept override {
    RuntimeInfo info{};
    TrapArguments arguments = arguments_for(pid, kEnable);
    arguments.enable = {exception_mask, address_of(&info), sizeof info, static_cast<std::uint32_t>(events_[1])};
    const int result = call(kDebugTrap, &arguments);
    *state = static_cast<RuntimeState>(info.state);
    return result;
  }
  int disable(int pid) noexcept override {
    TrapArguments arguments = arguments_for(pid, kDisable);
    return call(kDebugTrap, &arguments);
  }
  int suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t exception_mask,
                     std::uint32_t grace_period) noexcept override {
    attend(pid);
    TrapArguments arguments = arguments_for(pid, kSuspend);
    arguments.suspend = {exception_mask, address_of(ids.data()), static_cast<std::uint32_t>(ids.size()), grace_period};
    return call(kDebugTrap, &arguments);
  }
  int resume_queues(int pid, std::span<std::uint32_t> ids) noexcept override {
    TrapArguments arguments = arguments_for(pid, kResume);
    arguments.resume = {address_of(ids.data()), static_cast<std::uint32_t>(ids.size()), 0};
    return call(kDebugTrap, &arguments);
  }
  int queue_snapshot(int pid, std::uint64_t exception_mask, std::span<QueueSnapshot> queues) noexcept override {
    attend(pid);
    TrapArguments arguments = arguments_for(pid, kSnapshot);
    arguments.snapshot = {exception_mask, address_of(queues.data()), static_cast<std::uint32_t>(queues.size()),
                          sizeof(QueueSnapshot)};
    const int result = call(kDebugTrap, &arguments);
    return result < 0 ? result : static_cast<int>(arguments.snapshot.queues);
  }
  std::int64_t now_ns() noexcept override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
  }

 private:
  static TrapArguments arguments_for(int pid, Operation operation) noexcept {
    TrapArguments arguments;
    std::memset(&arguments, 0, sizeof arguments);
    arguments.pid = static_cast<std::uint32_t>(pid);
    arguments.operation = operation;
    return arguments;
  }

  int call(unsigned long request, void* arguments) const noexcept {
    if (!may_issue(request)) return -ENOTTY;
    for (;;) {
      const int result = ioctl(descriptor_, request, arguments);
      if (result >= 0) return result;
      if (errno != EINTR && errno != EAGAIN) return -errno;
    }
  }

  int descriptor_;
  std::array<int, 2> events_;  // a pipe: the driver writes a byte per event, which is never read
};

}  // namespace

std::vector<std::uint32_t> compute_ids(std::span<const QueueSnapshot> queues) {
  std::vector<std::uint32_t> ids;
  for (const QueueSnapshot& queue : queues)
    if (queue.is_compute()) ids.push_back(queue.queue_id);
  return ids;
}

bool may_issue(unsigned long request) noexcept {
  return request == kGetVersion || request == kRuntimeEnable || request == kDebugTrap;
}

std::unique_ptr<DebugTrap> open_debug_trap(std::string* reason) {
  const int descriptor = open_kernel_file("/dev/kfd", O_RDWR).release();
  if (descriptor < 0) {
    const int error = errno;
    *reason = error == ENOENT ? "no /dev/kfd on this machine"
              : error == EACCES || error == EPERM
                  ? "/dev/kfd is not open to this user: join the groups render and video"
                  : fmt::format("/dev/kfd cannot be opened: {}", std::strerror(error));
    return nullptr;
  }
  std::array<int, 2> events{};
  if (pipe2(events.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    *reason = fmt::format("no pipe for the driver's events: {}", std::strerror(errno));
    close(descriptor);
    return nullptr;
  }
  return std::make_unique<KfdDevice>(descriptor, events);
}

}  // namespace weir::kfd
