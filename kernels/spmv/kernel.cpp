// y = A x for a sparse matrix in compressed rows (CSR). Rows have different lengths; columns are scattered over the
// whole matrix or lie in a band. Host part and CPU body; the body for CUDA is in kernel.cu.
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "weir/host.h"

namespace {

enum : std::uint32_t { kRowStart, kColumn, kValue, kVector, kResult, kBufferCount };

constexpr std::uint32_t kThreads = 256;

const char* g_error = "";

struct Matrix {
  std::uint32_t rows = 0;
  std::uint32_t band = 0;  // columns are at most this far from the diagonal; 0: anywhere
  std::vector<std::int32_t> row_start;
  WeirBuffer buffers[kBufferCount] = {};
  WeirArgument arguments[7] = {};
  WeirLaunch launch = {};
};

// splitmix64: a number that looks random, from any two.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t value = seed + (index + 1) * 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

int fail(const char* error) {
  g_error = error;
  return 1;
}

bool is_whole(double value, double low, double high) {
  return value >= low && value <= high && value == std::floor(value);
}

void plan_launch(Matrix& matrix, double row_entries) {
  // As many lanes per row as give each two entries or more.
  std::uint32_t lanes = 2;
  while (lanes < 32 && lanes * 4 <= row_entries) lanes *= 2;
  for (std::uint32_t i = 0; i < kBufferCount; ++i) matrix.arguments[i] = weir_buffer(i);
  matrix.arguments[5] = weir_i32(static_cast<std::int32_t>(matrix.rows));
  matrix.arguments[6] = weir_i32(static_cast<std::int32_t>(lanes));
  const std::uint32_t rows_per_block = kThreads / lanes;
  const std::uint32_t blocks = (matrix.rows + rows_per_block - 1) / rows_per_block;
  matrix.launch = {"spmv", {blocks, 1, 1}, {kThreads, 1, 1}, 0, 7, matrix.arguments};
}

int setup(const WeirProblem* problem, WeirSetup* setup, void** out) {
  const double rows = weir::parameter(problem, "rows");
  const double row_entries = weir::parameter(problem, "row_entries");
  const double band = weir::parameter(problem, "band");
  if (!is_whole(row_entries, 2, 1024)) return fail("row_entries must be a whole number from 2 to 1024");
  if (!is_whole(rows, 2 * row_entries, 1 << 28) || rows * row_entries > 0x1p30)
    return fail("rows must be a whole number from 2 * row_entries up, with rows * row_entries at most 2^30");
  if (band != 0 && !is_whole(band, 2 * row_entries, rows))
    return fail("band must be 0 (columns anywhere) or a whole number from 2 * row_entries to rows");
  auto* matrix = new (std::nothrow) Matrix;
  if (matrix == nullptr) return fail("no memory");
  *out = matrix;
  matrix->rows = static_cast<std::uint32_t>(rows);
  matrix->band = static_cast<std::uint32_t>(band);
  // From half of row_entries up to one and a half: neighbours in a warp are not done at the same time.
  const auto mean = static_cast<std::uint64_t>(row_entries);
  matrix->row_start.resize(matrix->rows + std::size_t{1});
  for (std::uint32_t row = 0; row < matrix->rows; ++row) {
    const std::uint64_t length = mean - mean / 2 + mixed(problem->seed, row) % (mean / 2 * 2 + 1);
    matrix->row_start[row + 1] = matrix->row_start[row] + static_cast<std::int32_t>(length);
  }
  const auto entries = static_cast<std::uint64_t>(matrix->row_start.back());

  // All positive: no row's sum is small by cancellation, so that a relative error says something.
  matrix->buffers[kRowStart] = {"row_start", WEIR_INPUT, WEIR_I32, matrix->row_start.size(), WEIR_OWN, 0, 0};
  matrix->buffers[kColumn] = {"column", WEIR_INPUT, WEIR_I32, entries, WEIR_OWN, 0, 0};
  matrix->buffers[kValue] = {"value", WEIR_INPUT, WEIR_REAL, entries, WEIR_UNIFORM, 0.5, 1.5};
  matrix->buffers[kVector] = {"x", WEIR_INPUT, WEIR_REAL, matrix->rows, WEIR_UNIFORM, 0.5, 1.5};
  matrix->buffers[kResult] = {"y", WEIR_OUTPUT, WEIR_REAL, matrix->rows, 0, 0, 0};
  plan_launch(*matrix, row_entries);

  const double real_bytes = problem->precision == WEIR_FP64 ? 8 : problem->precision == WEIR_FP32 ? 4 : 2;
  setup->buffer_count = kBufferCount;
  setup->buffers = matrix->buffers;
  setup->flop = 2.0 * static_cast<double>(entries);
  setup->bytes = static_cast<double>(entries) * (4 + real_bytes) + (rows + 1) * 4 + 2 * rows * real_bytes;
  setup->items = static_cast<double>(entries);
  setup->item_name = "entries";
  return 0;
}

// Columns of a row are sorted and all different: each lies in its own part of the row's range.
int fill(void* raw, std::uint32_t buffer, std::uint64_t seed, double* values) {
  const auto& matrix = *static_cast<const Matrix*>(raw);
  if (buffer == kRowStart) {
    for (std::size_t i = 0; i < matrix.row_start.size(); ++i) values[i] = matrix.row_start[i];
    return 0;
  }
  if (buffer != kColumn) return fail("only row_start and column are filled by the kernel");
  for (std::uint64_t row = 0; row < matrix.rows; ++row) {
    const std::uint64_t reach = matrix.band == 0 ? matrix.rows : matrix.band;
    const std::uint64_t low = row > reach ? row - reach : 0;
    const std::uint64_t high = row + reach + 1 < matrix.rows ? row + reach + 1 : matrix.rows;
    const auto start = static_cast<std::uint64_t>(matrix.row_start[row]);
    const auto entries = static_cast<std::uint64_t>(matrix.row_start[row + 1]) - start;
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::uint64_t from = low + i * (high - low) / entries, to = low + (i + 1) * (high - low) / entries;
      values[start + i] = static_cast<double>(from + mixed(seed ^ 0x5eed, start + i) % (to - from));
    }
  }
  return 0;
}

template <class Real>
void multiply(const Matrix& matrix, const WeirStream* stream) {
  using Wide = weir::Wide<Real>;
  const std::int32_t* row_start = weir::buffer<const std::int32_t>(stream, kRowStart);
  const std::int32_t* column = weir::buffer<const std::int32_t>(stream, kColumn);
  const Real* value = weir::buffer<const Real>(stream, kValue);
  const Real* x = weir::buffer<const Real>(stream, kVector);
  Real* y = weir::buffer<Real>(stream, kResult);
  for (std::uint32_t row = 0; row < matrix.rows; ++row) {
    const std::int32_t end = row_start[row + 1];
    std::int32_t i = row_start[row];
    Wide sums[4] = {};  // four loads of x under way
    for (; i + 4 <= end; i += 4) {
      for (int lane = 0; lane < 4; ++lane)
        sums[lane] += static_cast<Wide>(value[i + lane]) * static_cast<Wide>(x[column[i + lane]]);
    }
    for (; i < end; ++i) sums[0] += static_cast<Wide>(value[i]) * static_cast<Wide>(x[column[i]]);
    y[row] = Real((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

int run(void* raw, WeirStream* stream) {
  const auto& matrix = *static_cast<const Matrix*>(raw);
  if (stream->launch != nullptr) return stream->launch(stream, &matrix.launch);
  return weir::with_precision(stream->precision, [&](auto zero) {
    multiply<decltype(zero)>(matrix, stream);
    return 0;
  });
}

int reference(void* raw, const double* const* inputs, double* const* outputs) {
  const auto& matrix = *static_cast<const Matrix*>(raw);
  for (std::uint32_t row = 0; row < matrix.rows; ++row) {
    double sum = 0;
    for (std::int32_t i = matrix.row_start[row]; i < matrix.row_start[row + 1]; ++i)
      sum += inputs[kValue][i] * inputs[kVector][static_cast<std::uint32_t>(inputs[kColumn][i])];
    outputs[kResult][row] = sum;
  }
  return 0;
}

void teardown(void* raw) { delete static_cast<Matrix*>(raw); }
const char* error() { return g_error; }

constexpr double kRows = 16384, kRowEntries = 16, kBand = 0;
constexpr WeirParameter kParameters[] = {{"rows", 1, &kRows}, {"row_entries", 1, &kRowEntries}, {"band", 1, &kBand}};
constexpr WeirKernel kKernel = {WEIR_KERNEL_ABI,
                                sizeof(WeirKernel),
                                "sparse matrix (CSR) times vector",
                                WEIR_CPU | WEIR_CUDA,
                                WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16,
                                3,
                                kParameters,
                                setup,
                                fill,
                                run,
                                reference,
                                teardown,
                                error};

}  // namespace

extern "C" const WeirKernel* weir_kernel(void) { return &kKernel; }
