// Chooses the part of a package that serves a backend, and opens it. Knows no backend's internals.
#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/compile_flags.h"

namespace weir::package {
namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 20;

std::string read_source(const Package& package, const Part& part) {
  const Descriptor file = open_regular(part.file);
  std::string text;
  if (!file || !read_all(file.get(), text, kMaxSourceBytes))
    reject(fmt::format("{}: {} cannot be read", package.name, part.file.string()));
  if (text.size() > kMaxSourceBytes)
    reject(fmt::format("{}: {} has more than {} MiB", package.name, part.file.string(), kMaxSourceBytes >> 20));
  return text;
}

std::shared_ptr<const HostPart> open_host(const Package& package, const std::filesystem::path& library,
                                          Backend backend) {
  auto part = std::make_shared<const HostPart>(library, package.name);
  // Checked before anything runs: a result named "cuda" must not come from a kernel that does not support it.
  if ((part->table().backends & bit_of(backend)) == 0)
    reject(fmt::format("{}: the kernel says that it does not serve {}", package.name, name_of(backend)),
           "Add the backend to the table of weir_kernel(), or leave it out of backends in bench.yaml.");
  return part;
}

// Opens a device source with its host part: kernel.cpp, or else the same file.
std::unique_ptr<OpenPackage> open_source(const Package& package, const Part& part, Backend backend,
                                         const OpenOptions& options) {
  if (backend == Backend::cpu)
    return open_cpu(open_host(package, build_host_part(package, part, options), backend), options);
  if (package.config.compiler == Compiler::ahead && backend != Backend::opencl) {
    DeviceSource none;
    none.name = part.file.filename().string();
    none.built_by = backend == Backend::cuda ? "nvcc" : "hipcc";
    return open_gpu(open_host(package, build_ahead(package, part, options), backend), backend, std::move(none),
                    options);
  }
  const Part* const beside = package.find(Form::host_source);
  auto host = open_host(package, build_host_part(package, beside != nullptr ? *beside : part, options), backend);
  DeviceSource source;
  source.name = part.file.string();
  source.text = read_source(package, part);
  source.flags = flags_for(part.form, false, package.config.compile_flags, package.folder);
  return backend == Backend::opencl ? open_opencl(std::move(host), std::move(source), options)
                                    : open_gpu(std::move(host), backend, std::move(source), options);
}

std::unique_ptr<OpenPackage> open_library(const Package& package, const Part& part, Backend backend,
                                          const OpenOptions& options) {
  auto host = open_host(package, part.file, backend);
  if (backend == Backend::cpu) return open_cpu(std::move(host), options, "library");
  DeviceSource none;
  none.name = part.file.filename().string();
  none.built_by = "library";
  return backend == Backend::opencl ? open_opencl(std::move(host), std::move(none), options)
                                    : open_gpu(std::move(host), backend, std::move(none), options);
}

}  // namespace

std::unique_ptr<OpenPackage> open_package(const Package& package, Backend backend, const OpenOptions& options) {
  if (!package.trouble.empty()) reject(fmt::format("{}: {}", package.name, package.trouble), package.hint);
  if (package.find(Form::python) != nullptr) return open_python(package, backend, options);
  if (const Part* part = package.find(source_of(backend))) return open_source(package, *part, backend, options);
  if (const Part* part = package.find(Form::library)) return open_library(package, *part, backend, options);
  if (package.find(Form::executable) != nullptr) return open_executable(package, options);
  reject(fmt::format("{}: has nothing for {}", package.name, name_of(backend)),
         fmt::format("Add {}, a library kernel.so or an executable.", source_file_of(backend)));
}

}  // namespace weir::package
