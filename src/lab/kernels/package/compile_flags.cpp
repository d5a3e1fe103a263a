#include "lab/kernels/package/compile_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/plain_text.h"
#include "base/yaml.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

constexpr std::size_t kLongestFlag = 200;
constexpr const char* kAllowed =
    "Allowed are -O*, -D*, -U*, -std=*, -march=, -mcpu=, -mtune=, -m*, -l*, -I* below the package's folder, -g, "
    "-pthread "
    "and -f* that change code (-ffast-math, -funroll-loops, ...); for CUDA --use_fast_math, --fmad=, --maxrregcount=, "
    "--gpu-architecture=sm_*; for OpenCL -cl-*.";

// Flags of -f that change only the generated code; those with a value include the =. Not allowed: -fplugin and
// -fpass-plugin (run code in the compiler), -fprofile-use (reads files), -fdump (writes them), -fuse-ld, and -fsanitize
// (the library could not be opened).
constexpr std::string_view kCodeFlags[] = {
    "-faggressive-loop-optimizations",
    "-falign-functions=",
    "-falign-loops=",
    "-fassociative-math",
    "-fcx-limited-range",
    "-fexceptions",
    "-fexcess-precision=",
    "-ffast-math",
    "-ffinite-math-only",
    "-ffp-contract=",
    "-finline-functions",
    "-finline-limit=",
    "-fipa-pta",
    "-fivopts",
    "-floop-interchange",
    "-floop-unroll-and-jam",
    "-fmath-errno",
    "-fmodulo-sched",
    "-fomit-frame-pointer",
    "-fopenmp",
    "-fopenmp-simd",
    "-fpeel-loops",
    "-fprefetch-loop-arrays",
    "-freciprocal-math",
    "-frename-registers",
    "-frounding-math",
    "-fschedule-insns",
    "-fsigned-zeros",
    "-fslp-vectorize",
    "-fsplit-loops",
    "-fstrict-aliasing",
    "-ftrapping-math",
    "-ftree-loop-vectorize",
    "-ftree-slp-vectorize",
    "-ftree-vectorize",
    "-funroll-all-loops",
    "-funroll-loops",
    "-funsafe-math-optimizations",
    "-funswitch-loops",
    "-fvect-cost-model=",
    "-fvectorize",
    "-fwrapv",
};

// The characters allowed in values of -march= and names of libraries.
bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-';
  });
}
bool is_whole(std::string_view text) {
  return !text.empty() && text.size() < 6 && std::all_of(text.begin(), text.end(), is_digit);
}

// The text after `prefix`; nothing if the flag does not begin with it.
std::optional<std::string_view> after(std::string_view flag, std::string_view prefix) {
  if (!flag.starts_with(prefix)) return std::nullopt;
  return flag.substr(prefix.size());
}

// -DNAME, -DNAME=VALUE, -UNAME
bool is_macro(std::string_view flag) {
  const auto rest = after(flag, "-D") ? after(flag, "-D") : after(flag, "-U");
  if (!rest) return false;
  const std::string_view name = rest->substr(0, flag.starts_with("-D") ? rest->find('=') : std::string_view::npos);
  if (!is_identifier(name)) return false;
  // WEIR_HOST_CODE and similar macros decide which half of a source is compiled.
  if (name.starts_with("WEIR_") || name.starts_with("__"))
    reject(fmt::format("'{}': such names belong to the harness and to compilers", shown(flag)),
           "Choose one that begins neither with WEIR_ nor with two underscores.");
  return true;
}

// -Iinclude, -I.
bool is_include(std::string_view flag) {
  const auto rest = after(flag, "-I");
  if (!rest || rest->empty()) return false;
  const std::filesystem::path path(*rest);
  const bool leaves =
      path.is_absolute() || std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
  if (leaves)
    reject(fmt::format("'{}' leads out of the package's folder", shown(flag)),
           "Put the headers into the folder, or a link to them.");
  return true;
}

// avx2, prefer-vector-width=512
bool is_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  return is_plain(text.substr(0, equals)) && (equals == std::string_view::npos || is_plain(text.substr(equals + 1)));
}

// -march=native, -mavx2; but -mllvm and -mmlir pass options to clang's internals, which can load plugins.
bool is_machine(std::string_view flag) {
  const auto rest = after(flag, "-m");
  return rest && !rest->starts_with("llvm") && !rest->starts_with("mlir") && is_setting(*rest);
}

// -ffast-math, -fno-math-errno, -ffp-contract=fast
bool is_code(std::string_view flag) {
  std::string positive(flag);
  if (const auto rest = after(flag, "-fno-")) positive = fmt::format("-f{}", *rest);
  const std::size_t equals = positive.find('=');
  const std::string_view wanted =
      std::string_view(positive).substr(0, equals == std::string::npos ? equals : equals + 1);
  if (std::find(std::begin(kCodeFlags), std::end(kCodeFlags), wanted) == std::end(kCodeFlags)) return false;
  return equals == std::string::npos || is_plain(std::string_view(positive).substr(equals + 1));
}

// -O3
bool is_level(std::string_view flag) {
  constexpr std::string_view kLevels[] = {"-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-Oz", "-Ofast"};
  return std::find(std::begin(kLevels), std::end(kLevels), flag) != std::end(kLevels);
}
bool is_plain_after(std::string_view flag, std::string_view prefix) {
  const auto rest = after(flag, prefix);
  return rest && is_plain(*rest);
}
bool is_standard(std::string_view flag) { return is_plain_after(flag, "-std="); }
bool is_library(std::string_view flag) { return is_plain_after(flag, "-l"); }

// --use_fast_math, --fmad=false, --maxrregcount=64, --gpu-architecture=sm_90a
bool is_nvidia(std::string_view flag) {
  const auto registers = after(flag, "--maxrregcount="), target = after(flag, "--gpu-architecture=");
  if (target) return target->starts_with("sm_") && is_plain(*target);
  return flag == "--use_fast_math" || flag == "--fmad=true" || flag == "--fmad=false" ||
         (registers && is_whole(*registers));
}
// -cl-fast-relaxed-math, -cl-std=CL3.0
bool is_opencl(std::string_view flag) {
  const auto rest = after(flag, "-cl-");
  return rest && is_setting(*rest);
}

}  // namespace

void check_compile_flag(std::string_view flag) {
  if (flag.size() > kLongestFlag)
    reject(fmt::format("a flag of {} characters", flag.size()), fmt::format("{} at most.", kLongestFlag));
  // OpenCL takes all flags as one text, separated by blanks.
  const bool is_printable = std::all_of(flag.begin(), flag.end(), [](char c) { return c > ' ' && c < 127; });
  const bool is_allowed = is_printable && (is_level(flag) || is_macro(flag) || is_standard(flag) || is_opencl(flag) ||
                                           is_machine(flag) || is_code(flag) || is_library(flag) || is_include(flag) ||
                                           is_nvidia(flag) || flag == "-g" || flag == "-pthread");
  if (is_allowed) return;
  if (flag.starts_with("-L"))
    reject(fmt::format("'{}' is not allowed", shown(flag)),
           "Install the library where the system finds it, and name it in dependencies.");
  if (flag.find(' ') != std::string_view::npos && flag.starts_with("-"))
    reject(fmt::format("'{}' is not one flag", shown(flag)), "Write each as an item of its own: [-O3, -DNAME=1].");
  reject(fmt::format("the flag '{}' is not allowed", shown(flag)), kAllowed);
}

std::vector<std::string> flags_for(Form source, bool is_ahead, const std::vector<std::string>& flags,
                                   const std::filesystem::path& folder) {
  std::vector<std::string> chosen;
  for (const std::string& flag : flags) {
    if (flag.starts_with("-I")) {
      chosen.push_back("-I" + (std::filesystem::absolute(folder) / flag.substr(2)).lexically_normal().string());
      continue;
    }
    const bool is_vendor = is_nvidia(flag) || is_opencl(flag);
    bool is_taken = flag.starts_with("-D");
    switch (source) {
      case Form::host_source:
        is_taken = !is_vendor;
        break;
      case Form::cuda_source:
        is_taken |= flag.starts_with("-U") || is_standard(flag) || is_nvidia(flag) ||
                    (is_ahead && (is_level(flag) || is_library(flag) || flag == "-g"));
        // nvcc must be told to pass the rest to the host compiler.
        if (is_ahead && !is_taken && !is_vendor) {
          chosen.insert(chosen.end(), {"-Xcompiler", flag});
          continue;
        }
        break;
      case Form::hip_source:
        is_taken |= flag.starts_with("-U") || is_standard(flag) || is_level(flag) || is_code(flag);
        if (is_ahead) is_taken = !is_vendor;
        break;
      case Form::opencl_source:
        is_taken |= is_opencl(flag);
        break;
      default:
        is_taken = false;
    }
    if (is_taken) chosen.push_back(flag);
  }
  return chosen;
}

}  // namespace weir::package
