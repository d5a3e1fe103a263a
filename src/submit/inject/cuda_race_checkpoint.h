// Checkpoints of a program under `weir race`: weir_checkpoint(), which it finds in this library, hashes memory where it
// lies. Waits for nothing while the program runs.
#pragma once

namespace weir::inject {

// Writes the digests whose hashes are there, in the order of the calls. `is_end`: the process ends; waits for the rest.
void write_checkpoints(bool is_end);

}  // namespace weir::inject
