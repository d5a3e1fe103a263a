// The sum of an array in OpenCL C: each work-group writes its sum, one group adds them up. kernel.cpp asks for groups
// of kThreads.
#include "weir/device.h"

#define kThreads 256

static void write_sum(weir_acc sum, __local weir_acc* shared, __global weir_acc* out) {
  const int item = (int)get_local_id(0);
  shared[item] = sum;
  for (int half_size = kThreads / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) shared[item] += shared[item + half_size];
  }
  if (item == 0) *out = shared[0];
}

__kernel __attribute__((reqd_work_group_size(kThreads, 1, 1))) void sum_blocks(__global const weir_real* in,
                                                                               __global weir_acc* block_sums,
                                                                               long count) {
  __local weir_acc shared[kThreads];
  const long step = (long)get_global_size(0);
  weir_acc sums[4] = {0, 0, 0, 0};  // four additions under way
  long i = (long)get_global_id(0);
  for (; i + 3 * step < count; i += 4 * step) {
    sums[0] += weir_load(in, i);
    sums[1] += weir_load(in, i + step);
    sums[2] += weir_load(in, i + 2 * step);
    sums[3] += weir_load(in, i + 3 * step);
  }
  for (; i < count; i += step) sums[0] += weir_load(in, i);
  write_sum((sums[0] + sums[1]) + (sums[2] + sums[3]), shared, block_sums + get_group_id(0));
}

__kernel __attribute__((reqd_work_group_size(kThreads, 1, 1))) void sum_of_blocks(__global const weir_acc* block_sums,
                                                                                  __global weir_acc* out, int blocks) {
  __local weir_acc shared[kThreads];
  weir_acc sum = 0;
  for (int i = (int)get_local_id(0); i < blocks; i += kThreads) sum += block_sums[i];
  write_sum(sum, shared, out);
}
