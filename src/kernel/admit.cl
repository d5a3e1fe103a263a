// OpenCL body of admit: one work-group, which counts free slots in order.
WEIR_KERNEL(admit) {
  __local int counts[WEIR_MOST_THREADS];
  const int slots = (int)a.dims[0], prompts = (int)a.dims[1];
  const int thread = local_thread(), threads = local_threads();
  __global const int* const lengths = WEIR_OPERAND(const int, 0);
  __global const int* const remaining = WEIR_OPERAND(const int, 1);
  __global int* const slot_of = WEIR_OPERAND(int, 4);
  if (group() != 0) return;
  int taken = 0;
  for (int base = 0; base < slots; base += threads) {
    const int slot = base + thread;
    const bool is_free = slot < slots && lengths[slot] == 0;
    // Counts free slots up to this one, by doubling the distance that each count covers.
    int free_so_far = is_free ? 1 : 0;
    counts[thread] = free_so_far;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < threads; reach *= 2) {
      const int before = thread >= reach ? counts[thread - reach] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      free_so_far += before;
      counts[thread] = free_so_far;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int prompt = taken + free_so_far - 1;
    const bool is_taken = is_free && prompt < prompts;
    if (is_taken) slot_of[prompt] = slot;
    if (slot < slots) {
      WEIR_OPERAND(int, 2)[slot] = is_taken ? (int)a.dims[2] + 1 : lengths[slot];
      WEIR_OPERAND(int, 3)[slot] = is_taken ? (int)a.dims[3] : remaining[slot];
    }
    taken += counts[threads - 1];
    barrier(CLK_LOCAL_MEM_FENCE);  // before the next slots' counts are written
  }
  for (int prompt = taken + thread; prompt < prompts; prompt += threads) slot_of[prompt] = -1;
}
