#include "lab/kernels/package/build.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/stop.h"
#include "lab/kernels/package/build_cache.h"
#include "lab/kernels/package/compile_flags.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

namespace fs = std::filesystem;

// One way to build: compiler, flags, and a hint if the compiler is missing.
struct Recipe {
  std::string compiler;
  std::vector<std::string> flags;  // the package's own flags win: nvcc refuses a second -O, -std or -arch
  std::string missing_hint;
  bool is_plain = false;  // a C++ compiler that does not know the file extensions of GPU sources
};

std::vector<std::string> all_flags(const Recipe& recipe, const Package& package, const Part& part) {
  const Form form = recipe.is_plain ? Form::host_source : part.form;
  const std::vector<std::string> own = flags_for(form, !recipe.is_plain, package.config.compile_flags, package.folder);
  std::vector<std::string> flags;
  for (const std::string& flag : recipe.flags) {
    const bool is_replaced = std::any_of(own.begin(), own.end(), [&](const std::string& other) {
      return (flag.starts_with("-std=") && other.starts_with("-std=")) ||
             (flag.starts_with("-O") && other.starts_with("-O")) ||
             (flag.starts_with("-arch=") && other.starts_with("--gpu-architecture="));
    });
    if (!is_replaced) flags.push_back(flag);
  }
  flags.insert(flags.end(), own.begin(), own.end());
  return flags;
}

Process start(std::vector<std::string> command, const Recipe& recipe, const Package& package,
              const OpenOptions& options) {
  ProcessOptions wanted;
  wanted.command = std::move(command);
  wanted.folder = package.folder;
  wanted.first_bytes = 64 * 1024;
  wanted.core_bytes = 0;
  wanted.cpu_s = static_cast<std::uint64_t>(std::ceil(options.compile_limit_s)) + 60;  // the wall-clock limit applies
                                                                                       // first
  wanted.memory_bytes = std::uint64_t{64} << 30;
  wanted.file_bytes = std::uint64_t{2} << 30;
  wanted.is_stopped = options.is_stopped;
  try {
    return Process(std::move(wanted));
  } catch (const StartError& error) {
    fail(fmt::format("{}: {}", package.name, error.what()), error.is_missing ? recipe.missing_hint : "");
  }
}

// A compiler of the same name may change with the system, so its version is part of the key.
std::string version_of(const Recipe& recipe, const Package& package, const OpenOptions& options) {
  Process process = start({recipe.compiler, "--version"}, recipe, package, options);
  const ProcessEnd end = process.finish(options.compile_limit_s);
  if (!end.is_success())
    fail(fmt::format("{}: {} --version {}", package.name, recipe.compiler, end.words(options.compile_limit_s)),
         process.output().text());
  return process.output().text();
}

// What "native" in a flag means on this machine.
std::string machine_of() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  std::string text = host;
  std::istringstream file(read_kernel_file("/proc/cpuinfo"));
  for (std::string line; std::getline(file, line) && !line.empty();)
    if (line.find("MHz") == std::string::npos && line.find("MIPS") == std::string::npos) text += line + '\n';
  std::error_code status;
  for (const auto& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", status)) {
    std::istringstream facts(read_kernel_file(gpu.path() / "information"));
    if (std::string line; std::getline(facts, line)) text += line + '\n';  // Model: NVIDIA H200
  }
  for (const auto& node : fs::directory_iterator("/sys/class/kfd/kfd/topology/nodes", status)) {
    std::istringstream facts(read_kernel_file(node.path() / "properties"));
    for (std::string line; std::getline(facts, line);)
      if (line.starts_with("gfx_target_version")) text += line + '\n';  // gfx_target_version 90010
  }
  return text;
}

// The first line that names an error, without the package's folder:
//   /p/kernel.cpp:12:5: error: 'x' was not declared in this scope      (gcc, clang, hipcc)
//   /p/kernel.cu(12): error: identifier "x" is undefined               (nvcc)
//   /usr/bin/ld: /tmp/cc1.o: in function `run': /p/kernel.cpp:12: undefined reference to `x'
std::string first_error(const std::string& output, const fs::path& folder) {
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    const bool is_error = line.find(" error: ") != std::string::npos || line.find(" error C") != std::string::npos ||
                          line.find("undefined reference") != std::string::npos ||
                          line.find("cannot find -l") != std::string::npos;
    if (is_error) {
      first = line;
      break;
    }
    if (first.empty() && !line.empty()) first = line;
  }
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = first.find(prefix); at != std::string::npos; at = first.find(prefix, at))
    first.erase(at, prefix.size());
  return printable(first, 500);
}

fs::path build(const Package& package, const Part& part, const Recipe& recipe, const OpenOptions& options) {
  make_private(options.cache, true);
  write_headers(options.include);
  const fs::path folder = fs::absolute(package.folder).lexically_normal();
  const fs::path include = fs::absolute(options.include).lexically_normal();
  const fs::path input = fs::absolute(part.file).lexically_normal();

  ContentHash hash;
  hash.add(recipe.compiler).add(version_of(recipe, package, options));
  hash.add(folder.string()).add(input.filename().string());  // they appear in messages, debug information and __FILE__
  const std::vector<std::string> flags = all_flags(recipe, package, part);
  bool is_native = !recipe.is_plain;  // code for the GPUs of this machine
  for (const std::string& flag : flags) {
    hash.add(flag);
    is_native |= flag.find("native") != std::string::npos;
  }
  if (is_native) hash.add(machine_of());
  for (const EmbeddedHeader& header : embedded_headers()) hash.add(header.name).add(header.text);
  const std::string facts = hash.text();
  const auto key_now = [&] {
    ContentHash sources;
    add_sources(sources.add(facts), folder);
    return sources.text();
  };
  const std::string key = key_now();

  const CacheEntry entry(fs::absolute(options.cache), package.name, key);
  if (entry.is_fresh()) return entry.library();

  std::vector<std::string> command = {recipe.compiler};
  // The linker uses libraries only for what precedes them.
  const auto is_library = [](const std::string& flag) { return flag.starts_with("-l"); };
  std::remove_copy_if(flags.begin(), flags.end(), std::back_inserter(command), is_library);
  command.insert(command.end(), {"-I" + include.string(), "-I" + folder.string()});
  command.insert(command.end(), {"-MMD", "-MF", entry.unfinished_deps().string()});
  if (recipe.is_plain) command.insert(command.end(), {"-x", "c++"});
  command.push_back(input.string());
  if (recipe.is_plain) command.insert(command.end(), {"-x", "none"});
  command.insert(command.end(), {"-o", entry.unfinished().string()});
  std::copy_if(flags.begin(), flags.end(), std::back_inserter(command), is_library);
  command.emplace_back("-lm");
  if (recipe.is_plain) command.emplace_back("-pthread");

  const RemovedWhenCut library(entry.unfinished()), dependencies(entry.unfinished_deps());
  Process process = start(std::move(command), recipe, package, options);
  const ProcessEnd end = process.finish(options.compile_limit_s);
  const std::string output = process.output().text();
  if (end.is_success()) {
    // Otherwise the library of a later text would be stored under the key of an earlier one, for ever.
    if (key_now() != key) {
      entry.discard();
      fail(fmt::format("{}: its sources changed while they were built", package.name), "Run it again.");
    }
    entry.take(include);
    return entry.library();
  }
  entry.discard();
  std::string hint;
  if (!output.empty()) {
    write_file(entry.log(), output + "\n", true);
    hint = fmt::format("All that the compiler said is in {}.", entry.log().string());
  }
  const std::string error = first_error(output, folder);
  if (end.how == ProcessEnd::How::exited && !error.empty())
    throw BuildError(Fault::input, fmt::format("{}: {}", package.name, error), hint, output);
  throw BuildError(Fault::run,
                   fmt::format("{}: {} {} while it built {}", package.name, recipe.compiler,
                               end.words(options.compile_limit_s), input.filename().string()),
                   hint, output);
}

}  // namespace

fs::path build_host_part(const Package& package, const Part& part, const OpenOptions& options) {
  const Recipe recipe = {options.compiler,
                         {"-std=c++20", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden"},
                         "Install g++ or clang, or set CXX to a C++ compiler.",
                         true};
  return build(package, part, recipe, options);
}

fs::path build_ahead(const Package& package, const Part& part, const OpenOptions& options) {
  if (part.form == Form::cuda_source)
    return build(package, part,
                 {"nvcc",
                  {"-std=c++17", "-O3", "-arch=native", "-shared", "-Xcompiler", "-fPIC"},
                  "Install the CUDA toolkit and put nvcc into PATH, or set compiler: runtime in bench.yaml."},
                 options);
  if (part.form == Form::hip_source)
    return build(package, part,
                 {"hipcc",
                  {"-std=c++17", "-O3", "-shared", "-fPIC"},  // without --offload-arch it detects the GPUs
                  "Install ROCm and put hipcc into PATH, or set compiler: runtime in bench.yaml."},
                 options);
  reject(fmt::format("{}: {} cannot be compiled ahead", package.name, part.file.filename().string()),
         "compiler: ahead is for kernel.cu and kernel.hip.");
}

}  // namespace weir::package
