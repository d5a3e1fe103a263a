#include "lab/kernels/surroundings.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "lab/kernels/yardstick.h"

namespace weir::bench {
namespace {

// A file of /proc or /sys that is read again and again from its beginning.
class Counters {
 public:
  explicit Counters(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Counters() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  std::string_view text() {
    const ssize_t size = descriptor_ < 0 ? 0 : pread(descriptor_, text_.data(), text_.size(), 0);
    return {text_.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
  }

 private:
  int descriptor_;
  std::array<char, 512> text_{};
};

// The word at `index` of what is separated by blanks or ends of lines, as a number.
std::optional<std::uint64_t> number_at(std::string_view text, int index) {
  constexpr std::string_view kBlanks = " \n\t";
  for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = text.find_first_not_of(kBlanks, begin)) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    if (index-- == 0) {
      std::uint64_t value = 0;
      const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
      if (error != std::errc() || stop != text.data() + end) return std::nullopt;
      return value;
    }
    begin = end;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? std::nullopt : number_at(text.substr(at + word.size()), 0);
}

struct Host {
  // 5569370 4107315 3: ns on a core, ns ready but waiting for one, time slices
  Counters scheduler{"/proc/thread-self/schedstat"};
  // cpu  2086955 350111 239003 438005 6278 0 766 2488 0 0: the eighth number is steal
  Counters cores{"/proc/stat"};
  // nr_periods 0\nnr_throttled 0\n...: version 2 of control groups as a container sees its own, and version 1
  Counters group{"/sys/fs/cgroup/cpu.stat"};
  Counters old_group{"/sys/fs/cgroup/cpu/cpu.stat"};

  HostCounters read(bool all) {
    HostCounters counters;
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    counters.switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
    counters.waited_ns = number_at(scheduler.text(), 1);
    if (!all) return counters;
    counters.stolen_ticks = number_at(cores.text(), 8);
    counters.throttles = number_after(group.text(), "nr_throttled");
    if (!counters.throttles) counters.throttles = number_after(old_group.text(), "nr_throttled");
    return counters;
  }
};

}  // namespace

Surroundings host_surroundings() {
  const auto host = std::make_shared<Host>();
  const auto yardstick = std::make_shared<Yardstick>();
  return {.now_ns = [] { return now_ns(); },
          .counters = [host](bool all) { return host->read(all); },
          .yardstick_ns = [yardstick] { return yardstick->run_ns(); }};
}

}  // namespace weir::bench
