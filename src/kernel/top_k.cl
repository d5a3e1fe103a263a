// OpenCL body of top_k. Ranked integers are never equal, so the result is exact and reproducible.
#define SHORT_ROW 256
#define ROOM 1024

// An element's place in the result is the number of larger ones; the order in which they are stored does not matter.
WEIR_INLINE void place(__local const ulong* found, int count, int k, __global const weir_element* in,
                       __global weir_element* values, __global int* indices) {
  for (int i = local_thread(); i < count; i += local_threads()) {
    const ulong element = found[i];
    int larger = 0;
    for (int other = 0; other < count; ++other) larger += found[other] > element ? 1 : 0;
    if (larger >= k) continue;
    values[larger] = in[index_of(element)];
    indices[larger] = index_of(element);
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // before the next row's elements are written
}

// Adds up `own` over all work-items and returns the sum to each of them.
WEIR_INLINE int count_of_group(int own, __local int* counter) {
  barrier(CLK_LOCAL_MEM_FENCE);  // after the last count was read
  if (local_thread() == 0) *counter = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (own != 0) atomic_add(counter, own);
  barrier(CLK_LOCAL_MEM_FENCE);
  return *counter;
}

static int reaching(__global const weir_element* in, long columns, ulong bound) {
  int count = 0;
  for (long c = local_thread(); c < columns; c += local_threads()) count += ranked(load(in, c), c) >= bound ? 1 : 0;
  return count;
}

// Collects the elements that reach the threshold, up to the available room; returns how many there are.
WEIR_INLINE int collect(__global const weir_element* in, long columns, ulong best, ulong threshold,
                        __local ulong* found, __local int* counter) {
  barrier(CLK_LOCAL_MEM_FENCE);  // after the last count was read
  if (local_thread() == 0) *counter = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (best >= threshold) {
    for (long c = local_thread(); c < columns; c += local_threads()) {
      const ulong element = ranked(load(in, c), c);
      if (element < threshold) continue;
      const int at = atomic_inc(counter);
      if (at < ROOM) found[at] = element;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return *counter;
}

// The k-th largest of the work-items' own maxima is a bound that k of them reach, so the row's k largest are among the
// elements of those work-items that reach it: hardly more than k in any order of a row, because work-items take turns
// along it. If the data exceed the room, or there are fewer work-items than k, counting elements finds the exact bound.
// For short rows all elements are taken. No branch encloses a barrier: PoCL 5 cannot compile that.
WEIR_INLINE void pick_from_row(__global const weir_element* in, __global weir_element* values, __global int* indices,
                               long columns, int k, __local ulong* found, __local int* counter) {
  ulong best = 0;
  for (long c = local_thread(); c < columns; c += local_threads()) best = max(best, ranked(load(in, c), c));
  ulong threshold = 0;
  int count = ROOM + 1;
  for (int exact = 0; exact < 2 && count > ROOM; ++exact) {
    threshold = 0;
    int reached = 0;
    for (int bit = columns > SHORT_ROW ? 63 : -1; bit >= 0 && reached != k; --bit) {
      const ulong higher = threshold | (ulong)1 << bit;
      reached = count_of_group(exact != 0 ? reaching(in, columns, higher) : best >= higher ? 1 : 0, counter);
      if (reached >= k) threshold = higher;
    }
    count = collect(in, columns, best, threshold, found, counter);
  }
  place(found, count, k, in, values, indices);
}

WEIR_KERNEL(top_k) {
  __local ulong found[ROOM];
  __local int counter;
  const long rows = a.dims[0], columns = a.dims[1];
  const int k = (int)a.dims[2];
  for (long row = group(); row < rows; row += groups()) {
    __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0) + row * columns;
    __global weir_element* const values = WEIR_OPERAND(weir_element, 1) + row * k;
    __global int* const indices = WEIR_OPERAND(int, 2) + row * k;
    pick_from_row(in, values, indices, columns, k, found, &counter);
  }
}
