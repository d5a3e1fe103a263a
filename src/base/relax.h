// How a thread waits briefly for another one when neither may take a lock. Knows nothing about what it waits for.
#pragma once

namespace weir {

// Tells the core that this is a spin loop.
inline void pause_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // `yield` does nothing on most cores; `isb` waits for the pipeline, some 10 ns.
  asm volatile("isb" ::: "memory");
#endif
}

// Gives this core to another thread. A thread that only yields beside busy ones waits for their whole time slices, so
// if the core comes back late, later calls sleep for some microseconds instead. A thread that slept runs at once.
void yield_core() noexcept;

// Called the `spins`-th time in a row that nothing has changed: pauses for some microseconds, then yields, because the
// other thread may need this core.
inline void relax(int spins) noexcept {
  constexpr int kYieldFrom = 200;
  if (spins < kYieldFrom)
    pause_core();
  else
    yield_core();
}

}  // namespace weir
