// Sparse matrix times vector on CUDA: `lanes` threads of a warp share a row, so that its entries are read together.
#include "weir/device.h"

// lanes: a power of two, 2 to 32. Threads beyond the last row stay, because all of a warp take part in the shuffles.
extern "C" __global__ void spmv(const int* __restrict__ row_start, const int* __restrict__ column,
                                const weir_real* __restrict__ value, const weir_real* __restrict__ x,
                                weir_real* __restrict__ y, int rows, int lanes) {
  const int lane = threadIdx.x % lanes;
  const long long row = (long long)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
  const int end = row < rows ? row_start[row + 1] : 0;
  weir_acc sum = 0;
  for (int i = row < rows ? row_start[row] + lane : 0; i < end; i += lanes)
    sum += weir_load(value, i) * weir_load(x, column[i]);
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, distance, lanes);
  if (lane == 0 && row < rows) weir_store(y, row, sum);
}
