// OpenCL body of toil. The numbers are those of toil.h.
#define TOIL_AMOUNT a.dims[0]
#define TOIL_UNITS a.dims[1]
#define TOIL_STREAMS ((a.dims[3] & 1) != 0)
#define TOIL_STOPPABLE ((a.dims[3] & 2) != 0)
#define TOIL_SIZE (a.dims[3] >> 8)

static void do_unit(__global const uint4* memory, __global volatile int* state, const weir_arguments a, long unit) {
  if (!TOIL_STREAMS) {
    if (local_thread() != 0) return;
    const long started_ns = (long)weir_time_ns();
    while ((long)weir_time_ns() - started_ns < TOIL_AMOUNT) {
    }
    return;
  }
  const long size = TOIL_SIZE;
  if (size <= 0) return;
  const long begin = unit * TOIL_AMOUNT % size;
  uint sum = 0;
  for (long i = local_thread(); i < TOIL_AMOUNT; i += local_threads()) {
    const uint4 word = memory[begin + i < size ? begin + i : (begin + i) % size];
    sum |= word.x | word.y | word.z | word.w;
  }
  if (sum != 0) atomic_add(state + 20, 1);
}

// Called by one work-item: returns the group's next unit, or TOIL_UNITS if it was asked to stop.
static long next_unit(__global const volatile int* flag, __global volatile int* state, const weir_arguments a, long job,
                      long epoch) {
  if (TOIL_STOPPABLE && *flag > epoch) return TOIL_UNITS;
  const long unit = (long)atomic_add(state + job % 16, 1);
  if (unit == 0) atomic_xchg(state + (job + 15) % 16, 0);
  return unit;
}

WEIR_KERNEL(toil) {
  __local long next;
  __global const volatile int* const flag = WEIR_OPERAND(const volatile int, 0);
  __global volatile long* const record = WEIR_OPERAND(volatile long, 1);
  __global volatile int* const state = WEIR_OPERAND(volatile int, 2);
  __global volatile int* const done = WEIR_OPERAND(volatile int, 3);
  __global const uint4* const memory = WEIR_OPERAND(const uint4, 4);
  const long job = record[0], epoch = record[1];
  if (local_thread() == 0 && group() == 0) record[2] = (long)weir_time_ns();
  if (a.dims[2] > 0) {
    // One exit, at the top: in a loop that is left between barriers, PoCL 3.1 treats every work-item as the first one.
    if (local_thread() == 0) next = next_unit(flag, state, a, job, epoch);
    barrier(CLK_LOCAL_MEM_FENCE);
    while (next < TOIL_UNITS) {
      do_unit(memory, state, a, next);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (local_thread() == 0) {
        const int after = (int)(job + 1);
        const int before = atomic_xchg(done + next, after);
        if (before < after - 1) atomic_add(state + 18, after - 1 - before);
        if (before >= after) atomic_add(state + 19, 1);
        next = next_unit(flag, state, a, job, epoch);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  } else {
    do_unit(memory, state, a, group());
    barrier(CLK_LOCAL_MEM_FENCE);
    if (local_thread() == 0) atomic_add(done + group(), 1);
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // as above: after a loop that only some launches have
  if (local_thread() != 0) return;
  order_for_host();  // this group's work comes before its departure
  if (atomic_add(state + 17, 1) + 1 != (int)groups()) return;
  atomic_xchg(state + 17, 0);
  const long taken = a.dims[2] > 0 ? (long)atomic_add(state + job % 16, 0) : TOIL_UNITS;
  record[4] = WEIR_LEAST(taken, TOIL_UNITS);
  record[3] = (long)weir_time_ns();
  const long launches = record[5];
  order_for_host();
  record[5] = launches + 1;
}
