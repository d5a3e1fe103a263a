#include "lab/kernels/package/host_part.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/options.h"

namespace weir::package {
namespace {

constexpr std::uint32_t kMaxTableParameters = 256;
constexpr std::uint32_t kMaxTableValues = 1024;
constexpr std::size_t kLongestWords = 2000;

void require(bool is_there, const std::string& name, const char* function) {
  if (!is_there)
    reject(fmt::format("{}: the table of weir_kernel() has no {}()", name, function),
           "setup, run and teardown must be there; fill, reference and error may be null.");
}

// For a name without a slash, dlopen() would search the system's folders.
std::string path_of(const std::filesystem::path& library) { return std::filesystem::absolute(library).string(); }

void reject_other_file(const std::filesystem::path& library, const std::string& name) {
  if (start_of_file(library, 4) != "\177ELF")
    reject(fmt::format("{}: {} is not a shared object", name, library.string()),
           "Build it with -shared -fPIC for this machine.");
}

}  // namespace

Problem complete_problem(const std::string& kernel, Problem defaults, const Problem& wanted) {
  std::vector<std::string> names;
  for (const Setting& setting : defaults) names.push_back(setting.name);
  for (const Setting& setting : wanted) {
    const auto found = std::find(names.begin(), names.end(), setting.name);
    if (found == names.end())
      reject(fmt::format("{}: the kernel has no parameter '{}'", kernel, setting.name),
             names.empty() ? "It has none at all." : suggestion(setting.name, names));
    Setting& own = defaults[static_cast<std::size_t>(found - names.begin())];
    if (own.values.size() != setting.values.size())
      reject(fmt::format("{}: parameter '{}' takes {} value{}, not {}", kernel, setting.name, own.values.size(),
                         own.values.size() == 1 ? "" : "s", setting.values.size()));
    own.values = setting.values;
  }
  return defaults;
}

HostPart::HostPart(const std::filesystem::path& library, std::string name) : name_(std::move(name)) {
  reject_other_file(library, name_);
  void* const handle = ::dlopen(path_of(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const words = ::dlerror();
    reject(fmt::format("{}: cannot open {}: {}", name_, library.string(), printable(words, kLongestWords)),
           "A symbol that is not found is a function without a body, or a library that is not linked.");
  }
  using Entry = const WeirKernel* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(handle, "weir_kernel"));
  if (entry == nullptr)
    reject(fmt::format("{}: {} exports no function weir_kernel", name_, library.string()),
           "Define: extern \"C\" WEIR_EXPORT const WeirKernel* weir_kernel(void), as weir/kernel.h declares it.");
  try {
    table_ = entry();
  } catch (...) {
    fail_with_exception("weir_kernel");
  }
  if (table_ == nullptr) reject(fmt::format("{}: weir_kernel() returned null", name_));
  // abi comes first and stays there, whatever else changes.
  if (table_->abi != WEIR_KERNEL_ABI)
    reject(fmt::format("{}: {} has version {} of the kernel interface, this program has version {}", name_,
                       library.string(), table_->abi, WEIR_KERNEL_ABI),
           "Build it again with this version's weir/kernel.h.");
  if (table_->size < sizeof(WeirKernel))
    reject(fmt::format("{}: the table of weir_kernel() says that it has {} bytes, version {} has {}", name_,
                       table_->size, WEIR_KERNEL_ABI, sizeof(WeirKernel)),
           "Set size to sizeof(WeirKernel).");
  require(table_->setup != nullptr, name_, "setup");
  require(table_->run != nullptr, name_, "run");
  require(table_->teardown != nullptr, name_, "teardown");
  if ((table_->backends & kBackendBits) == 0) reject(fmt::format("{}: the table names no backend", name_));
  if ((table_->precisions & kPrecisionBits) == 0) reject(fmt::format("{}: the table names no precision", name_));
  if (table_->parameter_count > kMaxTableParameters || (table_->parameter_count > 0 && table_->parameters == nullptr))
    reject(fmt::format("{}: the table has {} parameters{}", name_, table_->parameter_count,
                       table_->parameters == nullptr ? ", but a null pointer to them" : ""),
           fmt::format("At most {} are taken.", kMaxTableParameters));
  for (std::uint32_t i = 0; i < table_->parameter_count; ++i) {
    const WeirParameter& parameter = table_->parameters[i];
    if (!is_name(parameter.name)) reject(fmt::format("{}: parameter {} has no name of printable characters", name_, i));
    if (parameter.count == 0 || parameter.count > kMaxTableValues || parameter.values == nullptr)
      reject(fmt::format("{}: parameter '{}' has {} default values{}", name_, parameter.name, parameter.count,
                         parameter.values == nullptr ? " and a null pointer to them" : ""),
             "Each parameter has a default, which bench.yaml may override.");
    if (!std::all_of(parameter.values, parameter.values + parameter.count, [](double v) { return std::isfinite(v); }))
      reject(fmt::format("{}: parameter '{}' has a default that is not a number", name_, parameter.name));
  }
}

Problem HostPart::defaults() const {
  Problem problem;
  for (std::uint32_t i = 0; i < table_->parameter_count; ++i) {
    const WeirParameter& parameter = table_->parameters[i];
    problem.push_back({parameter.name, {parameter.values, parameter.values + parameter.count}});
  }
  return problem;
}

void HostPart::fail_with(const char* function, int result) const {
  std::string words;
  if (table_->error != nullptr) words = printable(table_->error(), kLongestWords);
  fail(fmt::format("{}: {}() failed with {}{}{}", name_, function, result, words.empty() ? "" : ": ", words),
       words.empty() ? "The kernel says no more; a function error() in its table could." : "");
}

void HostPart::fail_with_exception(const char* function) const {
  std::string words = "something that is not a std::exception";
  try {
    throw;
  } catch (const std::exception& error) {
    words = printable(error.what(), kLongestWords);
  } catch (...) {
  }
  fail(fmt::format("{}: {}() threw {}", name_, function, words),
       "Functions of the table return 0 or an error number; catch what C++ throws.");
}

}  // namespace weir::package
