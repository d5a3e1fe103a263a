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
// The frames of Python of the calling thread, whether or not it has the interpreter's lock, for which this waits: call
// it without a lock. Else empty, with the reason where the thread runs Python. Nothing is interrupted.
std::string own_python_stack(std::string& reason);

}  // namespace weir::inject
