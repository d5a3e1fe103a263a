#include "device/rank/alone.h"

#include <unistd.h>

#include <cstring>

namespace weir {

Communicator::Request AloneCommunicator::start(int, const Collective&, ElementType type, const void* from, void* to,
                                               std::uint64_t count) {
  // With one rank, the result of every collective is its input.
  if (from != to) std::memcpy(to, from, count * size_of(type));
  return 0;
}

void AloneCommunicator::abort(int code) noexcept { ::_exit(code); }

}  // namespace weir
