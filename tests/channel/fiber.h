// Threads that are switched by hand: each runs on a stack of its own until it says so. Knows nothing of what they do.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace weir::explored {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From now on enter() runs `body(argument)` from its beginning. What ran here before is forgotten, not unwound: it
  // must own nothing.
  void start(void (*body)(void*), void* argument);
  // Runs the fiber until it calls leave(). `body` must not return.
  void enter();
  // Inside the fiber: goes back to the one who entered it.
  void leave();
  // While it does not run: everything that it has on its stack, registers too. The same bytes go on in the same way.
  std::span<const std::byte> memory() const;

 private:
  static void main();

  static constexpr std::size_t kStackBytes = 256 * 1024;
  static constexpr std::size_t kCleanBytes = 1024;

  std::unique_ptr<std::byte[]> stack_;
  void* inside_ = nullptr;  // stack pointers of the two sides while the other one runs
  void* outside_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  // What AddressSanitizer wants to know of stacks; nobody else reads it.
  [[maybe_unused]] void* fake_inside_ = nullptr;
  [[maybe_unused]] void* fake_outside_ = nullptr;
  [[maybe_unused]] const void* outer_stack_ = nullptr;
  [[maybe_unused]] std::size_t outer_bytes_ = 0;
};

}  // namespace weir::explored
