// A region of element-wise operations as one kernel. The body here goes through the list at run time, a tile at a time:
// it runs where nothing can be compiled.
#include "kernel/region.h"

#include <fmt/format.h>

#include <numbers>

#include "base/error.h"
#include "kernel/body.h"
#include "kernel/chain.h"

namespace weir {
namespace {

constexpr bool adds_operand(RegionOp op) { return op == RegionOp::add_row || op == RegionOp::add_matrix; }
constexpr int scalars_of(RegionOp op) {
  if (op == RegionOp::clamp) return 2;
  return op == RegionOp::mul || op == RegionOp::add || adds_operand(op) ? 1 : 0;
}

std::int64_t count_of(const KernelShape& shape) { return shape.dims[0] * shape.dims[1]; }
float scalar(const KernelShape& shape, int index) { return shape.scalars[static_cast<std::size_t>(index)]; }

// Without rows to add, a region is one long row.
bool has_rows(std::span<const RegionItem> items) {
  return std::ranges::any_of(items, [](const RegionItem& item) { return item.op == RegionOp::add_row; });
}
int added_count(std::span<const RegionItem> items) {
  return static_cast<int>(std::ranges::count_if(items, [](const RegionItem& item) { return adds_operand(item.op); }));
}

// A stretch of elements within one row, short enough that its floats stay in the first cache.
constexpr std::int64_t kTile = 1024;
struct Stretch {
  std::int64_t begin, column, count;
};

std::uint32_t blocks(const KernelShape& shape) { return block_count(count_of(shape), kBlockElements); }

template <class Body>
void each_stretch(const KernelShape& shape, bool has_rows, std::uint32_t block, Body&& body) {
  const Range range = block_range(count_of(shape), kBlockElements, block);
  const std::int64_t columns = has_rows ? shape.dims[1] : count_of(shape);
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t column = at % columns;
    const Stretch stretch{at, column, std::min({kTile, range.end - at, columns - column})};
    body(stretch);
    at += stretch.count;
  }
}

// One operation over a tile. Comparisons are written to preserve NaN, as in a chain.
void apply(const RegionItem& item, const KernelShape& shape, const float* const* added, float* values,
           std::int64_t count) {
  const float first = scalars_of(item.op) > 0 ? scalar(shape, item.scalar) : 0;
  const float second = scalars_of(item.op) > 1 ? scalar(shape, item.scalar + 1) : 0;
  const auto map = [&](auto&& function) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
  };
  switch (item.op) {
    case RegionOp::none:
      return;
    case RegionOp::mul:
      return map([=](float x) { return x * first; });
    case RegionOp::add:
      return map([=](float x) { return x + first; });
    case RegionOp::abs:
      return map([](float x) { return std::fabs(x); });
    case RegionOp::clamp:
      return map([=](float x) { return x < first ? first : x > second ? second : x; });
    case RegionOp::relu:
      return map([](float x) { return x < 0 ? 0 : x; });
    case RegionOp::square:
      return map([](float x) { return x * x; });
    case RegionOp::gelu:
      return map([](float x) { return 0.5f * x * std::erfc(-x * 0.70710678f); });  // 1 / sqrt(2)
    case RegionOp::add_row:
    case RegionOp::add_matrix: {
      const float* const from = added[item.operand - 1];
      for (std::int64_t i = 0; i < count; ++i) values[i] += first * from[i];
      return;
    }
  }
}

// Calls function(in, out, count, added) for each stretch of a block, with everything as floats.
template <class Function>
void over_block(const KernelCall& call, std::span<const RegionItem> items, std::uint32_t block, Function&& function) {
  const int extra = added_count(items);
  const bool rows = has_rows(items);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    constexpr bool kIsFloat = std::is_same_v<T, float>;
    [[maybe_unused]] float tiles[kIsFloat ? 1 : kMaxAdded + 1][kTile];
    each_stretch(call.shape, rows, block, [&](const Stretch& at) {
      const float* added[kMaxAdded] = {};
      for (const RegionItem& item : items) {
        if (!adds_operand(item.op)) continue;
        const T* const from =
            operand<const T>(call, item.operand) + (item.op == RegionOp::add_row ? at.column : at.begin);
        if constexpr (kIsFloat) {
          added[item.operand - 1] = from;
        } else {
          load_floats(from, tiles[item.operand], at.count);
          added[item.operand - 1] = tiles[item.operand];
        }
      }
      const T* const in = operand<const T>(call, 0) + at.begin;
      T* const out = operand<T>(call, extra + 1) + at.begin;
      if constexpr (kIsFloat) {
        function(in, out, at.count, added);
      } else {
        load_floats(in, tiles[0], at.count);
        function(tiles[0], tiles[0], at.count, added);
        store_floats(tiles[0], out, at.count);
      }
    });
  });
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const RegionItems items = region_items(call.shape);
  over_block(call, items, block, [&](const float* in, float* out, std::int64_t count, const float* const* added) {
    float values[kTile];  // `in` may be `out`
    std::copy_n(in, count, values);
    for (const RegionItem& item : items) apply(item, call.shape, added, values, count);
    std::copy_n(values, count, out);
  });
}

double exact(const RegionItem& item, const KernelShape& shape, double x, double added) {
  const auto number = [&](int index) { return static_cast<double>(scalar(shape, index)); };
  switch (item.op) {
    case RegionOp::none:
      return x;
    case RegionOp::mul:
      return x * number(item.scalar);
    case RegionOp::add:
      return x + number(item.scalar);
    case RegionOp::abs:
      return x < 0 ? -x : x;
    case RegionOp::clamp:
      if (x < number(item.scalar)) x = number(item.scalar);
      return x > number(item.scalar + 1) ? number(item.scalar + 1) : x;
    case RegionOp::relu:
      return x < 0 ? 0 : x;
    case RegionOp::square:
      return x * x;
    case RegionOp::gelu:
      return x * (0.5 + 0.5 * std::erf(x / std::numbers::sqrt2));
    case RegionOp::add_row:
    case RegionOp::add_matrix:
      return x + number(item.scalar) * added;
  }
  return x;
}

void reference(const KernelCall& call) {
  const RegionItems items = region_items(call.shape);
  const int extra = added_count(items);
  const std::int64_t count = count_of(call.shape), columns = call.shape.dims[1];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < count; ++i) {
      double x = to_float(operand<const T>(call, 0)[i]);
      for (const RegionItem& item : items) {
        const double added =
            !adds_operand(item.op)
                ? 0
                : to_float(operand<const T>(call, item.operand)[item.op == RegionOp::add_row ? i % columns : i]);
        x = exact(item, call.shape, x, added);
      }
      operand<T>(call, extra + 1)[i] = from_double<T>(x);
    }
  });
}

// The float roundings of a chain, of gelu, and of an add whose terms may cancel to a 16th of the size of other results.
// Where nothing is compiled, each operation but the last rounds its result to the stored type as well; what follows may
// cancel down to a quarter of that: 0.0192 in bf16 where a row was taken from a sum, which is 4.9 roundings.
double tolerance(const KernelShape& shape) {
  double roundings = 0, cancelled = 1;
  const RegionItems items = region_items(shape);
  for (const RegionItem& item : items) {
    switch (item.op) {
      case RegionOp::add_row:
      case RegionOp::add_matrix:
        roundings = 16 * (roundings + 3);
        cancelled = 4;
        break;
      case RegionOp::add:
      case RegionOp::square:
        roundings = 2 * roundings + 1;
        cancelled = std::max(cancelled, 2.0);
        break;
      case RegionOp::mul:
        roundings += 1;
        break;
      case RegionOp::gelu:
        roundings += 26;
        break;
      default:
        break;
    }
  }
  const double stored = cancelled * static_cast<double>(items.size() - 1);
  return storage_tolerance(shape.type, 2 * roundings) + stored * rounding_of(shape.type);
}

Cost cost(const KernelShape& shape) {
  double per_element = 0, read = 0;
  const auto count = static_cast<double>(count_of(shape));
  for (const RegionItem& item : region_items(shape)) {
    per_element += item.op == RegionOp::gelu ? 8 : adds_operand(item.op) ? 2 : 1;
    if (adds_operand(item.op)) read += item.op == RegionOp::add_row ? shape.dim(1) : count;
  }
  return {count * per_element, (2 * count + read) * element_bytes(shape)};
}

std::string_view operands(const KernelShape& shape) {
  constexpr std::string_view kAll = "rrrrrw";
  return kAll.substr(static_cast<std::size_t>(kMaxAdded - added_count(region_items(shape))));
}

Extents extents(const KernelShape& shape) {
  Extents all{};
  all[0] = count_of(shape);
  std::size_t next = 1;
  for (const RegionItem& item : region_items(shape))
    if (adds_operand(item.op)) all[next++] = item.op == RegionOp::add_row ? shape.dims[1] : all[0];
  all[next] = all[0];
  return all;
}

}  // namespace

bool is_region(const Kernel& kernel) { return kernel.run_block == run_block; }

std::int64_t region_ops(std::span<const RegionOp> ops) {
  std::int64_t packed = 0;
  int shift = 0, scalars = 0, added = 0;
  if (ops.empty()) reject("a region has no operation");
  if (ops.size() > kMaxRegionOps) reject(fmt::format("a region has at most {} operations", kMaxRegionOps));
  for (const RegionOp op : ops) {
    if (op == RegionOp::none || op > RegionOp::add_matrix) reject("a region has an unknown operation");
    packed |= static_cast<std::int64_t>(op) << shift;
    shift += 8;
    scalars += scalars_of(op);
    added += adds_operand(op);
  }
  if (scalars > kMaxScalars) reject(fmt::format("a region has at most {} scalars", kMaxScalars));
  if (added > kMaxAdded) reject(fmt::format("a region adds at most {} operands", kMaxAdded));
  return packed;
}

RegionItems region_items(const KernelShape& shape) {
  RegionItems items;
  std::array<RegionOp, kMaxRegionOps> ops{};  // one byte each
  static_assert(sizeof ops == sizeof shape.dims[2]);
  int next_scalar = 0, next_operand = 1;
  for (auto rest = static_cast<std::uint64_t>(shape.dims[2]); rest != 0; rest >>= 8) {
    const auto op = static_cast<RegionOp>(rest & 0xff);
    ops[items.size()] = op;
    items.add({op, next_scalar, adds_operand(op) ? next_operand++ : 0});
    next_scalar += scalars_of(op);
  }
  region_ops(std::span(ops).first(items.size()));
  return items;
}

std::vector<RegionPart> unfused(const KernelShape& region) {
  std::vector<RegionPart> parts;
  for (const RegionItem& item : region_items(region)) {
    KernelShape shape{.type = region.type, .precision = region.precision};
    if (adds_operand(item.op)) {
      shape.dims = {region.dims[0], region.dims[1], item.op == RegionOp::add_row ? 1 : 0};
      shape.scalars = {1, scalar(region, item.scalar)};
      parts.push_back({"add", shape, item.operand});
    } else if (item.op == RegionOp::gelu) {
      shape.dims = {count_of(region)};
      parts.push_back({"gelu", shape});
    } else {
      shape.dims = {count_of(region), static_cast<std::int64_t>(item.op)};
      for (int i = 0; i < scalars_of(item.op); ++i)
        shape.scalars[static_cast<std::size_t>(i)] = scalar(region, item.scalar + i);
      parts.push_back({"chain", shape});
    }
  }
  return parts;
}

void run_region_block(const KernelCall& call, std::uint32_t block, RegionFunction function) {
  over_block(call, region_items(call.shape), block,
             [&](const float* in, float* out, std::int64_t count, const float* const* added) {
               function(in, out, static_cast<long>(count), added, call.shape.scalars.data());
             });
}

namespace catalogue {

Kernel region() {
  return {.name = "region",
          .summary = "element-wise operations compiled into one kernel at run time",
          .operands = operands,
          .extents = extents,
          .cost = cost,
          .blocks = blocks,
          .run_block = run_block,
          .reference = reference,
          .tolerance = tolerance,
          .geometry = [](const KernelShape& shape) { return element_geometry(count_of(shape), shape.type); }};
}

}  // namespace catalogue

static_assert(static_cast<int>(RegionOp::mul) == static_cast<int>(ChainOp::mul) &&
              static_cast<int>(RegionOp::clamp) == static_cast<int>(ChainOp::clamp) &&
              static_cast<int>(RegionOp::square) == static_cast<int>(ChainOp::square));

}  // namespace weir
