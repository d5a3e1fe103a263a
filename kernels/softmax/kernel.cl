// Softmax of rows in OpenCL C. One work-group has one row; kernel.cpp asks for groups of kThreads.
#include "weir/device.h"

#define kThreads 128

static weir_acc largest_of(weir_acc value, __local weir_acc* shared) {
  const int item = (int)get_local_id(0);
  shared[item] = value;
  for (int half_size = kThreads / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) shared[item] = fmax(shared[item], shared[item + half_size]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return shared[0];
}

static weir_acc sum_of(weir_acc value, __local weir_acc* shared) {
  const int item = (int)get_local_id(0);
  shared[item] = value;
  for (int half_size = kThreads / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) shared[item] += shared[item + half_size];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return shared[0];
}

__kernel __attribute__((reqd_work_group_size(kThreads, 1, 1))) void softmax(__global const weir_real* in,
                                                                            __global weir_real* out, int columns) {
  __local weir_acc largest_shared[kThreads];
  __local weir_acc sum_shared[kThreads];
  const int item = (int)get_local_id(0);
  const long start = (long)get_group_id(0) * columns;

  weir_acc largest = -INFINITY;
  for (int i = item; i < columns; i += kThreads) largest = fmax(largest, weir_load(in, start + i));
  largest = largest_of(largest, largest_shared);

  weir_acc sum = 0;
  for (int i = item; i < columns; i += kThreads) sum += exp(weir_load(in, start + i) - largest);
  const weir_acc scale = 1 / sum_of(sum, sum_shared);

  for (int i = item; i < columns; i += kThreads)
    weir_store(out, start + i, exp(weir_load(in, start + i) - largest) * scale);
}
