// OpenCL body of embedding_grad. Sums follow the order of the indices, without atomics, so they are reproducible bit
// for bit. Like embedding_grad.cuh: a work-group lists the indices that name its rows, by row and then in order.
#define TABLE_ROWS 32  // rows of the table per work-group, each of which reads all indices
#define LISTED 1024    // indices that a work-group can sort; if there are more, it searches row by row

WEIR_KERNEL(embedding_grad) {
  __local int found[LISTED], sorted[LISTED], begin[TABLE_ROWS + 1], counts[WEIR_MOST_THREADS + 1];
  const long count = a.dims[0], width = a.dims[1], rows = a.dims[2];
  __global const int* const index = WEIR_OPERAND(const int, 0);
  __global const weir_element* const dy = WEIR_OPERAND(const weir_element, 1);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 2);
  const float beta = a.scalars[0];
  const int thread = local_thread(), threads = local_threads(), shift = row_shift(width);
  const int at_once = threads >> shift, lane = thread & ((1 << shift) - 1);
  // Each work-item searches a contiguous range of the indices, so their order is that of the work-items.
  const long stretch = (count + threads - 1) / threads;
  const long from = WEIR_LEAST(count, thread * stretch), to = WEIR_LEAST(count, from + stretch);
  for (long first = group() * TABLE_ROWS; first < rows; first += groups() * TABLE_ROWS) {
    int own = 0;
    for (long i = from; i < to; ++i) own += index[i] >= first && index[i] < first + TABLE_ROWS ? 1 : 0;
    counts[thread] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread == 0) {
      int before = 0;
      for (int t = 0; t < threads; ++t) {
        const int next = counts[t];
        counts[t] = before;
        before += next;
      }
      counts[threads] = before;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int total = counts[threads];
    const bool is_listed = total <= LISTED;
    if (is_listed) {
      int at = counts[thread];
      for (long i = from; own > 0 && i < to; ++i)
        if (index[i] >= first && index[i] < first + TABLE_ROWS) found[at++] = (int)i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_listed) {
      for (int e = thread; e < total; e += threads) {
        const int row = index[found[e]];
        int place = 0;
        for (int other = 0; other < total; ++other) {
          const int its = index[found[other]];
          place += its < row || (its == row && other < e) ? 1 : 0;
        }
        sorted[place] = found[e];
      }
      for (int r = thread; r <= TABLE_ROWS; r += threads) {
        int before = 0;
        for (int other = 0; other < total; ++other) before += index[found[other]] < first + r ? 1 : 0;
        begin[r] = before;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = thread >> shift; r < TABLE_ROWS && first + r < rows; r += at_once) {
      for (long column = lane; column < width; column += 1 << shift) {
        running_sum sum = empty_sum();
        if (is_listed) {
          for (int e = begin[r]; e < begin[r + 1]; ++e) add_to(&sum, load(dy, sorted[e] * width + column));
        } else {
          for (long i = 0; i < count; ++i)
            if (index[i] == first + r) add_to(&sum, load(dy, i * width + column));
        }
        const long at = (first + r) * width + column;
        store(out, at, beta == 0.0f ? value_of(&sum) : beta * load(out, at) + value_of(&sum));
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the list is written again for the next rows
  }
}
