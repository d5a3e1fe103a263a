#include "lab/kernels/yardstick.h"

#include "base/clock.h"

namespace weir::bench {
namespace {

constexpr std::size_t kWords = (16U << 20) / sizeof(std::size_t);
constexpr std::size_t kLine = 64 / sizeof(std::size_t);
// Each run walks through the next quarter, so that what it touches was last touched 16 MiB ago.
constexpr std::size_t kPart = kWords / 4;
// A multiplication and an addition that wait for each other: 8 cycles each time on most cores.
constexpr int kLinks = 250'000;

}  // namespace

double Yardstick::run_ns() {
  if (memory_.empty()) memory_.assign(kWords, 1);
  const std::int64_t begun = now_ns();
  // Through volatile at both ends: otherwise compilers move the chain out from between the two clocks.
  double value = start_;
  for (int i = 0; i < kLinks; ++i) value = value * 0.999999 + 1e-6;
  std::size_t sum = 0;
  // Written as well: memory that is only read may be one page of zeros.
  for (std::size_t i = next_; i < next_ + kPart; i += kLine) sum += memory_[i]++;
  next_ = (next_ + kPart) % kWords;
  end_ = value + static_cast<double>(sum);
  return static_cast<double>(now_ns() - begun);
}

}  // namespace weir::bench
