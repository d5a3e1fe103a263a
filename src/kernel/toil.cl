// OpenCL body of toil. The numbers are those of toil.h.
#define TOIL_AMOUNT a.dims[0]
#define TOIL_UNITS a.dims[1]
#define TOIL_STREAMS ((a.dims[3] & 1) != 0)
#define TOIL_OBEYS ((a.dims[3] & 2) != 0)
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

WEIR_KERNEL(toil) {
  __local long next;
  __global const volatile int* const flag = WEIR_OPERAND(const volatile int, 0);
  __global volatile long* const record = WEIR_OPERAND(volatile long, 1);
  __global volatile int* const state = WEIR_OPERAND(volatile int, 2);
  __global volatile int* const done = WEIR_OPERAND(volatile int, 3);
  __global const uint4* const memory = WEIR_OPERAND(const uint4, 4);
  const bool is_first = local_thread() == 0;
  const long job = record[0], epoch = record[1];
  if (is_first && group() == 0) record[2] = (long)weir_time_ns();
  if (a.dims[2] > 0) {
    for (;;) {
      if (is_first) {
        next = TOIL_OBEYS && *flag > epoch ? TOIL_UNITS : (long)atomic_add(state + job % 16, 1);
        if (next == 0) atomic_xchg(state + (job + 15) % 16, 0);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const long unit = next;
      if (unit >= TOIL_UNITS) break;
      do_unit(memory, state, a, unit);
      barrier(CLK_LOCAL_MEM_FENCE);  // all have read `next`, and the unit is done
      if (is_first) {
        const int after = (int)(job + 1);
        const int before = atomic_xchg(done + unit, after);
        if (before < after - 1) atomic_add(state + 18, after - 1 - before);
        if (before >= after) atomic_add(state + 19, 1);
      }
    }
  } else {
    do_unit(memory, state, a, group());
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_first) atomic_add(done + group(), 1);
  }
  if (!is_first) return;
  order_for_host();  // what this group did comes before its leaving
  if (atomic_add(state + 17, 1) + 1 != (int)groups()) return;
  atomic_xchg(state + 17, 0);
  const long taken = a.dims[2] > 0 ? (long)atomic_add(state + job % 16, 0) : TOIL_UNITS;
  record[4] = WEIR_LEAST(taken, TOIL_UNITS);
  record[3] = (long)weir_time_ns();
  const long launches = record[5];
  order_for_host();
  record[5] = launches + 1;
}
