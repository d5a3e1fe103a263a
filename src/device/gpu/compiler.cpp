#include "device/gpu/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/handle.h"
#include "base/vendor_library.h"
#include "device/compiler_log.h"
#include "device/gpu/cuda_toolkit.h"

namespace weir {
namespace {

using Program = struct ProgramHandle*;

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
  static constexpr const char *kCodeSize = "GetCUBINSize", *kCode = "GetCUBIN";
  static constexpr bool has_portable = true;
  static std::vector<std::string> places() {
    return toolkit_places(
        std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"});
  }
  static std::string target_option(const std::string& target) { return "--gpu-architecture=" + target; }
  // For sources that include cuda_fp16.h and the like; without a toolkit the compiler reports the missing header.
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
  static constexpr const char *kCodeSize = "GetCodeSize", *kCode = "GetCode";
  static constexpr bool has_portable = false;
  // A separate library since ROCm 5.3; part of the runtime before.
  static std::vector<std::string> places() {
    return library_places({"", "/opt/rocm/lib/"},
                          {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so", "libamdhip64.so.5"});
  }
  static std::string target_option(const std::string& target) { return "--offload-arch=" + target; }
  static std::vector<std::string> usual_options() { return {"-std=c++17", "-O3"}; }
};

// NVRTC and hipRTC share this ABI, and their entry names differ only in the prefix; they differ in where the code comes
// from. Declared here, because their headers may not be installed.
template <class Vendor>
struct Library : VendorLibrary {
  Library() : VendorLibrary(Vendor::places()) {}
  Symbol entry(const char* name) { return need((Vendor::kName + std::string(name)).c_str()); }
  Symbol portable_entry(const char* name) { return Vendor::has_portable ? entry(name) : Symbol{nullptr}; }

  int (*version)(int* major, int* minor) = entry("Version");
  int (*create)(Program* program, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names) = entry("CreateProgram");
  int (*destroy)(Program* program) = entry("DestroyProgram");
  int (*compile)(Program program, int count, const char* const* options) = entry("CompileProgram");
  int (*log_size)(Program program, std::size_t* size) = entry("GetProgramLogSize");
  int (*log)(Program program, char* text) = entry("GetProgramLog");
  int (*code_size)(Program program, std::size_t* size) = entry(Vendor::kCodeSize);  // machine code
  int (*code)(Program program, char* code) = entry(Vendor::kCode);
  int (*portable_size)(Program program, std::size_t* size) = portable_entry("GetPTXSize");  // null if not supported
  int (*portable)(Program program, char* code) = portable_entry("GetPTX");
  const char* (*error_string)(int) = entry("GetErrorString");
  int (*target_count)(int* count) = want("nvrtcGetNumSupportedArchs");
  int (*targets)(int* targets) = want("nvrtcGetSupportedArchs");
};

template <class Vendor>
class Compiler {
 public:
  static const GpuCompiler* open(std::string* reason) {
    static const Opened<GpuCompiler> kOpened(fill);
    return kOpened.get(reason);
  }

 private:
  static std::string fill(GpuCompiler& compiler) {
    library_ = new Library<Vendor>;
    const std::string title = fmt::format("{} ({})", Vendor::kTitle, library_->name());
    if (std::string reason = library_->shortfall(Vendor::kTitle, title); !reason.empty()) return reason;
    int major = 0, minor = 0, count = 0;
    if (const int result = library_->version(&major, &minor); result != 0)
      return fmt::format("{} does not start: error {}", title, result);
    if (library_->target_count != nullptr && library_->targets != nullptr && library_->target_count(&count) == 0) {
      targets_.resize(static_cast<std::size_t>(count));
      if (library_->targets(targets_.data()) != 0) targets_.clear();
    }
    version_ = fmt::format("{} {}.{}", Vendor::kTitle, major, minor);
    compiler = {Vendor::kName, version_, compile};
    return "";
  }

  static void check(int result, std::string_view action) {
    if (result != 0)
      fail(fmt::format("{}: {} failed: {} ({})", Vendor::kTitle, action, library_->error_string(result), result));
  }

  static std::string compile(const GpuSource& source, const std::string& architecture) {
    const Library<Vendor>& entries = *library_;
    std::vector<std::string> options = Vendor::usual_options();
    if (std::ranges::any_of(source.options, names_standard)) std::erase_if(options, names_standard);
    options.insert(options.end(), source.options.begin(), source.options.end());
    // The user's target takes precedence. PTX is requested for a virtual target, and if the compiler does not know the
    // device.
    std::string target = architecture;
    if (const auto named = std::ranges::find_if(options, names_target); named != options.end()) {
      target = *named;
    } else if (!target.empty()) {
      target = compile_target(architecture, targets_);
      if (target.empty())
        fail(fmt::format("{} compiles for newer devices than {} only", version_, architecture),
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
      reject(fmt::format("{} cannot compile {}: {}{}", version_, source.name, entries.error_string(result),
                         first_log_lines(log)),
             fmt::format("It was given: {}", fmt::join(options, " ")));
    }
    std::size_t size = 0;
    check(is_portable ? entries.portable_size(made, &size) : entries.code_size(made, &size), "asking for the code");
    std::string code(size, '\0');
    check(is_portable ? entries.portable(made, code.data()) : entries.code(made, code.data()), "asking for the code");
    return code;
  }

  // Written once, by fill().
  static inline const Library<Vendor>* library_ = nullptr;
  static inline std::vector<int> targets_;  // 90 for sm_90
  static inline std::string version_;
};

}  // namespace

const GpuCompiler* open_nvrtc(std::string* reason) { return Compiler<Nvrtc>::open(reason); }
const GpuCompiler* open_hiprtc(std::string* reason) { return Compiler<Hiprtc>::open(reason); }

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
