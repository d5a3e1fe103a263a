// Threads that share work which the caller could do alone.
#pragma once

#include <cstddef>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace weir {

// Runs `work`, which must outlive them, on up to `count` threads: fewer where the system refuses more (ulimit -u, -v).
// The caller works too, and joins them by destroying the result.
template <class Work>
std::vector<std::jthread> start_spare_threads(std::size_t count, Work& work) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  try {
    while (threads.size() < count) threads.emplace_back(std::ref(work));
  } catch (const std::system_error&) {
    // The others do its share.
  }
  return threads;
}

}  // namespace weir
