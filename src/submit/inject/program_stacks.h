// What all threads of this process are doing, for somebody who asks why it hangs. Interrupts each thread by a signal of
// its own for a moment. Frames of Python come from its own faulthandler, where the program is Python.
#pragma once

#include <string>

namespace weir::inject {

class ProgramStacks {
 public:
  // Python writes into a file in `folder`, which stays. Call once.
  explicit ProgramStacks(std::string folder);
  ProgramStacks(const ProgramStacks&) = delete;
  ProgramStacks& operator=(const ProgramStacks&) = delete;
  // Text of at most 60 kB; takes a second at most. Not from a thread that holds a lock of the program.
  std::string take();

 private:
  std::string of_python();

  std::string file_;  // of Python's stacks
  std::size_t read_ = 0;
};

}  // namespace weir::inject
