// Counts every operator new of this test binary, on all threads.
#pragma once

#include <cstdint>

namespace weir {

std::uint64_t allocation_count() noexcept;

// clang's ThreadSanitizer has operators of its own, which cannot be replaced: nothing is counted there.
#if defined(__clang__) && defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

}  // namespace weir
