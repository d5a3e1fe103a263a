// One expert's matrix product: as many rows as the data routed to it, optionally followed by gelu. Rows of C beyond
// those are unchanged.
#include "kernel/ragged_gemm.h"

#include <numbers>

#include "kernel/blas.h"
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// One launch with named sizes and its expert's rows.
struct Product {
  explicit Product(const KernelShape& shape)
      : capacity(shape.dims[0]),
        n(shape.dims[1]),
        k(shape.dims[2]),
        expert(expert_in(shape.dims[3])),
        experts(experts_in(shape.dims[3])),
        is_grouped(is_grouped_in(shape.dims[3])),
        has_gelu(has_gelu_in(shape.dims[3])),
        rows_of_a(is_grouped ? static_cast<std::int64_t>(shape.scalars[1]) : capacity) {}

  Range rows(const KernelCall& call) const {
    const auto* const offsets = operand<const std::int32_t>(call, 2);
    const std::int64_t first = is_grouped ? std::clamp<std::int64_t>(offsets[expert], 0, rows_of_a) : 0;
    const std::int64_t count = std::min<std::int64_t>(capacity, offsets[expert + 1] - offsets[expert]);
    return {first, first + std::clamp<std::int64_t>(count, 0, rows_of_a - first)};
  }

  std::int64_t capacity, n, k, expert, experts;
  bool is_grouped, has_gelu;
  std::int64_t rows_of_a;
};

constexpr std::int64_t kRows = 128, kColumns = 1024, kDepth = 512;

std::uint32_t blocks(const KernelShape& shape) {
  open_blas();  // whoever asks is about to run them
  const Product product(shape);
  return block_count(product.capacity, kRows) * block_count(product.n, kColumns);
}

// Half types are converted in pieces of kDepth; a float accumulator is rounded once at the end of k.
template <class T>
void multiply(const Product& product, const T* a, const T* b, Range i, Range j, T* c) {
  const std::int64_t depth = std::min(kDepth, product.k);
  float* const sums = scratch(i.size() * j.size() + i.size() * depth + depth * j.size());
  float* const wide_a = sums + i.size() * j.size();
  float* const wide_b = wide_a + i.size() * depth;
  if constexpr (sizeof(T) == sizeof(float)) {
    blas_multiply(i.size(), j.size(), product.k, 1.0f, {a + i.begin * product.k, product.k}, {b + j.begin, product.n},
                  0.0f, sums, j.size());
  } else {
    for (Range p{0, 0}; p.begin < product.k; p.begin = p.end) {
      p.end = std::min(product.k, p.begin + depth);
      for (std::int64_t row = 0; row < i.size(); ++row)
        load_floats(a + (i.begin + row) * product.k + p.begin, wide_a + row * p.size(), p.size());
      for (std::int64_t row = 0; row < p.size(); ++row)
        load_floats(b + (p.begin + row) * product.n + j.begin, wide_b + row * j.size(), j.size());
      blas_multiply(i.size(), j.size(), p.size(), 1.0f, {wide_a, p.size()}, {wide_b, j.size()},
                    p.begin == 0 ? 0.0f : 1.0f, sums, j.size());
    }
  }
  for (std::int64_t row = 0; row < i.size(); ++row) {
    float* const from = sums + row * j.size();
    if (product.has_gelu)
      for (std::int64_t column = 0; column < j.size(); ++column)
        from[column] = 0.5f * from[column] * std::erfc(-from[column] * 0.70710678f);  // 1 / sqrt(2), as in gelu
    store_floats(from, c + (i.begin + row) * product.n + j.begin, j.size());
  }
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const Product product(call.shape);
  const Range rows = product.rows(call);
  const std::uint32_t across = block_count(product.n, kColumns);
  const Range i = block_range(rows.size(), kRows, block / across), j = block_range(product.n, kColumns, block % across);
  if (i.size() == 0 || j.size() == 0) return;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    multiply<T>(product, operand<const T>(call, 0) + rows.begin * product.k, operand<const T>(call, 1), i, j,
                operand<T>(call, 3));
  });
}

double gelu_of(double x) { return x * (0.5 + 0.5 * std::erf(x / std::numbers::sqrt2)); }

// sums[i][j] of rows i in double: by plain loops if the product is small, else by dgemm.
template <class T>
void sum_rows(const Product& product, const T* a, const T* b, Range i, std::vector<double>& sums) {
  sums.assign(static_cast<std::size_t>(i.size() * product.n), 0.0);
  if (static_cast<double>(product.capacity * product.n) * static_cast<double>(product.k) <= 0x1p26) {
    for (std::int64_t row = i.begin; row < i.end; ++row)
      for (std::int64_t p = 0; p < product.k; ++p) {
        const double factor = to_float(a[row * product.k + p]);
        double* const to = sums.data() + (row - i.begin) * product.n;
        for (std::int64_t column = 0; column < product.n; ++column)
          to[column] += factor * to_float(b[p * product.n + column]);
      }
    return;
  }
  constexpr std::int64_t kPiece = 256;
  std::vector<double> left(static_cast<std::size_t>(i.size() * kPiece));
  std::vector<double> right(static_cast<std::size_t>(kPiece * product.n));
  for (std::int64_t p = 0; p < product.k; p += kPiece) {
    const std::int64_t depth = std::min(kPiece, product.k - p);
    for (std::int64_t e = 0; e < i.size() * depth; ++e)
      left[static_cast<std::size_t>(e)] = to_float(a[(i.begin + e / depth) * product.k + p + e % depth]);
    for (std::int64_t e = 0; e < depth * product.n; ++e)
      right[static_cast<std::size_t>(e)] = to_float(b[p * product.n + e]);
    blas_multiply(i.size(), product.n, depth, 1.0, {left.data(), depth}, {right.data(), product.n}, 1.0, sums.data(),
                  product.n);
  }
}

void reference(const KernelCall& call) {
  open_blas();
  constexpr std::int64_t kPanel = 256;
  const Product product(call.shape);
  const Range rows = product.rows(call);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const a = operand<const T>(call, 0) + rows.begin * product.k;
    std::vector<double> sums;
    for (std::int64_t begin = 0; begin < rows.size(); begin += kPanel) {
      const Range i{begin, std::min(rows.size(), begin + kPanel)};
      sum_rows<T>(product, a, operand<const T>(call, 1), i, sums);
      for (std::size_t e = 0; e < sums.size(); ++e)
        operand<T>(call, 3)[static_cast<std::size_t>(begin * product.n) + e] =
            from_double<T>(product.has_gelu ? gelu_of(sums[e]) : sums[e]);
    }
  });
}

Cost cost(const KernelShape& shape) {
  const Product product(shape);
  const double rows = static_cast<double>(shape.scalars[0]);
  const auto n = static_cast<double>(product.n), k = static_cast<double>(product.k);
  return {2 * rows * n * k, (rows * k + k * n + rows * n) * element_bytes(shape) + 8};
}

// As in gemm, the errors of k float additions are random and matrix units truncate: 4 sqrt(k) roundings. All sums stay
// float until the end. gelu's slope is up to 1.13 while its results are about 0.7 of its inputs: twice as many, plus 26
// of its own.
double tolerance(const KernelShape& shape) {
  const double accumulation = 4 * std::sqrt(shape.dim(2));
  return storage_tolerance(shape.type, has_gelu_in(shape.dims[3]) ? 2 * accumulation + 26 : accumulation);
}

}  // namespace

Kernel ragged_gemm() {
  return {.name = "ragged_gemm",
          .summary = "matrix product of the rows that were routed to an expert",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrp"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const Product product(shape);
            return {product.rows_of_a * product.k, product.k * product.n, product.experts + 1,
                    product.capacity * product.n};
          },
          .cost = cost,
          .blocks = blocks,
          .run_block = run_block,
          .reference = reference,
          .tolerance = tolerance,
          .geometry =
              [](const KernelShape& shape) {
                return Geometry{
                    grid_of(divide_up(shape.dims[0], kRaggedRows) * divide_up(shape.dims[1], kRaggedColumns)),
                    kRaggedThreads};
              },
          .types = "ttit"};
}

}  // namespace weir::catalogue
