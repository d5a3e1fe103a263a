#include "device/gpu/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/handle.h"
#include "device/compiler_log.h"
#include "device/gpu/cuda_toolkit.h"
#include "device/vendor_library.h"

namespace weir {
namespace {

using Program = struct ProgramHandle*;

// NVRTC and hipRTC share this ABI; what differs is where the code comes from. Declared here: a machine that compiles
// this need not have their headers.
struct Entries {
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(Program* program, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*destroy)(Program* program) = nullptr;
  int (*compile)(Program program, int count, const char* const* options) = nullptr;
  int (*log_size)(Program program, std::size_t* size) = nullptr;
  int (*log)(Program program, char* text) = nullptr;
  int (*code_size)(Program program, std::size_t* size) = nullptr;  // machine code
  int (*code)(Program program, char* code) = nullptr;
  int (*portable_size)(Program program, std::size_t* size) = nullptr;  // PTX; null where there is none
  int (*portable)(Program program, char* code) = nullptr;
  int (*target_count)(int* count) = nullptr;  // optional
  int (*targets)(int* targets) = nullptr;     // optional
  const char* (*error_string)(int) = nullptr;
};

struct Close {
  int (*destroy)(Program*) = nullptr;
  void operator()(Program program) const noexcept { destroy(&program); }
};
using ProgramOwner = Handle<Program, Close>;

bool names_target(const std::string& option) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"--gpu-architecture", "-arch", "--offload-arch"},
                             [&](std::string_view known) { return option.starts_with(known); });
}

bool names_standard(const std::string& option) { return option.starts_with("-std=") || option.starts_with("--std="); }

struct Nvrtc {
  static constexpr const char* kName = "nvrtc";
  static constexpr const char* kTitle = "NVRTC";
  static std::vector<std::string> places() {
    return toolkit_places(
        std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"});
  }
  static void bind(VendorLibrary& library, Entries& entries) {
    library.need(entries.version, "nvrtcVersion");
    library.need(entries.create, "nvrtcCreateProgram");
    library.need(entries.destroy, "nvrtcDestroyProgram");
    library.need(entries.compile, "nvrtcCompileProgram");
    library.need(entries.log_size, "nvrtcGetProgramLogSize");
    library.need(entries.log, "nvrtcGetProgramLog");
    library.need(entries.code_size, "nvrtcGetCUBINSize");
    library.need(entries.code, "nvrtcGetCUBIN");
    library.need(entries.portable_size, "nvrtcGetPTXSize");
    library.need(entries.portable, "nvrtcGetPTX");
    library.need(entries.error_string, "nvrtcGetErrorString");
    library.want(entries.target_count, "nvrtcGetNumSupportedArchs");
    library.want(entries.targets, "nvrtcGetSupportedArchs");
  }
  static std::string target_option(const std::string& target) { return "--gpu-architecture=" + target; }
  // For sources that include cuda_fp16.h and the like; where there is no toolkit they fail by that name.
  static std::vector<std::string> usual_options() {
    std::vector<std::string> options = {"--std=c++17"};
    if (const auto headers = toolkit_headers(); !headers.empty())
      options.push_back("--include-path=" + headers.string());
    return options;
  }
};

struct Hiprtc {
  static constexpr const char* kName = "hiprtc";
  static constexpr const char* kTitle = "hipRTC";
  // A library of its own since ROCm 5.3; before, a part of the runtime.
  static std::vector<std::string> places() {
    std::vector<std::string> names;
    for (const char* folder : {"", "/opt/rocm/lib/"})
      for (const char* name :
           {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so", "libamdhip64.so.5"})
        names.push_back(std::string(folder) + name);
    return names;
  }
  static void bind(VendorLibrary& library, Entries& entries) {
    library.need(entries.version, "hiprtcVersion");
    library.need(entries.create, "hiprtcCreateProgram");
    library.need(entries.destroy, "hiprtcDestroyProgram");
    library.need(entries.compile, "hiprtcCompileProgram");
    library.need(entries.log_size, "hiprtcGetProgramLogSize");
    library.need(entries.log, "hiprtcGetProgramLog");
    library.need(entries.code_size, "hiprtcGetCodeSize");
    library.need(entries.code, "hiprtcGetCode");
    library.need(entries.error_string, "hiprtcGetErrorString");
  }
  static std::string target_option(const std::string& target) { return "--offload-arch=" + target; }
  static std::vector<std::string> usual_options() { return {"-std=c++17", "-O3"}; }
};

template <class Vendor>
struct Opened {
  Opened() {
    VendorLibrary library(Vendor::places());
    if (!library.is_open()) {
      reason = fmt::format("{} was not found: {}", Vendor::kTitle, library.error());
      return;
    }
    Vendor::bind(library, entries);
    if (!library.missing().empty()) {
      reason = fmt::format("{} ({}) lacks {}", Vendor::kTitle, library.name(), library.missing());
      return;
    }
    int major = 0, minor = 0;
    if (const int result = entries.version(&major, &minor); result != 0) {
      reason = fmt::format("{} ({}) does not start: error {}", Vendor::kTitle, library.name(), result);
      return;
    }
    int count = 0;
    if (entries.target_count != nullptr && entries.targets != nullptr && entries.target_count(&count) == 0) {
      targets.resize(static_cast<std::size_t>(count));
      if (entries.targets(targets.data()) != 0) targets.clear();
    }
    compiler = {Vendor::kName, fmt::format("{} {}.{}", Vendor::kTitle, major, minor), compile};
    is_complete = true;
  }

  static const Opened& get() {
    static const Opened opened;
    return opened;
  }

  static void check(int result, std::string_view action) {
    if (result != 0)
      fail(fmt::format("{}: {} failed: {} ({})", Vendor::kTitle, action, get().entries.error_string(result), result));
  }

  static std::string compile(const GpuSource& source, const std::string& architecture) {
    const Opened& opened = get();
    const Entries& entries = opened.entries;
    std::vector<std::string> options = Vendor::usual_options();
    if (std::ranges::any_of(source.options, names_standard)) std::erase_if(options, names_standard);
    options.insert(options.end(), source.options.begin(), source.options.end());
    // A target that the user names wins. PTX is asked for where it is none of real machines, and where the compiler
    // does not know the device.
    std::string target = architecture;
    if (const auto named = std::ranges::find_if(options, names_target); named != options.end()) {
      target = *named;
    } else if (!target.empty()) {
      target = compile_target(architecture, opened.targets);
      if (target.empty())
        fail(fmt::format("{} compiles for newer devices than {} only", opened.compiler.version, architecture),
             "Install an older version of it beside the new one, or build ahead: `compiler: ahead` in bench.yaml.");
      options.push_back(Vendor::target_option(target));
    }
    const bool is_portable = entries.portable != nullptr && target.find("compute_") != std::string::npos;

    std::vector<const char*> texts, names, words;
    for (const auto& [name, text] : source.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    for (const std::string& option : options) words.push_back(option.c_str());
    Program made = nullptr;
    check(entries.create(&made, source.text.c_str(), source.name.c_str(), static_cast<int>(names.size()), texts.data(),
                         names.data()),
          "taking " + source.name);
    const ProgramOwner program(made, {entries.destroy});
    if (const int result = entries.compile(made, static_cast<int>(words.size()), words.data()); result != 0) {
      std::size_t size = 0;
      std::string log;
      if (entries.log_size(made, &size) == 0 && size > 0) {
        log.resize(size);
        if (entries.log(made, log.data()) != 0) log.clear();
      }
      reject(fmt::format("{} cannot compile {}: {}{}", opened.compiler.version, source.name,
                         entries.error_string(result), first_complaints(log)),
             fmt::format("It was given: {}", fmt::join(options, " ")));
    }
    std::size_t size = 0;
    check(is_portable ? entries.portable_size(made, &size) : entries.code_size(made, &size), "asking for the code");
    std::string code(size, '\0');
    check(is_portable ? entries.portable(made, code.data()) : entries.code(made, code.data()), "asking for the code");
    return code;
  }

  Entries entries;
  std::vector<int> targets;  // 90 for sm_90
  GpuCompiler compiler;
  std::string reason;
  bool is_complete = false;
};

template <class Vendor>
const GpuCompiler* open_compiler(std::string* reason) {
  const Opened<Vendor>& opened = Opened<Vendor>::get();
  if (opened.is_complete) return &opened.compiler;
  if (reason != nullptr) *reason = opened.reason;
  return nullptr;
}

}  // namespace

const GpuCompiler* open_nvrtc(std::string* reason) { return open_compiler<Nvrtc>(reason); }
const GpuCompiler* open_hiprtc(std::string* reason) { return open_compiler<Hiprtc>(reason); }

std::string compile_target(const std::string& architecture, const std::vector<int>& known) {
  // sm_90
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (known.empty() || !architecture.starts_with(kPrefix)) return architecture;
  const char* const end = architecture.data() + architecture.size();
  if (std::from_chars(architecture.data() + kPrefix.size(), end, number).ptr != end) return architecture;
  if (std::ranges::find(known, number) != known.end()) return architecture;
  int best = 0;
  for (const int each : known)
    if (each < number) best = std::max(best, each);
  return best == 0 ? "" : fmt::format("compute_{}", best);
}

}  // namespace weir
