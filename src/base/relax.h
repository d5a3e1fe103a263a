// How a thread waits for another one that will not be long, where neither may take a lock. Knows nothing of what is
// awaited.
#pragma once

namespace weir {

// Tells the core that this is a spin.
inline void pause_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // `yield` does nothing on most cores; `isb` waits for the pipeline, some 10 ns.
  asm volatile("isb" ::: "memory");
#endif
}

// Lets another thread have this core. A thread that only yields beside busy ones waits for whole time slices of theirs:
// so where the core came back late, it sleeps for some microseconds each time from then on. Who slept runs at once.
void yield_core() noexcept;

// The `spins`-th time in a row that nothing had changed: pauses for some microseconds, then yields, since who is
// awaited may need this core.
inline void relax(int spins) noexcept {
  constexpr int kYieldFrom = 200;
  if (spins < kYieldFrom)
    pause_core();
  else
    yield_core();
}

}  // namespace weir
