// Counts every operator new of this test binary, on all threads.
#pragma once

#include <cstdint>

namespace weir {

std::uint64_t allocation_count() noexcept;

}  // namespace weir
