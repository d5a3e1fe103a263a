// Matrix product: C = alpha * op(A) op(B) + beta * C, or a batch of them. On GPUs a vendor library does the work; here
// it is OpenBLAS on tiles.
#include "kernel/gemm.h"

#include <atomic>
#include <thread>

#include "base/spare_threads.h"
#include "kernel/blas.h"
#include "kernel/body.h"
#include "kernel/fp8.h"
#include "kernel/random.h"

namespace weir::catalogue {
namespace {

// One product with named sizes. Matrices are row-major; a transposed one is stored as [k,m] or [n,k].
struct Product {
  explicit Product(const KernelShape& shape)
      : m(shape.dims[0]),
        n(shape.dims[1]),
        k(shape.dims[2]),
        a_is_transposed(transposes_a(shape)),
        b_is_transposed(transposes_b(shape)),
        alpha(shape.scalars[0]),
        beta(shape.scalars[1]) {}

  std::int64_t a_at(std::int64_t i, std::int64_t p) const { return a_is_transposed ? p * m + i : i * k + p; }
  std::int64_t b_at(std::int64_t p, std::int64_t j) const { return b_is_transposed ? j * k + p : p * n + j; }

  std::int64_t m, n, k;
  bool a_is_transposed, b_is_transposed;
  float alpha, beta;
};

// One product of a batch, as a separate call.
KernelCall product_of(const KernelCall& call, std::int64_t index) {
  const auto [m, n, k, flags] = call.shape.dims;
  const std::int64_t skipped = index * static_cast<std::int64_t>(size_of(call.shape.type));
  KernelCall one = call;
  one.shape.dims[3] = gemm_flags(transposes_a(call.shape), transposes_b(call.shape));
  one.operands = {operand<std::byte>(call, 0) + skipped * m * k, operand<std::byte>(call, 1) + skipped * k * n,
                  operand<std::byte>(call, 2) + skipped * m * n};
  return one;
}

// A rectangle of a stored matrix: its start, its rows and columns, and the distance between rows.
struct Tile {
  std::int64_t begin, rows, columns, stride;
};
Tile a_tile(const Product& product, Range i, Range p) {
  if (product.a_is_transposed) return {product.a_at(i.begin, p.begin), p.size(), i.size(), product.m};
  return {product.a_at(i.begin, p.begin), i.size(), p.size(), product.k};
}
Tile b_tile(const Product& product, Range p, Range j) {
  if (product.b_is_transposed) return {product.b_at(p.begin, j.begin), j.size(), p.size(), product.k};
  return {product.b_at(p.begin, j.begin), p.size(), j.size(), product.n};
}

template <class T, class Number, class Convert>
void load_tile(const T* matrix, const Tile& tile, Number* to, Convert&& convert) {
  for (std::int64_t r = 0; r < tile.rows; ++r)
    for (std::int64_t c = 0; c < tile.columns; ++c)
      to[r * tile.columns + c] = convert(matrix[tile.begin + r * tile.stride + c]);
}
template <class T, class Number>
void load_tile(const T* matrix, const Tile& tile, Number* to) {
  load_tile(matrix, tile, to, [](T value) { return to_float(value); });
}

// The operands of a product or a batch as it rounds them, in copies. What computes with these computes with bf16.
struct Fp8Call {
  explicit Fp8Call(const KernelCall& from) : call(from) {
    const auto [m, n, k, flags] = from.shape.dims;
    const std::int64_t batch = gemm_batch(from.shape);
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      const auto* const elements = static_cast<const Bf16*>(from.operands[which]);
      const std::int64_t count = batch * k * (which == 0 ? m : n);
      const Precision precision = from.shape.precision;
      const Fp8Operand operand(precision, Fp8Operand::scale_of(precision, elements, count));
      copies[which].reserve(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) copies[which].push_back(from_float<Bf16>(operand.rounded(elements[i])));
      call.operands[which] = copies[which].data();
    }
    call.shape.precision = Precision::bf16;
  }
  KernelCall call;
  std::array<std::vector<Bf16>, 2> copies;
};

// Blocks are row panels. A product with few of them is also split by columns, so that a flat one feeds all workers.
struct Panels {
  explicit Panels(const Product& product)
      : rows(product.m >= 1024 ? 256 : 128),
        columns(divide_up(product.m, rows) >= 8 ? product.n : 1024),
        across(block_count(product.n, columns)),
        count(block_count(product.m, rows) * across) {}
  std::int64_t rows, columns;
  std::uint32_t across, count;
};

std::uint32_t blocks(const KernelShape& shape) {
  open_blas();                                               // whoever asks is about to run them
  if (rounds_to_fp8(shape)) Fp8Operand(shape.precision, 1);  // makes its table of values
  return Panels(Product(shape)).count * static_cast<std::uint32_t>(gemm_batch(shape));
}

// Half types: tiles are converted to float, and a float accumulator is rounded once at the end of k.
template <class T, class ConvertA, class ConvertB>
void run_narrow(const KernelCall& call, const Product& product, Range i, Range panel, ConvertA&& convert_a,
                ConvertB&& convert_b) {
  constexpr std::int64_t kDepth = 512, kWidth = 1024;
  const std::int64_t depth = std::min(kDepth, product.k), width = std::min(kWidth, panel.size());
  float* const a = scratch(i.size() * depth + depth * width + i.size() * width);
  float* const b = a + i.size() * depth;
  float* const sums = b + depth * width;
  T* const c = operand<T>(call, 2);
  for (Range j{panel.begin, 0}; j.begin < panel.end; j.begin = j.end) {
    j.end = std::min(panel.end, j.begin + kWidth);
    for (Range p{0, 0}; p.begin < product.k; p.begin = p.end) {
      p.end = std::min(product.k, p.begin + kDepth);
      const Tile from_a = a_tile(product, i, p), from_b = b_tile(product, p, j);
      load_tile(operand<const T>(call, 0), from_a, a, convert_a);
      load_tile(operand<const T>(call, 1), from_b, b, convert_b);
      blas_multiply(i.size(), j.size(), p.size(), 1.0f, {a, from_a.columns, product.a_is_transposed},
                    {b, from_b.columns, product.b_is_transposed}, p.begin == 0 ? 0.0f : 1.0f, sums, j.size());
    }
    for (std::int64_t row = 0; row < i.size(); ++row) {
      T* const to = c + (i.begin + row) * product.n + j.begin;
      for (std::int64_t column = 0; column < j.size(); ++column) {
        float value = product.alpha * sums[row * j.size() + column];
        // beta 0 must not read C: it may hold NaN.
        if (product.beta != 0) value += product.beta * to_float(to[column]);
        to[column] = from_float<T>(value);
      }
    }
  }
}

void run_block(const KernelCall& batch, std::uint32_t block) {
  const Product product(batch.shape);
  const Panels panels(product);
  const KernelCall call = product_of(batch, block / panels.count);
  const std::uint32_t panel = block % panels.count;
  const Range i = block_range(product.m, panels.rows, panel / panels.across);
  const Range j = block_range(product.n, panels.columns, panel % panels.across);
  if (rounds_to_fp8(call.shape)) {
    KernelCall scaled = batch;
    if (scaled.shape.scalars[2] == 0) find_fp8_scales(scaled);
    const Fp8Operand a(batch.shape.precision, scaled.shape.scalars[2]);
    const Fp8Operand b(batch.shape.precision, scaled.shape.scalars[3]);
    const auto rounded_a = [&](Bf16 value) { return a.rounded(value); };
    const auto rounded_b = [&](Bf16 value) { return b.rounded(value); };
    return run_narrow<Bf16>(call, product, i, j, rounded_a, rounded_b);
  }
  const auto plain = [](auto value) { return to_float(value); };
  if (call.shape.type == ElementType::f16) return run_narrow<F16>(call, product, i, j, plain, plain);
  if (call.shape.type == ElementType::bf16) return run_narrow<Bf16>(call, product, i, j, plain, plain);
  const Tile a = a_tile(product, i, {0, product.k}), b = b_tile(product, {0, product.k}, j);
  blas_multiply(i.size(), j.size(), product.k, product.alpha,
                {operand<const float>(call, 0) + a.begin, a.stride, product.a_is_transposed},
                {operand<const float>(call, 1) + b.begin, b.stride, product.b_is_transposed}, product.beta,
                operand<float>(call, 2) + i.begin * product.n + j.begin, product.n);
}

template <class T>
void store_reference(const Product& product, const double* sums, std::int64_t row, T* c) {
  for (std::int64_t j = 0; j < product.n; ++j) {
    double value = static_cast<double>(product.alpha) * sums[j];
    if (product.beta != 0) value += static_cast<double>(product.beta) * to_float(c[row * product.n + j]);
    c[row * product.n + j] = from_double<T>(value);
  }
}

template <class T>
void small_reference(const KernelCall& call, const Product& product) {
  std::vector<double> sums(static_cast<std::size_t>(product.n));
  for (std::int64_t i = 0; i < product.m; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t p = 0; p < product.k; ++p) {
      const double a = to_float(operand<const T>(call, 0)[product.a_at(i, p)]);
      for (std::int64_t j = 0; j < product.n; ++j)
        sums[static_cast<std::size_t>(j)] += a * to_float(operand<const T>(call, 1)[product.b_at(p, j)]);
    }
    store_reference(product, sums.data(), i, operand<T>(call, 2));
  }
}

// Too large for plain loops: dgemm on tiles, with the row panels of all products on all cores.
template <class T>
void large_reference(const KernelCall& batch, const Product& product) {
  constexpr std::int64_t kRows = 256, kDepth = 512;
  std::atomic<std::uint32_t> next{0};  // distributes panels; the joins below publish their results
  const std::uint32_t per_product = block_count(product.m, kRows);
  const std::uint32_t panels = per_product * static_cast<std::uint32_t>(gemm_batch(batch.shape));
  const auto work = [&] {
    std::vector<double> a(kRows * kDepth), b(static_cast<std::size_t>(kDepth * product.n));
    std::vector<double> sums(static_cast<std::size_t>(kRows * product.n));
    for (std::uint32_t panel; (panel = next.fetch_add(1, std::memory_order_relaxed)) < panels;) {
      const KernelCall call = product_of(batch, panel / per_product);
      const Range i = block_range(product.m, kRows, panel % per_product);
      for (Range p{0, 0}; p.begin < product.k; p.begin = p.end) {
        p.end = std::min(product.k, p.begin + kDepth);
        const Tile from_a = a_tile(product, i, p), from_b = b_tile(product, p, {0, product.n});
        load_tile(operand<const T>(call, 0), from_a, a.data());
        load_tile(operand<const T>(call, 1), from_b, b.data());
        blas_multiply(i.size(), product.n, p.size(), 1.0, {a.data(), from_a.columns, product.a_is_transposed},
                      {b.data(), from_b.columns, product.b_is_transposed}, p.begin == 0 ? 0.0 : 1.0, sums.data(),
                      product.n);
      }
      for (std::int64_t row = 0; row < i.size(); ++row)
        store_reference(product, sums.data() + row * product.n, i.begin + row, operand<T>(call, 2));
    }
  };
  // References may run concurrently: they share the cores instead of each starting a thread per core.
  static std::atomic<std::uint32_t> running{0};
  const std::uint32_t others = running.fetch_add(1, std::memory_order_relaxed) + 1;  // only a hint
  {
    const std::uint32_t threads = std::min(panels, std::max(1u, std::thread::hardware_concurrency() / others));
    const auto helpers = start_spare_threads(threads - 1, work);
    work();
  }
  running.fetch_sub(1, std::memory_order_relaxed);
}

void reference(const KernelCall& call) {
  if (rounds_to_fp8(call.shape)) return reference(Fp8Call(call).call);
  open_blas();
  const Product product(call.shape);
  const std::int64_t batch = gemm_batch(call.shape);
  const double work = static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    // With few rows, converting all of B is not worthwhile.
    const bool is_large = product.m >= 16 && work * static_cast<double>(batch) > 0x1p22;
    if (is_large) return large_reference<T>(call, product);
    for (std::int64_t index = 0; index < batch; ++index) small_reference<T>(product_of(call, index), product);
  });
}

// Relative to max(|c|, rms of C), for data with or without a preferred sign:
// - k float additions round one after the other. Their errors are random, so they grow like sqrt(k) while C grows like
//   sqrt(k) or k: at most about 0.4 sqrt(k) roundings (1 sigma), 2.5 sqrt(k) in the worst of 10^9 elements; 8 are
//   allowed, because matrix units truncate instead of rounding and a few large terms keep partial sums large: products
//   of a causal softmax's gradient needed 5.5 on an H200.
// - tf32 cuts each factor by up to 2^-10 (2 roundings of 2^-11, 4 for a product), independent of k. Twice that is
//   allowed.
// - fp8 factors are exact once they are rounded, and the reference rounds them alike. Matrix units of NVIDIA's Hopper
//   keep 14 bits of partial sums of fp8 products: an eighth of a rounding of the format, which a product of operands
//   that were not rounded, or rounded to the other format, exceeds.
// - f16 and bf16 factors are exact. Besides the last rounding on both sides, libraries may round partial sums of a
//   split k to the stored type: eight more. cuBLAS 13 used 5.3 of them on an H200, where one row's values differ
//   widely.
double tolerance(const KernelShape& shape) {
  const double accumulation = 8 * std::sqrt(shape.dim(2)) * kFloatRounding;
  const bool is_narrow = shape.type == ElementType::f16 || shape.type == ElementType::bf16;
  const double factors = shape.precision == Precision::tf32 ? 8 * rounding_of(Precision::tf32)
                         : rounds_to_fp8(shape)             ? rounding_of(shape.precision) / 8
                                                            : 0;
  return storage_tolerance(shape.type, 0) + accumulation + factors + (is_narrow ? 8 * rounding_of(shape.type) : 0);
}

// Freivalds' check: compares C x with A (B x) for random signs x. Columns are taken in groups, each with its own signs:
// the rounding of w summed elements hides an error of sqrt(w) times the tolerance, so groups are kept small.
class Freivalds {
 public:
  explicit Freivalds(const KernelCall& call) : call_(call), product_(call.shape) {}

  template <class T>
  Verification run() {
    multiply_b<T>();
    multiply_a<T>();
    measure_scale<T>();
    compare_groups<T>();
    compare_samples<T>();
    return {worst_, tolerance(call_.shape), element_};
  }

 private:
  static constexpr std::int64_t kGroup = 128, kVectors = 3, kSamples = 64, kRows = 128;
  static constexpr unsigned long long kSeed = 0x5eed;

  static double sign(std::int64_t vector, std::int64_t j) {
    return random_bits(kSeed + static_cast<unsigned long long>(vector), static_cast<unsigned long long>(j)) & 1u ? 1
                                                                                                                 : -1;
  }
  std::int64_t groups() const { return divide_up(product_.n, kGroup); }
  std::int64_t vectors() const { return groups() * kVectors; }
  double expected(std::int64_t i, std::int64_t vector) const {
    return static_cast<double>(product_.alpha) * abx_[static_cast<std::size_t>(i * vectors() + vector)];
  }

  // bx_[vector][p]: B times each vector, which is zero outside of its group.
  template <class T>
  void multiply_b() {
    bx_.assign(static_cast<std::size_t>(vectors() * product_.k), 0.0);
    const T* const b = operand<const T>(call_, 1);
    std::vector<double> signs(static_cast<std::size_t>(kVectors * product_.n));
    for (std::int64_t v = 0; v < kVectors; ++v)
      for (std::int64_t j = 0; j < product_.n; ++j) signs[static_cast<std::size_t>(v * product_.n + j)] = sign(v, j);
    const auto x = [&](std::int64_t v, std::int64_t j) { return signs[static_cast<std::size_t>(v * product_.n + j)]; };
    const auto to = [&](std::int64_t group, std::int64_t v) {
      return bx_.data() + (group * kVectors + v) * product_.k;
    };
    if (product_.b_is_transposed) {
      for (std::int64_t j = 0; j < product_.n; ++j)
        for (std::int64_t v = 0; v < kVectors; ++v)
          for (std::int64_t p = 0; p < product_.k; ++p)
            to(j / kGroup, v)[p] += x(v, j) * to_float(b[product_.b_at(p, j)]);
      return;
    }
    for (std::int64_t p = 0; p < product_.k; ++p)
      for (std::int64_t group = 0; group < groups(); ++group) {
        const Range range = block_range(product_.n, kGroup, static_cast<std::uint32_t>(group));
        double sums[kVectors] = {};
        for (std::int64_t j = range.begin; j < range.end; ++j) {
          const double value = to_float(b[product_.b_at(p, j)]);
          for (std::int64_t v = 0; v < kVectors; ++v) sums[v] += x(v, j) * value;
        }
        for (std::int64_t v = 0; v < kVectors; ++v) to(group, v)[p] = sums[v];
      }
  }

  // abx_[i][vector]
  template <class T>
  void multiply_a() {
    abx_.resize(static_cast<std::size_t>(product_.m * vectors()));
    std::vector<double> a(static_cast<std::size_t>(kRows * product_.k));
    for (std::int64_t begin = 0; begin < product_.m; begin += kRows) {
      const Range i{begin, std::min(product_.m, begin + kRows)};
      const Tile tile = a_tile(product_, i, {0, product_.k});
      load_tile(operand<const T>(call_, 0), tile, a.data());
      blas_multiply(i.size(), vectors(), product_.k, 1.0, {a.data(), tile.columns, product_.a_is_transposed},
                    {bx_.data(), product_.k, true}, 0.0, abx_.data() + begin * vectors(), vectors());
    }
  }

  template <class T>
  double exact(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t p = 0; p < product_.k; ++p)
      sum += static_cast<double>(to_float(operand<const T>(call_, 0)[product_.a_at(i, p)])) *
             to_float(operand<const T>(call_, 1)[product_.b_at(p, j)]);
    return static_cast<double>(product_.alpha) * sum;
  }

  // The scale comes from the inputs alone: an output of zeros must not make its own errors look small. Over random
  // signs, the mean of ((C x) of w columns)^2 / w is the mean of C^2.
  template <class T>
  void measure_scale() {
    double squares = 0, sampled = 0;
    row_rms_.assign(static_cast<std::size_t>(product_.m), 0.0);
    group_rms_.assign(static_cast<std::size_t>(groups()), 0.0);
    for (std::int64_t i = 0; i < product_.m; ++i)
      for (std::int64_t v = 0; v < vectors(); ++v) {
        const double square = expected(i, v) * expected(i, v);
        squares += square;
        row_rms_[static_cast<std::size_t>(i)] += square;
        group_rms_[static_cast<std::size_t>(v / kVectors)] += square;
      }
    for (double& rms : row_rms_) rms = std::sqrt(rms / static_cast<double>(product_.n * kVectors));
    raise_rms_to_terms<T>();
    for (std::size_t group = 0; group < group_rms_.size(); ++group) {
      const Range range = block_range(product_.n, kGroup, static_cast<std::uint32_t>(group));
      group_rms_[group] = std::sqrt(group_rms_[group] / static_cast<double>(product_.m * range.size() * kVectors));
    }
    for (std::int64_t s = 0; s < kSamples; ++s) {
      const auto index = static_cast<unsigned long long>(s);
      rows_[s] = random_bits(kSeed + 1000, index) % static_cast<std::uint64_t>(product_.m);
      columns_[s] = random_bits(kSeed + 2000, index) % static_cast<std::uint64_t>(product_.n);
      exact_[s] = exact<T>(static_cast<std::int64_t>(rows_[s]), static_cast<std::int64_t>(columns_[s]));
      sampled += exact_[s] * exact_[s];
    }
    scale_ = std::sqrt(std::max(squares / static_cast<double>(product_.m * product_.n * kVectors), sampled / kSamples));
  }

  // Roundings are as large as the added terms, even if their sum is small: a row whose terms cancel (those of a
  // softmax's gradient add up to 0) is scaled by its terms. Also, three vectors measure a single row's size only
  // roughly.
  template <class T>
  void raise_rms_to_terms() {
    std::vector<double> squares(static_cast<std::size_t>(product_.k), 0.0);  // mean of B^2 over columns
    for (std::int64_t p = 0; p < product_.k; ++p) {
      for (std::int64_t j = 0; j < product_.n; ++j)
        squares[static_cast<std::size_t>(p)] += std::pow(to_float(operand<const T>(call_, 1)[product_.b_at(p, j)]), 2);
      squares[static_cast<std::size_t>(p)] /= static_cast<double>(product_.n);
    }
    for (std::int64_t i = 0; i < product_.m; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < product_.k; ++p)
        sum += std::pow(to_float(operand<const T>(call_, 0)[product_.a_at(i, p)]), 2) *
               squares[static_cast<std::size_t>(p)];
      double& rms = row_rms_[static_cast<std::size_t>(i)];
      rms = std::max(rms, std::fabs(static_cast<double>(product_.alpha)) * std::sqrt(sum));
    }
  }

  // Keeps the largest error; NaN counts as infinite.
  void note(double difference, double scale, std::int64_t element) {
    const double magnitude = std::fabs(difference);
    double error = magnitude == 0 ? 0 : magnitude / scale;
    if (!(error <= std::numeric_limits<double>::max())) error = std::numeric_limits<double>::infinity();
    if (error <= worst_) return;
    worst_ = error;
    element_ = static_cast<std::uint64_t>(element);
  }

  template <class T>
  void compare_groups() {
    const T* const c = operand<const T>(call_, 2);
    for (std::int64_t group = 0; group < groups(); ++group) {
      const Range range = block_range(product_.n, kGroup, static_cast<std::uint32_t>(group));
      double signs[kVectors][kGroup];
      for (std::int64_t v = 0; v < kVectors; ++v)
        for (std::int64_t j = 0; j < range.size(); ++j) signs[v][j] = sign(v, range.begin + j);
      const double root = std::sqrt(static_cast<double>(range.size()));
      for (std::int64_t i = 0; i < product_.m; ++i) {
        double sums[kVectors] = {};
        for (std::int64_t j = 0; j < range.size(); ++j) {
          const double value = to_float(c[i * product_.n + range.begin + j]);
          for (std::int64_t v = 0; v < kVectors; ++v) sums[v] += signs[v][j] * value;
        }
        // Rows and columns with larger values may have larger errors.
        const double scale = root * std::max({scale_, row_rms_[static_cast<std::size_t>(i)],
                                              group_rms_[static_cast<std::size_t>(group)]});
        for (std::int64_t v = 0; v < kVectors; ++v)
          note(sums[v] - expected(i, group * kVectors + v), scale, i * product_.n + range.begin);
      }
    }
  }

  template <class T>
  void compare_samples() {
    for (std::int64_t s = 0; s < kSamples; ++s) {
      const std::int64_t at = static_cast<std::int64_t>(rows_[s]) * product_.n + static_cast<std::int64_t>(columns_[s]);
      note(to_float(operand<const T>(call_, 2)[at]) - exact_[s],
           std::max({scale_, row_rms_[static_cast<std::size_t>(rows_[s])], std::fabs(exact_[s])}), at);
    }
  }

  const KernelCall& call_;
  Product product_;
  std::vector<double> bx_, abx_, row_rms_, group_rms_;
  std::uint64_t rows_[kSamples], columns_[kSamples];
  double exact_[kSamples];
  double scale_ = 0;
  double worst_ = 0;
  std::uint64_t element_ = 0;
};

// For beta 0 only: otherwise the inputs have been overwritten, and the error is NaN, which passes no comparison.
Verification verify(const KernelCall& call) {
  if (rounds_to_fp8(call.shape)) {
    Verification found = verify(Fp8Call(call).call);
    found.tolerance = tolerance(call.shape);
    return found;
  }
  if (call.shape.scalars[1] != 0) return {std::numeric_limits<double>::quiet_NaN(), tolerance(call.shape), 0};
  open_blas();
  Verification worst{.tolerance = tolerance(call.shape)};
  for (std::int64_t index = 0; index < gemm_batch(call.shape); ++index) {
    const KernelCall one = product_of(call, index);
    const Verification found = with_float_type(call.shape.type, [&]<class T>(T*) { return Freivalds(one).run<T>(); });
    if (found.error <= worst.error) continue;
    worst.error = found.error;
    worst.element = static_cast<std::uint64_t>(index * call.shape.dims[0] * call.shape.dims[1]) + found.element;
  }
  return worst;
}

// The rms of a product of such matrices if their signs were independent.
double scale(const KernelCall& call) {
  const auto [m, n, k, flags] = call.shape.dims;
  const std::int64_t counts[] = {m * k * gemm_batch(call.shape), k * n * gemm_batch(call.shape)};
  double mean_square = static_cast<double>(k) * call.shape.scalars[0] * call.shape.scalars[0];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (const int which : {0, 1}) {
      const T* const matrix = operand<const T>(call, which);
      double squares = 0;
      for (std::int64_t i = 0; i < counts[which]; ++i) {
        const double value = to_float(matrix[i]);
        squares += value * value;
      }
      mean_square *= squares / static_cast<double>(counts[which]);
    }
  });
  return std::sqrt(mean_square);
}

}  // namespace

Kernel gemm() {
  return {
      .name = "gemm",
      .summary = "matrix products by the vendor's library",
      .operands = [](const KernelShape& shape) -> std::string_view { return shape.scalars[1] != 0 ? "rru" : "rrw"; },
      .extents = [](const KernelShape& shape) -> Extents {
        const auto [m, n, k, flags] = shape.dims;
        const std::int64_t batch = gemm_batch(shape);
        return {batch * m * k, batch * k * n, batch * m * n};
      },
      .cost =
          [](const KernelShape& shape) {
            const auto m = shape.dim(0), n = shape.dim(1);
            const auto k = shape.dim(2);
            const auto batch = static_cast<double>(gemm_batch(shape));
            const double c_passes = shape.scalars[1] != 0 ? 2 : 1;
            return Cost{batch * 2 * m * n * k, batch * (m * k + k * n + c_passes * m * n) * element_bytes(shape)};
          },
      .blocks = blocks,
      .run_block = run_block,
      .reference = reference,
      .tolerance = tolerance,
      .scale = scale,
      .verify = verify};
}

}  // namespace weir::catalogue
