// The captures in docs/examples/amd, which pages read where a reader has no AMD GPU. Knows formats; runs nothing.
#pragma once

#include <filesystem>

namespace weir::testing {

// FOLDER/a and FOLDER/b: what `weir amd capture` would have written of a program with 16 streams on 4 hardware queues,
// and of one with 8 streams on 2.
void write_amd_examples(const std::filesystem::path& folder);

}  // namespace weir::testing
