#include "amd/kfd/smi_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace weir::kfd {
namespace {

constexpr std::size_t kLongestLine = 96;  // KFD_SMI_EVENT_MSG_SIZE
constexpr std::uint32_t kEviction = 9, kRestore = 10, kAllProcesses = 64;

struct SmiArguments {
  std::uint32_t gpu_id;
  std::uint32_t descriptor;  // set by the driver
};
constexpr unsigned long kSmiEvents = _IOWR('K', 0x1f, SmiArguments);
static_assert(sizeof(SmiArguments) == 8 && kSmiEvents == 0xc0084b1f);

constexpr std::uint64_t mask_of(std::uint32_t event) { return std::uint64_t{1} << (event - 1); }

template <class Number>
bool take_number(std::string_view& rest, Number& value, int base = 10) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
  if (error != std::errc() || end == rest.data()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

bool take_word(std::string_view& rest, std::string_view word) {
  if (!rest.starts_with(word)) return false;
  rest.remove_prefix(word.size());
  return true;
}

}  // namespace

std::string_view name_of(EvictionTrigger trigger) {
  constexpr std::string_view kNames[] = {"svm",          "userptr", "ttm", "suspend", "criu checkpoint",
                                         "criu restore", "unknown"};
  return kNames[static_cast<std::size_t>(trigger)];
}

void SmiEvents::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    // A line longer than the driver ever writes is cut, however long it is.
    if (!is_skipping_) begun_.append(piece.substr(0, kLongestLine + 1 - std::min(begun_.size(), kLongestLine + 1)));
    is_skipping_ = is_skipping_ || begun_.size() > kLongestLine;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    ++line_;
    if (is_skipping_)
      unread_.add("longer than a line of the driver", line_);
    else
      read_line(begun_);
    begun_.clear();
    is_skipping_ = false;
  }
}

//   9 177770879589000 -3934101 f7bc 2        evicted: ns, process, GPU, trigger
//   a 177770881230000 -3934101 f7bc R        restored, but rescheduled
//   a 177770881230000 -3934101 f7bc \0       restored: the byte is a real NUL
//   1 3a2f:python                            anything else: counted
void SmiEvents::read_line(std::string_view line) {
  std::uint32_t event = 0;
  if (line.empty()) return;
  if (!take_number(line, event, 16) || !take_word(line, " ") || event == 0 || event > 64)
    return unread_.add("no event", line_);
  if (event != kEviction && event != kRestore) {
    ++others_[event];
    return;
  }
  QueueEvent found;
  found.is_restore = event == kRestore;
  if (!take_number(line, found.at_ns) || found.at_ns < 0 || !take_word(line, " -") || !take_number(line, found.pid) ||
      found.pid < 0 || !take_word(line, " ") || !take_number(line, found.gpu_id, 16) || !take_word(line, " "))
    return unread_.add("an eviction or a restore without its fields", line_);
  if (found.is_restore) {
    found.is_rescheduled = line == "R";
    // Programs that copy text as C strings lose the NUL and everything after it.
    if (!found.is_rescheduled && !line.empty() && line != std::string_view("\0", 1))
      return unread_.add("a restore with another mark", line_);
  } else {
    std::uint32_t trigger = 0;
    if (!take_number(line, trigger) || !line.empty()) return unread_.add("an eviction without its trigger", line_);
    found.trigger = trigger < static_cast<std::uint32_t>(EvictionTrigger::unknown)
                        ? static_cast<EvictionTrigger>(trigger)
                        : EvictionTrigger::unknown;
  }
  events_.push_back(found);
}

std::vector<QueueEvent> SmiEvents::take() { return std::exchange(events_, {}); }

SmiListener::SmiListener(const std::vector<std::uint32_t>& gpu_ids, const std::string& folder) {
  if (folder.empty() && geteuid() != 0) {
    reason_ = "the driver shows events of other processes to root only";
    return;
  }
  for (const std::uint32_t gpu_id : gpu_ids) {
    std::string reason;
    Descriptor file = folder.empty() ? Descriptor(open_smi_events(gpu_id, true, &reason))
                                     : open_kernel_file(fmt::format("{}/{:x}", folder, gpu_id), O_RDONLY | O_NONBLOCK);
    if (!file && reason.empty()) reason = fmt::format("{}/{:x}: {}", folder, gpu_id, std::strerror(errno));
    if (file) sources_.push_back({std::move(file), {}});
    if (reason_.empty()) reason_ = reason;
  }
  if (gpu_ids.empty()) reason_ = "KFD shows no GPU";
}

std::vector<QueueEvent> SmiListener::take() {
  constexpr int kMostReads = 64;  // of 4 KiB from a GPU at a time; the driver keeps 1024 bytes
  std::vector<QueueEvent> all;
  for (Source& source : sources_) {
    char part[4096];
    for (int i = 0; i < kMostReads; ++i) {
      const ssize_t count = read(source.file.get(), part, sizeof part);  // EAGAIN: nothing more for now
      if (count <= 0) break;
      const std::string_view piece(part, static_cast<std::size_t>(count));
      text_ += piece;
      source.events.feed(piece);
    }
    for (const QueueEvent& event : source.events.take()) all.push_back(event);
  }
  std::stable_sort(all.begin(), all.end(), [](const QueueEvent& a, const QueueEvent& b) { return a.at_ns < b.at_ns; });
  return all;
}

std::string SmiListener::take_text() { return std::exchange(text_, {}); }

int open_smi_events(std::uint32_t gpu_id, bool of_all, std::string* reason) {
  const int device = open_kernel_file("/dev/kfd", O_RDWR).release();
  if (device < 0) {
    *reason = errno == ENOENT ? "no /dev/kfd on this machine"
                              : fmt::format("/dev/kfd cannot be opened: {}", std::strerror(errno));
    return -1;
  }
  SmiArguments arguments{gpu_id, 0};
  const int result = ioctl(device, kSmiEvents, &arguments);
  const int error = errno;
  close(device);
  if (result != 0) {
    *reason = fmt::format("the driver does not report events of GPU {}: {}", gpu_id, std::strerror(error));
    return -1;
  }
  const auto descriptor = static_cast<int>(arguments.descriptor);
  const std::uint64_t mask = mask_of(kEviction) | mask_of(kRestore) | (of_all ? mask_of(kAllProcesses) : 0);
  if (write(descriptor, &mask, sizeof mask) == static_cast<ssize_t>(sizeof mask)) return descriptor;
  *reason = fmt::format("the driver does not report events of queues: {}", std::strerror(errno));
  close(descriptor);
  return -1;
}

}  // namespace weir::kfd
