// How the time of something grows with its input, without a clock on the wall: processor time of this thread, so that a
// busy machine makes no difference.
#pragma once

#include <algorithm>
#include <ctime>

namespace weir::testing {

template <class Work>
double processor_seconds(const Work& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begun = now();
  work();
  return now() - begun;
}

// How many times as long `work(4 * size)` takes as `work(size)`: about 4 where it is linear, 16 where it is quadratic.
// The least of three attempts.
template <class Work>
double growth(const Work& work, int size) {
  double least = 1e300;
  for (int attempt = 0; attempt < 3 && least > 6; ++attempt)
    least = std::min(least, processor_seconds([&] { work(4 * size); }) / processor_seconds([&] { work(size); }));
  return least;
}

}  // namespace weir::testing
