// Jacobi sweeps for the pressure of a flow: the discrete Poisson equation on a box with zero pressure around it, from
// zero. This is the inner loop of a pressure projection, with a fixed number of sweeps. Host part and CPU body, which
// uses as many threads as it may; the body for CUDA is in kernel.cu.
//
//   p'(x, y, z) = (p(x-1) + p(x+1) + p(y-1) + p(y+1) + p(z-1) + p(z+1) - s(x, y, z)) / 6,   s = h^2 times the source
#include <cmath>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "weir/host.h"

namespace {

enum : std::uint32_t { kSource, kPressure, kOther, kBufferCount };

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kMaxDepth = 8;  // planes that a thread walks through on CUDA: fewer planes are read twice
constexpr std::uint32_t kEnoughBlocks = 512;

constexpr std::size_t kMaxSide = 1024;

const char* g_error = "";

struct Poisson {
  std::size_t nx = 0, ny = 0, nz = 0;
  std::uint32_t sweeps = 0;
  int threads = 1;
  std::vector<std::uint64_t> zeros;  // a row of them, in any precision: what lies outside the box
  WeirBuffer buffers[kBufferCount] = {};
  // By where results go: index 0 for kPressure, 1 for kOther.
  WeirArgument start_arguments[2][3] = {};
  WeirArgument sweep_arguments[2][7] = {};
  WeirLaunch start[2] = {}, sweep[2] = {};
};

// Sweeps alternate between two buffers, so that the last one writes the result.
int target_of(std::uint32_t sweep, std::uint32_t sweeps) { return static_cast<int>((sweeps - 1 - sweep) % 2); }

template <class Real>
struct Rows {
  const Real *here, *north, *south, *above, *below, *source;
};

template <class Real, class Wide>
void sweep_row(const Rows<Real>& rows, Wide* __restrict out, std::size_t nx) {
  constexpr Wide kSixth = Wide{1} / Wide{6};
  const Real* __restrict here = rows.here;
  const Real* __restrict north = rows.north;
  const Real* __restrict south = rows.south;
  const Real* __restrict above = rows.above;
  const Real* __restrict below = rows.below;
  const Real* __restrict source = rows.source;
  const auto update = [&](std::size_t x, Wide left, Wide right) {
    const Wide sum = (left + right) + (static_cast<Wide>(north[x]) + static_cast<Wide>(south[x])) +
                     (static_cast<Wide>(above[x]) + static_cast<Wide>(below[x]));
    out[x] = (sum - static_cast<Wide>(source[x])) * kSixth;
  };
  if (nx == 1) return update(0, 0, 0);
  update(0, 0, here[1]);
  for (std::size_t x = 1; x + 1 < nx; ++x) update(x, here[x - 1], here[x + 1]);
  update(nx - 1, here[nx - 2], 0);
}

template <class Real>
void sweep_plane(const Poisson& state, const Real* from, const Real* source, Real* to, std::size_t z) {
  const Real* zeros = reinterpret_cast<const Real*>(state.zeros.data());
  const std::size_t plane = state.nx * state.ny;
  for (std::size_t y = 0; y < state.ny; ++y) {
    const std::size_t at = z * plane + y * state.nx;
    const Rows<Real> rows = {from + at,
                             y + 1 < state.ny ? from + at + state.nx : zeros,
                             y > 0 ? from + at - state.nx : zeros,
                             z + 1 < state.nz ? from + at + plane : zeros,
                             z > 0 ? from + at - plane : zeros,
                             source + at};
    if constexpr (sizeof(Real) > 2) {
      sweep_row(rows, to + at, state.nx);
    } else {
      // Rounded in a loop of its own: GCC 12 has no vector code for that, and would use none for the sums either.
      float row[kMaxSide];
      sweep_row(rows, row, state.nx);
      for (std::size_t x = 0; x < state.nx; ++x) to[at + x] = Real(row[x]);
    }
  }
}

// The first sweep, from zero: nothing but the source is read.
template <class Real>
void start_plane(const Poisson& state, const Real* __restrict source, Real* __restrict to, std::size_t z) {
  using Wide = weir::Wide<Real>;
  const std::size_t plane = state.nx * state.ny;
  for (std::size_t i = z * plane; i < (z + 1) * plane; ++i)
    to[i] = Real(-static_cast<Wide>(source[i]) * (Wide{1} / Wide{6}));
}

template <class Real>
void solve(const Poisson& state, const WeirStream* stream) {
  const Real* source = weir::buffer<const Real>(stream, kSource);
  Real* sides[2] = {weir::buffer<Real>(stream, kPressure), weir::buffer<Real>(stream, kOther)};
  const auto planes = static_cast<std::int64_t>(state.nz);
  for (std::uint32_t i = 0; i < state.sweeps; ++i) {
    Real* to = sides[target_of(i, state.sweeps)];
    const Real* from = sides[1 - target_of(i, state.sweeps)];
#pragma omp parallel for schedule(static) num_threads(state.threads) if (state.threads > 1)
    for (std::int64_t z = 0; z < planes; ++z) {
      if (i == 0) {
        start_plane(state, source, to, static_cast<std::size_t>(z));
      } else {
        sweep_plane(state, from, source, to, static_cast<std::size_t>(z));
      }
    }
  }
}

int fail(const char* error) {
  g_error = error;
  return 1;
}

void plan_launches(Poisson& state, std::uint32_t real_bytes) {
  // Rows whose packs of 16 bytes start at 16 bytes are read in packs.
  const std::size_t width = state.nx * real_bytes % 16 == 0 ? 16 / real_bytes : 1;
  const auto plane_blocks = static_cast<std::uint32_t>((state.nx / width * state.ny + kThreads - 1) / kThreads);
  const auto blocks_of = [&](std::uint32_t depth) {
    return static_cast<std::uint32_t>((state.nz + depth - 1) / depth);
  };
  std::uint32_t depth = kMaxDepth;
  while (depth > 1 && plane_blocks * blocks_of(depth) < kEnoughBlocks) depth /= 2;
  const std::uint64_t cells = state.nx * state.ny * state.nz;
  const std::uint64_t block_cells = std::uint64_t{kThreads} * (16 / real_bytes);
  const auto start_blocks = static_cast<std::uint32_t>((cells + block_cells - 1) / block_cells);
  for (std::uint32_t target = 0; target < 2; ++target) {
    const std::uint32_t to = target == 0 ? kPressure : kOther, from = target == 0 ? kOther : kPressure;
    WeirArgument* start = state.start_arguments[target];
    start[0] = weir_buffer(kSource);
    start[1] = weir_buffer(to);
    start[2] = weir_i64(static_cast<std::int64_t>(cells));
    state.start[target] = {"start", {start_blocks, 1, 1}, {kThreads, 1, 1}, 0, 3, start};
    WeirArgument* sweep = state.sweep_arguments[target];
    sweep[0] = weir_buffer(from);
    sweep[1] = weir_buffer(kSource);
    sweep[2] = weir_buffer(to);
    sweep[3] = weir_i32(static_cast<std::int32_t>(state.nx));
    sweep[4] = weir_i32(static_cast<std::int32_t>(state.ny));
    sweep[5] = weir_i32(static_cast<std::int32_t>(state.nz));
    sweep[6] = weir_i32(static_cast<std::int32_t>(depth));
    state.sweep[target] = {
        width > 1 ? "sweep_packs" : "sweep_cells", {plane_blocks, blocks_of(depth), 1}, {kThreads, 1, 1}, 0, 7, sweep};
  }
}

int setup(const WeirProblem* problem, WeirSetup* setup, void** out) {
  std::size_t sides[3];
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    const double side = weir::parameter(problem, "grid", axis);
    if (!(side >= 1 && side <= kMaxSide && side == std::floor(side)))
      return fail("grid must be three whole numbers from 1 to 1024: [[64, 64, 64]]");
    sides[axis] = static_cast<std::size_t>(side);
  }
  const double sweeps = weir::parameter(problem, "sweeps");
  if (!(sweeps >= 1 && sweeps <= 1000 && sweeps == std::floor(sweeps)))
    return fail("sweeps must be a whole number from 1 to 1000");
  auto* state = new (std::nothrow) Poisson;
  if (state == nullptr) return fail("no memory");
  *out = state;
  state->nx = sides[0];
  state->ny = sides[1];
  state->nz = sides[2];
  state->sweeps = static_cast<std::uint32_t>(sweeps);
  state->threads = problem->threads > 1 ? static_cast<int>(problem->threads) : 1;
  state->zeros.resize(state->nx);
  const std::uint64_t cells = state->nx * state->ny * state->nz;
  state->buffers[kSource] = {"source", WEIR_INPUT, WEIR_REAL, cells, WEIR_UNIFORM, -1, 1};
  state->buffers[kPressure] = {"pressure", WEIR_OUTPUT, WEIR_REAL, cells, 0, 0, 0};
  state->buffers[kOther] = {"other", WEIR_SCRATCH, WEIR_REAL, cells, 0, 0, 0};
  const std::uint32_t real_bytes = problem->precision == WEIR_FP64 ? 8 : problem->precision == WEIR_FP32 ? 4 : 2;
  plan_launches(*state, real_bytes);

  // A sweep reads pressure and source and writes pressure; the first one has no pressure to read. Sweeps are not fused,
  // so each has to move its own bytes.
  const auto count = static_cast<double>(cells);
  setup->buffer_count = kBufferCount;
  setup->buffers = state->buffers;
  setup->flop = count * (1 + 7 * (sweeps - 1));
  setup->bytes = count * real_bytes * (2 + 3 * (sweeps - 1));
  setup->items = count * sweeps;
  setup->item_name = "cell updates";
  return 0;
}

int run(void* raw, WeirStream* stream) {
  const auto& state = *static_cast<const Poisson*>(raw);
  if (stream->launch != nullptr) {
    int failed = stream->launch(stream, &state.start[target_of(0, state.sweeps)]);
    for (std::uint32_t i = 1; i < state.sweeps && failed == 0; ++i)
      failed = stream->launch(stream, &state.sweep[target_of(i, state.sweeps)]);
    return failed;
  }
  return weir::with_precision(stream->precision, [&](auto zero) {
    solve<decltype(zero)>(state, stream);
    return 0;
  });
}

int reference(void* raw, const double* const* inputs, double* const* outputs) {
  const auto& state = *static_cast<const Poisson*>(raw);
  const double* source = inputs[kSource];
  // With a margin of one cell that stays zero.
  const std::size_t row = state.nx + 2, plane = row * (state.ny + 2);
  std::vector<double> from(plane * (state.nz + 2)), to(from.size());
  const auto for_each_cell = [&](auto&& action) {
    std::size_t i = 0;
    for (std::size_t z = 1; z <= state.nz; ++z)
      for (std::size_t y = 1; y <= state.ny; ++y)
        for (std::size_t x = 1; x <= state.nx; ++x) action(i++, z * plane + y * row + x);
  };
  for (std::uint32_t sweep = 0; sweep < state.sweeps; ++sweep) {
    for_each_cell([&](std::size_t i, std::size_t at) {
      to[at] = (from[at - 1] + from[at + 1] + from[at - row] + from[at + row] + from[at - plane] + from[at + plane] -
                source[i]) /
               6;
    });
    std::swap(from, to);
  }
  for_each_cell([&](std::size_t i, std::size_t at) { outputs[kPressure][i] = from[at]; });
  return 0;
}

void teardown(void* raw) { delete static_cast<Poisson*>(raw); }
const char* error() { return g_error; }

constexpr double kGrid[] = {64, 64, 64}, kSweeps = 4;
constexpr WeirParameter kParameters[] = {{"grid", 3, kGrid}, {"sweeps", 1, &kSweeps}};
constexpr WeirKernel kKernel = {WEIR_KERNEL_ABI,
                                sizeof(WeirKernel),
                                "Jacobi sweeps for a pressure Poisson equation in 3-D",
                                WEIR_CPU | WEIR_CUDA,
                                WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16,
                                2,
                                kParameters,
                                setup,
                                nullptr,
                                run,
                                reference,
                                teardown,
                                error};

}  // namespace

extern "C" const WeirKernel* weir_kernel(void) { return &kKernel; }
