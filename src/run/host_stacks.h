// Where all threads of this process are, for who has to explain why it does not go on. Knows threads and stacks;
// nothing of what runs.
#pragma once

#include <cstdint>
#include <string>

namespace weir {

// One stack after the other as text, the innermost function first; threads with the same one are put together. Each
// thread is interrupted by SIGURG, which is ignored where nobody handles it, and says itself where it is; one that does
// not answer in time (it blocks signals) is named without a stack. Takes `limit_ns` at most, and little more for the
// names. One call at a time, others wait.
std::string host_stacks(std::int64_t limit_ns = 1'000'000'000);

}  // namespace weir
