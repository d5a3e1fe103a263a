// The stacks of all threads of this process, to explain why it hangs. Knows threads and stacks; nothing of what runs.
#pragma once

#include <cstdint>
#include <string>

namespace weir {

// All stacks as text, innermost function first; threads with the same stack are grouped. Each thread is interrupted by
// SIGURG, which is ignored by default, and records its own stack; one that does not answer in time (it blocks signals)
// is listed without a stack. Takes at most `limit_ns`, plus a little for the names. Concurrent calls take turns.
std::string host_stacks(std::int64_t limit_ns = 1'000'000'000);

}  // namespace weir
