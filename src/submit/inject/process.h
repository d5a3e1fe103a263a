// What a library in somebody else's program needs of its process: files, threads and words. Knows no vendor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::inject {

// Creates FOLDER/PID.SUFFIX, with `mode` O_WRONLY or O_RDWR; -1 with errno where that is not possible. A process that
// executes another program keeps its pid, so the name may be taken: then it is PID.1.SUFFIX, and so on.
int create_file_of_process(const std::string& folder, const char* suffix, int mode);
// Opens, or with O_CREAT creates for its owner alone, a file that is no link; -1 with errno where that is not possible.
int open_own_file(const std::string& path, int mode) noexcept;
// The command line, without what looks like a secret.
std::vector<std::string> own_words();
// When this process was started, in clock ticks since boot; 0: not known.
std::uint64_t own_start() noexcept;
// Detached, and with all signals blocked: those are for the program's own threads.
void start_own_thread(void* (*body)(void*));
// A function's name without version and variant: cuMemcpyHtoDAsync_v2, cudaMemcpyAsync_ptsz_v7000.
std::string_view plain_function(std::string_view name) noexcept;

}  // namespace weir::inject
