#include "device/cpu/region_code.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "base/stop.h"
#include "device/code_cache.h"
#include "device/compiler_log.h"
#include "kernel/region_source.h"

namespace weir::cpu {
namespace {

constexpr double kLimit_s = 60;
// Contraction is off, as in this program: results do not depend on whether the processor has fused instructions.
constexpr const char* kFlags[] = {"-std=c++17", "-O3", "-ffp-contract=off", "-fPIC", "-shared"};
constexpr const char* kInstall = "Install a C++ compiler, or name one in CXX.";

std::string machine() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

ProcessOptions limited(std::vector<std::string> command, const std::filesystem::path& folder) {
  ProcessOptions options;
  options.command = std::move(command);
  options.folder = folder;
  options.variables = {{"TMPDIR", folder.string()}};  // what a compiler that is stopped leaves goes with the folder
  options.first_bytes = 16 * 1024;
  options.core_bytes = 0;
  options.cpu_s = static_cast<std::uint64_t>(kLimit_s);
  options.memory_bytes = std::uint64_t{8} << 30;
  options.file_bytes = std::uint64_t{64} << 20;
  options.is_stopped = [] { return first_interrupt() != 0; };
  return options;
}

// Runs it to its end; throws with its output.
std::string run(std::vector<std::string> command, const std::filesystem::path& folder) {
  const std::string name = command.front();
  std::optional<Process> started;
  try {
    started.emplace(limited(std::move(command), folder));
  } catch (const Error& error) {
    fail(error.what(), error.hint.empty() ? kInstall : error.hint);
  }
  Process& process = *started;
  const ProcessEnd end = process.finish(kLimit_s);
  if (!end.is_success())
    fail(fmt::format("{} {}{}", name, end.words(kLimit_s), first_log_lines(process.output().text(), 4)),
         first_interrupt() != 0 ? "" : kInstall);
  return process.output().text();
}

// From memory, because folders may forbid code (noexec). Throws if it does not load.
void* open_library(std::string_view code, Descriptor& memory) {
  memory.reset(::memfd_create("weir_region", MFD_CLOEXEC));
  if (!memory || !write_all(memory.get(), code))
    fail(fmt::format("cannot hold a compiled region in memory: {}", std::strerror(errno)));
  void* const library = ::dlopen(fmt::format("/proc/self/fd/{}", memory.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(fmt::format("a compiled region cannot be loaded: {}", ::dlerror()));
  return library;
}

RegionFunction function_in(void* library) {
  void* const found = ::dlsym(library, kRegionEntry);
  if (found != nullptr) return reinterpret_cast<RegionFunction>(found);
  ::dlclose(library);
  fail("the compiled region has no function");
}

}  // namespace

RegionCode::~RegionCode() {
  for (const auto& [key, loaded] : loaded_) ::dlclose(loaded.library);
}

RegionFunction RegionCode::find_or_throw(const KernelShape& shape, Compilation& done) {
  const auto stop_early = [&] {
    if (first_interrupt() != 0) fail("interrupted");
    if (failure_) throw Error(*failure_);
  };
  if (version_.empty()) {
    stop_early();
    const PrivateFolder folder;
    // g++ (Debian 12.2.0-14) 12.2.0
    const std::string said = run({compiler_, "--version"}, folder.path());
    version_ = said.substr(0, said.find('\n'));
  }
  done.compiler = version_;
  const std::string source = region_source(shape, RegionLanguage::cpp);
  ContentHash hash;
  hash.add("cpu").add(machine()).add(compiler_).add(version_).add(source);
  std::vector<std::string> command = {compiler_};
  for (const char* const flag : kFlags) {
    hash.add(flag);
    command.emplace_back(flag);
  }
  const std::string key = hash.text();
  if (const auto known = loaded_.find(key); known != loaded_.end()) {
    ++done.from_memory;
    return known->second.function;
  }
  const auto load = [&](std::string_view code) {
    Loaded loaded;
    loaded.library = open_library(code, loaded.memory);
    const RegionFunction function = loaded.function = function_in(loaded.library);
    loaded_.emplace(key, std::move(loaded));
    return function;
  };
  if (const auto kept = kept_code(key)) {
    try {
      const RegionFunction function = load(*kept);
      ++done.from_disk;
      return function;
    } catch (const Error&) {
      // Compiled again, and replaced.
    }
  }
  stop_early();
  const PrivateFolder fresh;
  const std::filesystem::path input = fresh.path() / "region.cpp", output = fresh.path() / "compiled.so";
  write_file(input, source, true);
  command.insert(command.end(), {input.string(), "-o", output.string(), "-lm"});
  run(std::move(command), fresh.path());
  const std::string code = read_file(output);
  const RegionFunction function = load(code);
  keep_code(key, code);
  ++done.compiled;
  return function;
}

RegionFunction RegionCode::find(const KernelShape& shape, Compilation& done) {
  const std::lock_guard lock(mutex_);
  const std::int64_t began_ns = now_ns();
  ++done.regions;
  RegionFunction function = nullptr;
  try {
    function = find_or_throw(shape, done);
  } catch (const Error& error) {
    if (!failure_ && first_interrupt() == 0) failure_ = error;
    ++done.uncompiled;
    done.reason = error.what();
    done.hint = error.hint;
  }
  done.compile_ns = done.compile_ns.value_or(0) + (now_ns() - began_ns);
  return function;
}

}  // namespace weir::cpu
