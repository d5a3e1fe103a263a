#include "lab/kernels/package/dependency.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/handle.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSourceBytes = 16 << 10;
constexpr std::size_t kCacheBytes = 16 << 20;  // limit for ld.so.cache, which has some 100 kB

// Prefixes of headers, and what must be installed for them.
constexpr std::pair<std::string_view, std::string_view> kHeaders[] = {
    {"omp.h", "OpenMP"},
    {"mpi.h", "MPI"},
    {"cblas", "BLAS"},
    {"lapacke.h", "LAPACK"},
    {"fftw3", "FFTW"},
    {"mkl", "MKL"},
    {"Eigen/", "Eigen"},
    {"tbb/", "TBB"},
    {"oneapi/tbb", "TBB"},
    {"cublas", "cuBLAS"},
    {"cufft", "cuFFT"},
    {"cusparse", "cuSPARSE"},
    {"cudnn", "cuDNN"},
    {"cub/", "CCCL"},
    {"thrust/", "CCCL"},
    {"cuda/", "CCCL"},
    {"cuda_", "CUDA"},
    {"cuda.h", "CUDA"},
    {"cooperative_groups", "CUDA"},
    {"mma.h", "CUDA"},
    {"hip/", "HIP"},
    {"rocblas", "rocBLAS"},
    {"rocfft", "rocFFT"},
    {"CL/", "OpenCL"},
};

constexpr std::string_view kPythonLibraries[] = {"numpy", "scipy",  "torch",  "jax",    "cupy",
                                                 "numba", "pandas", "triton", "pycuda", "tensorflow"};

void add(std::vector<Dependency>& found, std::string name, const std::string& needed_by) {
  const auto is_same = [&](const Dependency& each) { return each.name == name; };
  if (std::none_of(found.begin(), found.end(), is_same)) found.push_back({std::move(name), needed_by});
}

// #include <omp.h>
void add_headers(std::vector<Dependency>& found, std::string_view text, const std::string& file) {
  constexpr std::string_view kInclude = "include";
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    const std::size_t before = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
    if (at > 0 && before != std::string_view::npos && text[before] != '\n') continue;
    std::string_view rest = text.substr(at + 1, 200);
    const auto skip_blanks = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size())); };
    skip_blanks();
    if (!rest.starts_with(kInclude)) continue;
    rest.remove_prefix(kInclude.size());
    skip_blanks();
    if (!rest.starts_with("<") && !rest.starts_with("\"")) continue;
    rest.remove_prefix(1);
    for (const auto& [header, name] : kHeaders)
      if (rest.starts_with(header)) {
        add(found, std::string(name), file);
        break;
      }
  }
}

void add_compiler(std::vector<Dependency>& found, const Package& package, const Part& part, const std::string& file) {
  const bool is_ahead = package.config.compiler == Compiler::ahead;
  switch (part.form) {
    case Form::host_source:
      add(found, "a C++ compiler", file);
      break;
    case Form::cuda_source:
      add(found, is_ahead ? "nvcc" : "NVRTC", file);
      break;
    case Form::hip_source:
      add(found, is_ahead ? "hipcc" : "hipRTC", file);
      break;
    case Form::opencl_source:
      add(found, "OpenCL", file);
      break;
    case Form::python:
      return add(found, "python3", file);
    case Form::library:
    case Form::executable:
      return;
  }
  // The device source is then its own host part; nvcc and hipcc compile that too.
  if (package.find(Form::host_source) == nullptr && !(is_ahead && part.form != Form::opencl_source))
    add(found, "a C++ compiler", file);
}

// "a:b::c"; an empty folder would be the working one, which is never intended.
template <class Look>
bool any_folder(std::string_view path, const Look& look) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin && look(fs::path(path.substr(begin, end - begin)))) return true;
    begin = end + 1;
  }
  return false;
}

// Texts in the cache end with zero bytes; since 2.33 glibc keeps only paths, before that names too:
//   libz.so.1\0/lib/aarch64-linux-gnu/libz.so.1\0...
bool is_in_loader_cache(const std::string& library) {
  static const std::string kCache = [] {
    try {
      return file_beginning("/etc/ld.so.cache", kCacheBytes);
    } catch (const Error&) {
      return std::string();  // not all systems have one
    }
  }();
  return kCache.find('/' + library + '\0') != std::string::npos;
}

}  // namespace

std::string file_beginning(const fs::path& file, std::size_t most) {
  const std::string name = printable(file.string(), 300);
  const Descriptor descriptor = open_regular(file);
  if (!descriptor && (errno == EINVAL || errno == EISDIR)) reject(fmt::format("{}: not a file", name));
  std::string text;
  if (!descriptor || !read_all(descriptor.get(), text, most))
    reject(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  text.resize(std::min(text.size(), most));
  return text;
}

// #!/usr/bin/env python3
// #!/usr/bin/env -S python3 -u
// #! /bin/sh -e
std::string interpreter_of(const fs::path& executable) {
  const std::string text = file_beginning(executable, 256);
  if (text.starts_with("\x7f"
                       "ELF"))
    return {};
  const std::string name = printable(executable.filename().string(), 100);
  if (!text.starts_with("#!"))
    reject(fmt::format("{} is executable, but no program: it has no #! line", name),
           "Begin it with a line like #!/usr/bin/env python3.");
  std::string_view line = std::string_view(text).substr(2, text.find('\n') - 2);
  std::string program;
  while (program.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) break;
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    const std::string base = fs::path(word).filename().string();
    const bool is_variable = word.find('=') != std::string_view::npos;  // env A=1 python3
    if (base != "env" && !word.starts_with("-") && !is_variable) program = base;
  }
  if (program.empty())
    reject(fmt::format("{}: its #! line names no program", name), "Write a line like #!/usr/bin/env python3.");
  return printable(program, 64);
}

//   import numpy as np, torch
//   from jax.numpy import dot
std::vector<std::string> python_imports(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip_blanks();
    const bool is_from = line.starts_with("from ");
    if (!is_from && !line.starts_with("import ")) continue;
    line.remove_prefix(is_from ? 5 : 7);
    for (bool is_more = true; is_more;) {
      skip_blanks();
      const std::size_t length = std::min(line.find_first_of(" \t.,;#\r"), line.size());
      const std::string name(line.substr(0, length));
      if (is_identifier(name) && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
      const std::size_t comma = is_from ? std::string_view::npos : line.find(',');
      is_more = comma != std::string_view::npos;
      if (is_more) line.remove_prefix(comma + 1);
    }
  }
  return found;
}

std::vector<Dependency> dependencies_of(const Package& package) {
  std::vector<Dependency> found;
  for (const std::string& name : package.config.dependencies) add(found, name, "bench.yaml");
  for (const Part& part : package.parts) {
    const std::string file = printable(part.file.filename().string(), 100);
    try {
      add_compiler(found, package, part, file);
      if (part.form == Form::executable) {
        if (const std::string program = interpreter_of(part.file); !program.empty()) add(found, program, file);
      } else if (part.form == Form::python) {
        for (const std::string& name : python_imports(file_beginning(part.file, kSourceBytes)))
          if (std::find(std::begin(kPythonLibraries), std::end(kPythonLibraries), name) != std::end(kPythonLibraries))
            add(found, "Python's " + name, file);
      } else if (part.form != Form::library) {
        add_headers(found, file_beginning(part.file, kSourceBytes), file);
      }
    } catch (const Error&) {
      // Building or starting it will report the problem.
    }
  }
  for (const std::string& flag : package.config.compile_flags) {
    if (flag.starts_with("-l")) add(found, fmt::format("lib{}", flag.substr(2)), "compile_flags");
    if (flag == "-fopenmp") add(found, "OpenMP", "compile_flags");
  }
  return found;
}

std::vector<std::string> missing_dependencies(const Config& config, std::string_view program_path,
                                              std::string_view library_path) {
  constexpr std::string_view kLoaderFolders = "/lib:/usr/lib:/lib64:/usr/lib64:/usr/local/lib";
  std::vector<std::string> missing;
  for (const std::string& name : config.dependencies) {
    const bool is_library = name.starts_with("lib") && name.find(".so") != std::string::npos;
    const auto has_file = [&](const fs::path& folder) {
      std::error_code status;
      const fs::path file = folder / name;
      return fs::is_regular_file(file, status) && (is_library || ::access(file.c_str(), X_OK) == 0);
    };
    const bool is_there = is_library ? any_folder(library_path, has_file) || is_in_loader_cache(name) ||
                                           any_folder(kLoaderFolders, has_file)
                                     : any_folder(program_path, has_file);
    if (!is_there) missing.push_back(name);
  }
  return missing;
}

}  // namespace weir::package
