#include "lab/kernels/surroundings.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace weir::bench {
namespace {

// A file of /proc or /sys that is read repeatedly from its beginning.
class Counters {
 public:
  explicit Counters(const char* path) : file_(open_kernel_file(path)) {}

  std::string_view text() {
    const ssize_t size = !file_ ? 0 : pread(file_.get(), text_.data(), text_.size(), 0);
    return {text_.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
  }

 private:
  Descriptor file_;
  std::array<char, 512> text_{};
};

// The number in the word at `index`; words are separated by blanks or line ends.
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
  // 5569370 4107315 3: ns on a core, ns ready but waiting for a core, time slices
  Counters scheduler{"/proc/thread-self/schedstat"};
  // cpu  2086955 350111 239003 438005 6278 0 766 2488 0 0: the eighth number is steal
  Counters cores{"/proc/stat"};
  // nr_periods 0\nnr_throttled 0\n...: control groups version 2 as a container sees its own, and version 1
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

constexpr std::size_t kWords = (16U << 20) / sizeof(std::size_t);
constexpr std::size_t kLine = 64 / sizeof(std::size_t);
// Each run walks through the next quarter, so that the lines it touches were last touched 16 MiB ago.
constexpr std::size_t kPart = kWords / 4;
// A multiplication and an addition that depend on each other: 8 cycles per link on most cores.
constexpr int kLinks = 250'000;

// A short, fixed calculation that shows how fast this machine is at the moment, whatever the kernel. With it, a
// comparison of two runs can distinguish a slower machine from a slower kernel. It takes somewhat less than 1 ms on one
// core: a chain of dependent multiplications and additions, and a walk through 4 MiB of memory that second-level caches
// do not hold.
class Yardstick {
 public:
  double run_ns() {
    if (memory_.empty()) memory_.assign(kWords, 1);
    const std::int64_t begun = now_ns();
    // Volatile at both ends: otherwise compilers move the chain out from between the two clock readings.
    double value = start_;
    for (int i = 0; i < kLinks; ++i) value = value * 0.999999 + 1e-6;
    std::size_t sum = 0;
    // Written as well: memory that is only read may be a single page of zeros.
    for (std::size_t i = next_; i < next_ + kPart; i += kLine) sum += memory_[i]++;
    next_ = (next_ + kPart) % kWords;
    end_ = value + static_cast<double>(sum);
    return static_cast<double>(now_ns() - begun);
  }

 private:
  std::vector<std::size_t> memory_;  // allocated at the first run
  std::size_t next_ = 0;
  volatile double start_ = 1, end_ = 0;
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
