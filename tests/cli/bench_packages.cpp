#include "cli/bench_packages.h"

#include "support/text.h"

namespace weir::testing {

void make_package(const std::filesystem::path& folder, const std::string& name, const std::string& config,
                  const KernelSource& source) {
  const std::filesystem::path package = folder / "kernels" / name;
  put_file(package / "kernel.cpp",
           "#include <weir/host.h>\n"
           "#include <csignal>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n" +
               source.globals + "\n" +
               "namespace {\n"
               "WeirBuffer buffers[2];\nunsigned long long count = 0;\nlong runs = 0;\n"
               "int setup(const WeirProblem* problem, WeirSetup* setup, void** state) {\n" +
               source.setup +
               "\n  count = static_cast<unsigned long long>(weir::parameter(problem, \"count\"));\n"
               "  buffers[0] = {\"x\", WEIR_INPUT, WEIR_REAL, count, WEIR_UNIFORM, 1, 2};\n"
               "  buffers[1] = {\"y\", WEIR_OUTPUT, WEIR_REAL, count, 0, 0, 0};\n"
               "  setup->buffer_count = 2;\n  setup->buffers = buffers;\n"
               "  setup->flop = static_cast<double>(count);\n  setup->bytes = 8 * static_cast<double>(count);\n"
               "  setup->items = static_cast<double>(count);\n  setup->item_name = \"elements\";\n"
               "  *state = buffers;\n  return 0;\n}\n"
               "int run(void*, WeirStream* stream) {\n  ++runs;\n" +
               source.run +
               "\n  return weir::with_precision(stream->precision, [&](auto zero) {\n"
               "    using Real = decltype(zero);\n    using Wide = weir::Wide<Real>;\n"
               "    const Real* in = weir::buffer<const Real>(stream, 0);\n"
               "    Real* out = weir::buffer<Real>(stream, 1);\n"
               "    for (unsigned long long i = 0; i < count; ++i) {\n"
               "      const Wide x = static_cast<Wide>(in[i]);\n      out[i] = Real(static_cast<Wide>(" +
               source.result +
               "));\n    }\n    return 0;\n  });\n}\n"
               "[[maybe_unused]] int reference(void*, const double* const* in, double* const* out) {\n"
               "  for (unsigned long long i = 0; i < count; ++i) {\n    const double x = in[0][i];\n    out[1][i] = " +
               source.expected +
               ";\n  }\n  return 0;\n}\n"
               "void teardown(void*) {}\n"
               "constexpr double kCount = 1000;\n"
               "constexpr WeirParameter kParameters[] = {{\"count\", 1, &kCount}};\n"
               "const WeirKernel kKernel = {" +
               source.abi + ", sizeof(WeirKernel), \"doubles\", WEIR_CPU, " + source.precisions +
               ", 1, kParameters, setup, nullptr, run, " + source.reference +
               ", teardown, nullptr};\n}  // namespace\n"
               "extern \"C\" WEIR_EXPORT const WeirKernel* " +
               source.symbol + "(void) { return &kKernel; }\n");
  if (!config.empty()) put_file(package / "bench.yaml", config);
}

}  // namespace weir::testing
