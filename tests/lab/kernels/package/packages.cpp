#include "packages.h"

#include <stdlib.h>

namespace weir::testing {

namespace fs = std::filesystem;

const char* const kScaleSource = R"~~(
#include "weir/host.h"
#include <exception>
#ifndef ABI
#define ABI WEIR_KERNEL_ABI
#endif
#ifndef BACKENDS
#define BACKENDS WEIR_CPU
#endif
#ifndef SKIPPED
#define SKIPPED 0
#endif
#ifndef COUNT
#define COUNT state.n
#endif
#ifndef IN
#define IN {"x", WEIR_INPUT, WEIR_REAL, (uint64_t)(COUNT), WEIR_UNIFORM, -1, 1}
#endif
#ifndef OUT
#define OUT {"y", WEIR_OUTPUT, WEIR_REAL, state.n, 0, 0, 0}
#endif
#ifndef FLOP
#define FLOP 2.0 * (double)state.n
#endif
namespace {
struct State { uint64_t n; } state;
WeirBuffer buffers[2];
const char* words = "";
int setups = 0;
int setup(const WeirProblem* problem, WeirSetup* setup, void** given) {
#ifdef THROWS
  struct Luck : std::exception { const char* what() const noexcept override { return "no such luck"; } };
  throw Luck();
#endif
  const double n = weir::parameter(problem, "n");
  if (!(n > 0)) { words = "n must be positive\033[31m"; return 3; }
  state.n = (uint64_t)n;
  *given = &state;
  const WeirBuffer in = IN;
  const WeirBuffer out = OUT;
  buffers[0] = in;
#ifdef BAD
  const WeirBuffer bad[] = {BAD};
  buffers[0] = bad[state.n - 1];
#endif
  buffers[1] = out;
  setup->buffer_count = 2;
  setup->buffers = buffers;
  setup->flop = FLOP;
  setup->items = (double)state.n;
  setup->item_name = "elements";
  ++setups;
  return 0;
}
int fill(void*, uint32_t, uint64_t seed, double* values) {
  for (uint64_t i = 0; i < state.n; ++i) values[i] = (double)(seed % 7 + i);
#ifdef BAD_FILL
  values[1] = BAD_FILL;
#endif
  return 0;
}
int run(void* given, WeirStream* stream) {
#ifdef RUN_FAILS
  words = "the run went wrong";
  return 9;
#endif
  const uint64_t n = ((State*)given)->n;
  return weir::with_precision(stream->precision, [&](auto zero) {
    using Real = decltype(zero);
    Real* x = weir::buffer<Real>(stream, 0);
    Real* y = weir::buffer<Real>(stream, 1);
    for (uint64_t i = SKIPPED; i < n; ++i) y[i] = Real(2 * weir::Wide<Real>(x[i]) + 1);
#ifdef NAN_AT
    y[NAN_AT] = Real(weir::Wide<Real>(0) / (weir::Wide<Real>)((double)stream->size * 0));
#endif
#ifdef PASSES
    y[n] = Real(7.0F);
#endif
#ifdef TOUCHES
    x[0] = Real(7.0F);
#endif
    return 0;
  });
}
int reference(void* given, const double* const* inputs, double* const* outputs) {
  for (uint64_t i = 0; i < ((State*)given)->n; ++i) outputs[1][i] = 2 * inputs[0][i] + 1;
  return 0;
}
void teardown(void*) { --setups; }
const char* error(void) { return words; }
const double kDefault[] = {1024};
const WeirParameter kParameters[] = {{"n", 1, kDefault}};
const WeirKernel kKernel = {ABI, sizeof(WeirKernel), "y = 2 x + 1", BACKENDS,
#ifdef PRECISIONS
  PRECISIONS
#else
  WEIR_FP64 | WEIR_FP32 | WEIR_FP16
#ifndef NO_BF16
  | WEIR_BF16
#endif
#endif
  , 1, kParameters, setup, fill,
#ifdef NO_RUN
  nullptr,
#else
  run,
#endif
#ifdef NO_REFERENCE
  nullptr,
#else
  reference,
#endif
  teardown, error};
}
extern "C" WEIR_EXPORT int test_setups(void) { return setups; }
#ifndef NO_SYMBOL
extern "C" const WeirKernel* weir_kernel(void) { return &kKernel; }
#endif
)~~";

PackageFolder::PackageFolder() {
  std::string name = (fs::temp_directory_path() / "weir_package.XXXXXX").string();
  root_ = ::mkdtemp(name.data());
  path_ = root_ / "scale";
  fs::create_directory(path_);
}

PackageFolder::~PackageFolder() {
  std::error_code status;
  fs::remove_all(root_, status);
}

fs::path PackageFolder::write(const std::string& name, std::string_view text, bool is_executable) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  if (is_executable) fs::permissions(file, fs::perms::owner_all);
  return file;
}

package::Package PackageFolder::package(const std::string& file, std::vector<std::string> flags) const {
  package::Package package;
  package.name = "scale";
  package.folder = path_;
  const fs::path ending = fs::path(file).extension();
  const package::Form form = ending == ".cpp"   ? package::Form::host_source
                             : ending == ".cu"  ? package::Form::cuda_source
                             : ending == ".hip" ? package::Form::hip_source
                             : ending == ".cl"  ? package::Form::opencl_source
                             : ending == ".so"  ? package::Form::library
                                                : package::Form::executable;
  package.parts.push_back({form, path_ / file});
  flags.insert(flags.begin(), {"-O0", "-g0"});  // tests wait for the compiler more than for anything else
  package.config.compile_flags = std::move(flags);
  return package;
}

package::OpenOptions PackageFolder::options() const {
  package::OpenOptions options;
  options.cache = root_ / "cache";
  options.include = root_ / "include";
  return options;
}

std::vector<fs::path> PackageFolder::cached(const std::string& ending) const {
  std::vector<fs::path> found;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(root_ / "cache", status))
    if (entry.path().extension() == ending) found.push_back(entry.path());
  return found;
}

}  // namespace weir::testing
