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

// What the calling thread is doing, without frames of this library; a line per frame.
std::string own_native_stack();
// Writes the frames of Python of the calling thread into an open file, whether or not it has the interpreter's lock;
// returns why there are none, as the rest of a sentence, or empty. Nothing is interrupted.
std::string write_own_python_stack(int descriptor);

}  // namespace weir::inject
