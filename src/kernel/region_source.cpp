#include "kernel/region_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir {
namespace {

// Members of KernelArguments as cuda_source() declares them.
static_assert(sizeof(KernelArguments) == kMaxOperands * 8 + kMaxDims * 8 + kMaxScalars * 4);
static_assert(kMaxScalars == 4);  // as cpp_source() copies them

bool takes_operand(const RegionItem& item) { return item.operand != 0; }

// One operation on `x`; e1, e2, ... are the elements of further operands. Comparisons preserve NaN, as in other bodies.
std::string statement(const RegionItem& item, RegionLanguage language) {
  const bool is_cpp = language == RegionLanguage::cpp, is_opencl = language == RegionLanguage::opencl;
  const auto s = [&](int index) { return is_cpp ? fmt::format("s[{}]", index) : fmt::format("a.scalars[{}]", index); };
  switch (item.op) {
    case RegionOp::none:
      return "";
    case RegionOp::mul:
      return fmt::format("x = x * {};", s(item.scalar));
    case RegionOp::add:
      return fmt::format("x = x + {};", s(item.scalar));
    case RegionOp::abs:
      return fmt::format("x = {}(x);", is_cpp ? "__builtin_fabsf" : is_opencl ? "fabs" : "fabsf");
    case RegionOp::clamp:
      return fmt::format("x = x < {0} ? {0} : x > {1} ? {1} : x;", s(item.scalar), s(item.scalar + 1));
    case RegionOp::relu:
      return "x = x < 0.0f ? 0.0f : x;";
    case RegionOp::square:
      return "x = x * x;";
    case RegionOp::gelu:  // 0.70710678 is 1 / sqrt(2)
      return fmt::format("x = 0.5f * x * {}(-x * 0.70710678f);", is_cpp      ? "__builtin_erfcf"
                                                                 : is_opencl ? "erfc"
                                                                             : "erfcf");
    case RegionOp::add_row:
    case RegionOp::add_matrix:
      return fmt::format("x = x + {} * e{};", s(item.scalar), item.operand);
  }
  return "";
}

std::string statements(std::span<const RegionItem> items, RegionLanguage language, std::string_view indent) {
  std::string text;
  for (const RegionItem& item : items) text += fmt::format("{}{}\n", indent, statement(item, language));
  return text;
}

// A line per further operand; {0} is its number, {1} where its element is: within its row, or in the whole matrix.
std::string per_operand(std::span<const RegionItem> items, std::string_view row, std::string_view matrix) {
  std::string text;
  for (const RegionItem& item : items)
    if (takes_operand(item))
      text += fmt::format(fmt::runtime(item.op == RegionOp::add_row ? row : matrix), item.operand);
  return text;
}

std::string cpp_source(std::span<const RegionItem> items) {
  return "extern \"C\" void weir_region(const float* in, float* out, long count, const float* const* added,\n"
         "                            const float* scalars) {\n"
         "  const float s[4] = {scalars[0], scalars[1], scalars[2], scalars[3]};\n" +
         per_operand(items, "  const float* const o{0} = added[{0} - 1];\n",
                     "  const float* const o{0} = added[{0} - 1];\n") +
         "  (void)s, (void)added;\n"
         "  for (long i = 0; i < count; ++i) {\n"
         "    float x = in[i];\n" +
         per_operand(items, "    const float e{0} = o{0}[i];\n", "    const float e{0} = o{0}[i];\n") +
         statements(items, RegionLanguage::cpp, "    ") +
         "    out[i] = x;\n"
         "  }\n"
         "}\n";
}

// 16 bytes at a time if there is more than an element per thread and everything is aligned, as in device_loops.cuh.
std::string cuda_source(std::span<const RegionItem> items, int operands) {
  const bool has_rows = std::ranges::any_of(items, [](const RegionItem& item) { return item.op == RegionOp::add_row; });
  const std::string at = per_operand(items, ", weir_load(o{0}, weir_within(i, columns))", ", weir_load(o{0}, i)");
  return "#include \"weir/device.h\"\n"
         "struct WeirArguments {\n" +
         fmt::format("  void* operands[{}];\n  long long dims[{}];\n  float scalars[{}];\n", kMaxOperands, kMaxDims,
                     kMaxScalars) +
         "};\n"
         "struct alignas(16) WeirRun {\n"
         "  weir_real elements[16 / sizeof(weir_real)];\n"
         "};\n"
         "__device__ __forceinline__ long long weir_within(long long i, long long period) {\n"
         "  return ((i | period) >> 32) == 0 ? (long long)((unsigned)i % (unsigned)period) : i % period;\n"
         "}\n"
         "__device__ __forceinline__ float weir_apply(const WeirArguments& a, float x" +
         per_operand(items, ", float e{0}", ", float e{0}") + ") {\n" + statements(items, RegionLanguage::cuda, "  ") +
         "  return x;\n"
         "}\n"
         "extern \"C\" __global__ void weir_region(const WeirArguments a) {\n"
         "  const int wide = 16 / sizeof(weir_real);\n"
         "  const long long columns = a.dims[1], count = a.dims[0] * columns;\n"
         "  const weir_real* const in = (const weir_real*)a.operands[0];\n" +
         per_operand(items, "  const weir_real* const o{0} = (const weir_real*)a.operands[{0}];\n",
                     "  const weir_real* const o{0} = (const weir_real*)a.operands[{0}];\n") +
         fmt::format("  weir_real* const out = (weir_real*)a.operands[{}];\n", operands - 1) +
         "  const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  const long long stride = (long long)gridDim.x * blockDim.x;\n"
         "  unsigned long long places = (unsigned long long)in | (unsigned long long)out;\n" +
         per_operand(items, "  places |= (unsigned long long)o{0};\n", "  places |= (unsigned long long)o{0};\n") +
         "  long long done = 0;\n"
         "  if (count > stride && places % 16 == 0" +
         (has_rows ? " && columns % wide == 0" : "") +
         ") {\n"
         "    done = count / wide * wide;\n"
         "    for (long long i = first; i < count / wide; i += stride) {\n"
         "      WeirRun run = ((const WeirRun*)in)[i];\n" +
         per_operand(items, "      const WeirRun r{0} = ((const WeirRun*)o{0})[weir_within(i, columns / wide)];\n",
                     "      const WeirRun r{0} = ((const WeirRun*)o{0})[i];\n") +
         "#pragma unroll\n"
         "      for (int e = 0; e < wide; ++e)\n"
         "        run.elements[e] = weir_narrow(weir_apply(a, weir_widen(run.elements[e])" +
         per_operand(items, ", weir_widen(r{0}.elements[e])", ", weir_widen(r{0}.elements[e])") +
         "));\n"
         "      ((WeirRun*)out)[i] = run;\n"
         "    }\n"
         "  }\n"
         "  for (long long i = done + first; i < count; i += stride)\n"
         "    weir_store(out, i, weir_apply(a, weir_load(in, i)" +
         at +
         "));\n"
         "}\n";
}

std::string opencl_source(std::span<const RegionItem> items, int operands) {
  return "WEIR_KERNEL(region) {\n"
         "  const long columns = a.dims[1], count = a.dims[0] * columns;\n"
         "  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);\n" +
         per_operand(items, "  __global const weir_element* const p{0} = WEIR_OPERAND(const weir_element, {0});\n",
                     "  __global const weir_element* const p{0} = WEIR_OPERAND(const weir_element, {0});\n") +
         fmt::format("  __global weir_element* const out = WEIR_OPERAND(weir_element, {});\n", operands - 1) +
         "  for (long i = global_thread(); i < count; i += global_threads()) {\n"
         "    float x = load(in, i);\n" +
         per_operand(items, "    const float e{0} = load(p{0}, i - divide(i, columns) * columns);\n",
                     "    const float e{0} = load(p{0}, i);\n") +
         statements(items, RegionLanguage::opencl, "    ") +
         "    store(out, i, x);\n"
         "  }\n"
         "}\n";
}

}  // namespace

std::string region_source(const KernelShape& shape, RegionLanguage language) {
  const RegionItems items = region_items(shape);
  const int operands = 2 + static_cast<int>(std::ranges::count_if(items, takes_operand));
  switch (language) {
    case RegionLanguage::cpp:
      return cpp_source(items);
    case RegionLanguage::cuda:
      return cuda_source(items, operands);
    case RegionLanguage::opencl:
      return opencl_source(items, operands);
  }
  return "";
}

}  // namespace weir
