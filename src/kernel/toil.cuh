// Device body of toil. Only block 0 reads host memory: its orders at the start, and the flag all the time. It passes
// both on in device memory, where the others look, because reads of one host address are serialised: 4,224 blocks that
// read their orders there occupied an H200 for 4 ms.
#pragma once

#include "kernel/moment.cuh"
#include "kernel/toil.h"

namespace weir::device {

// Whether this launch was asked to stop. Called by one thread per block.
__device__ inline bool is_stop_requested(const KernelArguments& a, long long epoch) {
  volatile int* const flag_seen = operand<int>(a, 2) + kToilFlagSeen;
  if (blockIdx.x != 0) return *flag_seen > epoch;
  const int flag = *const_cast<const volatile int*>(operand<int>(a, 0));
  if (flag <= epoch) return false;
  *flag_seen = flag;
  return true;
}

__device__ inline void do_unit(const KernelArguments& a, long long unit, bool watches, long long epoch) {
  const long long amount = a.dims[kToilAmount];
  if ((a.dims[kToilStyle] & kToilStreams) == 0) {
    if (threadIdx.x != 0) return;
    const long long started_ns = probe_time_ns();
    while (probe_time_ns() - started_ns < amount)
      if (watches) is_stop_requested(a, epoch);
    return;
  }
  const long long size = a.dims[kToilStyle] >> kToilSizeShift;
  if (size <= 0) return;
  const long long begin = unit * amount % size;
  const uint4* const memory = operand<const uint4>(a, 4);
  unsigned sum = 0;
#pragma unroll 4
  for (long long i = threadIdx.x; i < amount; i += blockDim.x) {
    const long long at = begin + i < size ? begin + i : (begin + i) % size;
    const uint4 word = memory[at];
    sum |= word.x | word.y | word.z | word.w;
    if (watches && threadIdx.x == 0 && i % (64 * static_cast<long long>(blockDim.x)) == 0) is_stop_requested(a, epoch);
  }
  if (sum != 0) atomicAdd(operand<int>(a, 2) + kToilNotZero, 1);
}

// Called by one thread: the unit has been done in this job.
__device__ inline void count_unit(const KernelArguments& a, long long unit, long long job) {
  int* const state = operand<int>(a, 2);
  const int after = static_cast<int>(job + 1);
  const int before = atomicExch(operand<int>(a, 3) + unit, after);
  if (before < after - 1) atomicAdd(state + kToilLost, after - 1 - before);
  if (before >= after) atomicAdd(state + kToilRepeated, 1);
}

__device__ inline int* cursor_of(const KernelArguments& a, long long job) {
  return operand<int>(a, 2) + (job + kToilCursors) % kToilCursors;
}

// The job and the epoch of this launch, for all threads of the block. Blocks start in order, so block 0 is already
// running; a flag that is already set is passed on with them.
__device__ inline void receive_orders(const KernelArguments& a, long long* orders) {
  int* const state = operand<int>(a, 2);
  volatile int* const ready = state + kToilReady;
  volatile long long* const passed_on = reinterpret_cast<volatile long long*>(state + kToilOrders);
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) {
      const volatile long long* const record = operand<long long>(a, 1);
      passed_on[0] = orders[0] = record[kToilJob];
      passed_on[1] = orders[1] = record[kToilEpoch];
      if ((a.dims[kToilStyle] & kToilStoppable) != 0) is_stop_requested(a, orders[1]);
      __threadfence();
      *ready = 1;
    } else {
      while (*ready == 0) {
      }
      __threadfence();
      orders[0] = passed_on[0];
      orders[1] = passed_on[1];
    }
  }
  __syncthreads();
}

__device__ inline void take_units(const KernelArguments& a, long long job, long long epoch) {
  __shared__ long long next;
  const long long units = a.dims[kToilUnits];
  const bool is_stoppable = (a.dims[kToilStyle] & kToilStoppable) != 0;
  for (;;) {
    if (threadIdx.x == 0) {
      next =
          is_stoppable && is_stop_requested(a, epoch) ? units : static_cast<long long>(atomicAdd(cursor_of(a, job), 1));
      if (next == 0) atomicExch(cursor_of(a, job - 1), 0);
    }
    __syncthreads();
    const long long unit = next;
    if (unit >= units) return;
    do_unit(a, unit, is_stoppable && blockIdx.x == 0, epoch);
    __syncthreads();  // all have read `next`, and the unit is done
    if (threadIdx.x == 0) count_unit(a, unit, job);
  }
}

__device__ inline void toil(const KernelArguments& a) {
  volatile long long* const record = operand<long long>(a, 1);
  int* const state = operand<int>(a, 2);
  long long job = 0;
  if (blockIdx.x == 0 && threadIdx.x == 0) record[kToilStarted] = probe_time_ns();
  if (a.dims[kToilBlocks] > 0) {
    __shared__ long long orders[2];
    receive_orders(a, orders);
    job = orders[0];
    take_units(a, job, orders[1]);
  } else {
    do_unit(a, blockIdx.x, false, 0);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(operand<int>(a, 3) + blockIdx.x, 1);
  }
  if (threadIdx.x != 0) return;
  // Orders this block's work before its departure, for the last block to leave.
  if (blockIdx.x == 0) {
    __threadfence_system();
  } else {
    __threadfence();
  }
  const unsigned last = gridDim.x - 1;
  if (atomicInc(reinterpret_cast<unsigned*>(state + kToilEndedBlocks), last) != last) return;
  __threadfence();
  const long long units = a.dims[kToilUnits];
  const long long taken = a.dims[kToilBlocks] > 0 ? static_cast<long long>(atomicAdd(cursor_of(a, job), 0)) : units;
  state[kToilReady] = 0;  // all blocks have left
  record[kToilTaken] = taken < units ? taken : units;
  record[kToilEnded] = probe_time_ns();
  const long long launches = record[kToilLaunches];
  __threadfence_system();
  record[kToilLaunches] = launches + 1;
}

}  // namespace weir::device

extern "C" __global__ void __launch_bounds__(256) weir_toil_i32(const weir::KernelArguments a) {
  weir::device::toil(a);
}
