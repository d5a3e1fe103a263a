// OpenCL body of route: one work-group. Each work-item counts a part of the assignments, the counts become places, and
// each walks its part again in order. No atomics, so the result is reproducible.
#define MAX_EXPERTS 256
#define MAX_COUNTS 8192

WEIR_KERNEL(route) {
  __local int counts[MAX_COUNTS];  // by work-item; later the places of its next assignments
  __local int totals[MAX_EXPERTS], starts[MAX_EXPERTS];
  const int assignments = (int)a.dims[0], experts = (int)a.dims[1], picks = (int)a.dims[2];
  const int thread = local_thread(), threads = local_threads();
  __global const int* const ids = WEIR_OPERAND(const int, 0);
  __global int* const offsets = WEIR_OPERAND(int, 1);
  __global int* const slots = WEIR_OPERAND(int, 2);
  __global int* const sources = WEIR_OPERAND(int, 3);
  if (group() != 0) return;
  // Only as many take part as there is room for their counts.
  const int workers = min(threads, MAX_COUNTS / experts);
  const int part = (assignments + workers - 1) / workers;
  const int begin = thread < workers ? min(assignments, thread * part) : assignments;
  const int end = min(assignments, begin + part);
  __local int* const own = counts + (thread < workers ? thread : 0) * experts;

  for (int i = thread; i < workers * experts; i += threads) counts[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = begin; at < end; ++at) {
    const int id = ids[at];
    if (0 <= id && id < experts) own[id] += 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // Per expert: the count of earlier work-items, which is where this one's slots begin.
  for (int expert = thread; expert < experts; expert += threads) {
    int before = 0;
    for (int w = 0; w < workers; ++w) {
      const int counted = counts[w * experts + expert];
      counts[w * experts + expert] = before;
      before += counted;
    }
    totals[expert] = before;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int expert = thread; expert <= experts; expert += threads) {
    int before = 0;
    for (int earlier = 0; earlier < expert; ++earlier) before += totals[earlier];
    if (expert < experts) starts[expert] = before;
    offsets[expert] = before;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = begin; at < end; ++at) {
    const int id = ids[at];
    const bool is_valid = 0 <= id && id < experts;
    const int slot = is_valid ? own[id]++ : -1;
    slots[at] = slot;
    if (is_valid) sources[starts[id] + slot] = at / picks;
  }
}
