// A histogram in OpenCL C: each work-group counts in local memory, then adds to the result.
#include "weir/device.h"

#define kThreads 256
#define kMaxBins 4096 /* as in kernel.cpp */

__kernel void clear(__global uint* counts, int bins) {
  const int bin = (int)get_global_id(0);
  if (bin < bins) counts[bin] = 0;
}

__kernel __attribute__((reqd_work_group_size(kThreads, 1, 1))) void count_values(__global const weir_real* in,
                                                                                 __global uint* counts, long count,
                                                                                 int bins) {
  __local uint table[kMaxBins];
  const int item = (int)get_local_id(0);
  for (int i = item; i < bins; i += kThreads) table[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);

  const weir_acc scale = (weir_acc)bins;
  const long step = (long)get_global_size(0);
  for (long i = (long)get_global_id(0); i < count; i += step)
    atomic_inc(&table[clamp((int)(weir_load(in, i) * scale), 0, bins - 1)]);
  barrier(CLK_LOCAL_MEM_FENCE);

  for (int i = item; i < bins; i += kThreads) {
    if (table[i] != 0) atomic_add(&counts[i], table[i]);
  }
}
