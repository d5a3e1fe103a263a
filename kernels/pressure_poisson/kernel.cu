// Jacobi sweeps on CUDA. A thread has a pack of neighbours in x and walks through `depth` planes in z, with the planes
// below, here and above in registers; neighbours in y are found in the caches.
#include "weir/device.h"

namespace {

constexpr int kWidth = 16 / sizeof(weir_real);

template <int kCells>
struct alignas(kCells * sizeof(weir_real)) Stored {
  weir_real values[kCells];
};
template <int kCells>
struct Pack {
  weir_acc values[kCells];
};

// Zero where the cells are not in the box.
template <int kCells>
__device__ Pack<kCells> load(const weir_real* from, long long at, bool is_in) {
  Pack<kCells> pack = {};
  if (!is_in) return pack;
  const Stored<kCells> stored = *reinterpret_cast<const Stored<kCells>*>(from + at);
#pragma unroll
  for (int i = 0; i < kCells; ++i) pack.values[i] = weir_widen(stored.values[i]);
  return pack;
}

// nx is a multiple of kCells.
template <int kCells>
__device__ void sweep(const weir_real* __restrict__ from, const weir_real* __restrict__ source,
                      weir_real* __restrict__ to, int nx, int ny, int nz, int depth) {
  const int packs = nx / kCells;
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = index / packs, x = (index - y * packs) * kCells;
  if (y >= ny) return;
  const long long plane = (long long)nx * ny;
  const int first = blockIdx.y * depth, end = min(first + depth, nz);
  long long at = first * plane + (long long)y * nx + x;

  Pack<kCells> below = load<kCells>(from, at - plane, first > 0);
  Pack<kCells> here = load<kCells>(from, at, true);
#pragma unroll 2
  for (int z = first; z < end; ++z, at += plane) {
    const Pack<kCells> above = load<kCells>(from, at + plane, z + 1 < nz);
    const Pack<kCells> north = load<kCells>(from, at + nx, y + 1 < ny);
    const Pack<kCells> south = load<kCells>(from, at - nx, y > 0);
    const Pack<kCells> here_source = load<kCells>(source, at, true);
    const weir_acc before = x > 0 ? weir_load(from, at - 1) : 0;
    const weir_acc after = x + kCells < nx ? weir_load(from, at + kCells) : 0;
    Stored<kCells> result;
#pragma unroll
    for (int i = 0; i < kCells; ++i) {
      const weir_acc left = i > 0 ? here.values[i > 0 ? i - 1 : 0] : before;
      const weir_acc right = i + 1 < kCells ? here.values[i + 1 < kCells ? i + 1 : 0] : after;
      const weir_acc sum = (left + right) + (north.values[i] + south.values[i]) + (above.values[i] + below.values[i]);
      result.values[i] = weir_narrow((sum - here_source.values[i]) * (weir_acc)(1.0 / 6.0));
    }
    *reinterpret_cast<Stored<kCells>*>(to + at) = result;
    below = here;
    here = above;
  }
}

}  // namespace

// The first sweep, from zero. A thread has one pack; the last one may be short.
extern "C" __global__ void start(const weir_real* __restrict__ source, weir_real* __restrict__ to, long long cells) {
  const weir_acc factor = (weir_acc)(-1.0 / 6.0);
  long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * kWidth;
  if (at + kWidth <= cells) {
    const Pack<kWidth> pack = load<kWidth>(source, at, true);
    Stored<kWidth> result;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) result.values[i] = weir_narrow(pack.values[i] * factor);
    *reinterpret_cast<Stored<kWidth>*>(to + at) = result;
  } else {
    for (; at < cells; ++at) weir_store(to, at, weir_load(source, at) * factor);
  }
}

extern "C" __global__ void sweep_packs(const weir_real* from, const weir_real* source, weir_real* to, int nx, int ny,
                                       int nz, int depth) {
  sweep<kWidth>(from, source, to, nx, ny, nz, depth);
}

extern "C" __global__ void sweep_cells(const weir_real* from, const weir_real* source, weir_real* to, int nx, int ny,
                                       int nz, int depth) {
  sweep<1>(from, source, to, nx, ny, nz, depth);
}
