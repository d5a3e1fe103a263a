// Stacks of a recorded program's threads, as the library in it wrote them: where the program is, in one phrase, and
// what is worth showing. Knows text; knows no recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct RecordedStack {
  std::string title;                // "thread 4711 (train)", "Python thread 0x7f12"
  std::vector<std::string> frames;  // innermost first
  bool is_python = false;
  std::uint64_t thread = 0;  // as the kernel numbers it; 0: of Python, not known
};

std::vector<RecordedStack> recorded_stacks(std::string_view text);

// The main thread's stack, Python's where there is one; null if there is none. Its native thread has the process's
// number.
const RecordedStack* main_stack(const std::vector<RecordedStack>& stacks, std::uint64_t pid);
// The innermost frame that is not of the interpreter or the system's libraries: "load (train.py:41)". Empty if all are.
std::string innermost_own_frame(const RecordedStack& stack);

enum class AwaitedProcess : std::uint8_t { none, any, data_loader };
// Whether a thread waits for another process's message.
AwaitedProcess awaited_process(const RecordedStack& stack);

// For users: the main thread first, the innermost frames of each, equal stacks together.
std::string stacks_text(const std::vector<RecordedStack>& stacks, std::uint64_t pid, std::size_t max_lines);

}  // namespace weir
