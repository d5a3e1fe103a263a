#include "lab/kernels/package/discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "lab/kernels/package/dependency.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxFolders = 100'000;
constexpr std::size_t kMaxNotes = 100;
constexpr std::size_t kMaxNameBytes = 100;  // NAME.json must fit into a directory entry
constexpr std::size_t kConfigBytes = 512 << 10;
constexpr std::size_t kModuleBytes = 1 << 20;

constexpr std::string_view kSkippedFolders[] = {"node_modules", "build", "__pycache__"};
// Files beside a kernel that are no kernels, even if they are executable.
constexpr std::string_view kOtherEndings[] = {".h",    ".hpp", ".cuh", ".inl", ".md",  ".txt",  ".json",
                                              ".yaml", ".yml", ".o",   ".a",   ".d",   ".log",  ".bak",
                                              ".orig", ".ptx", ".spv", ".csv", ".pyc", ".cubin"};

std::string shown_path(const fs::path& path) { return printable(path_from_here(path).string(), 300); }

// The entries of a folder that matter.
struct Listing {
  std::vector<std::string> folders, links;
  std::vector<Part> parts;
  std::vector<std::string> libraries;    // *.so, except kernel.so
  std::vector<std::string> executables;  // kernel, kernel.py
  std::vector<std::string> others;       // kernel.py without its x bit, kernel.c
  std::vector<std::string> modules;      // *.py with run_benchmark()
  std::vector<std::string> scripts;      // other *.py, which may have the function that bench.yaml names
  bool has_config = false;
  bool has_misnamed_config = false;  // bench.yml

  bool is_package(bool is_inside_package) const {
    // Libraries beside a package's sources are linked by it; they are no packages.
    return has_config || has_misnamed_config || !parts.empty() || !executables.empty() || !others.empty() ||
           !modules.empty() || (libraries.size() == 1 && !is_inside_package);
  }
  // A folder that has a kernel of another form is that kernel's.
  bool is_python() const { return parts.empty() && executables.empty() && !(modules.empty() && scripts.empty()); }
};

// Whether a line begins with "def NAME(" or "NAME =".
bool defines(const fs::path& file, const std::string& function) {
  const std::string text = '\n' + file_beginning(file, kModuleBytes);
  for (const std::string& begin : {"\ndef " + function, '\n' + function})
    for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
      const std::size_t next = text.find_first_not_of(" \t", at + begin.size());
      if (next == std::string::npos) continue;
      if (begin.starts_with("\ndef ") ? text[next] == '(' : text[next] == '=' && text[next + 1] != '=') return true;
    }
  return false;
}

// What a module imports shows where it can run: import torch.
void look_at_module(Package& package, const fs::path& file) {
  constexpr std::pair<std::string_view, Backend> kLibraries[] = {
      {"jax", Backend::jax},     {"torch", Backend::pytorch}, {"cupy", Backend::cuda},     {"triton", Backend::cuda},
      {"pycuda", Backend::cuda}, {"numba", Backend::cpu},     {"tensorflow", Backend::cpu}};
  package.parts.push_back({Form::python, file});
  const std::vector<std::string> imports = python_imports(file_beginning(file, kModuleBytes));
  for (const auto& [library, backend] : kLibraries) {
    if (std::find(imports.begin(), imports.end(), library) == imports.end()) continue;
    if (!package.can_use_gpu) package.usual_backend = backend;
    package.can_use_gpu = true;
  }
}

void take_file(Listing& listing, const fs::path& file, const std::string& name) {
  if (name.ends_with(".py") && !name.starts_with("__") && !name.starts_with("test_")) {
    try {
      if (defines(file, kUsualFunction)) return listing.modules.push_back(name);
    } catch (const Error&) {
      // Without its text it is no module.
    }
    if (!name.starts_with("kernel")) return listing.scripts.push_back(name);
  }
  for (const Backend backend : kBackends)
    if (name == source_file_of(backend)) return listing.parts.push_back({source_of(backend), file});
  if (name == "kernel.so") {
    listing.parts.push_back({Form::library, file});
  } else if (name.ends_with(".so")) {
    listing.libraries.push_back(name);
  } else if (name == "kernel" || name.starts_with("kernel.")) {
    const bool is_other = std::any_of(std::begin(kOtherEndings), std::end(kOtherEndings),
                                      [&](std::string_view ending) { return name.ends_with(ending); });
    if (is_other || name.ends_with("~")) return;
    (::access(file.c_str(), X_OK) == 0 ? listing.executables : listing.others).push_back(name);
  }
}

void add_executable(Package& package, const Listing& listing) {
  if (listing.executables.size() > 1)
    reject(fmt::format("{} executables: {}", listing.executables.size(),
                       printable(fmt::format("{}", fmt::join(listing.executables, ", ")), 200)),
           "Keep one of them in the folder.");
  if (listing.executables.size() == 1) {
    const fs::path file = package.folder / listing.executables[0];
    interpreter_of(file);  // rejects a file that could never start
    package.parts.push_back({Form::executable, file});
  }
}
void add_library(Package& package, const Listing& listing) {
  if (listing.libraries.size() > 1)
    reject(fmt::format("{} libraries, and none is kernel.so", listing.libraries.size()),
           "Rename the one that holds the kernel to kernel.so.");
  if (listing.libraries.size() == 1) package.parts.push_back({Form::library, package.folder / listing.libraries[0]});
}
[[noreturn]] void refuse_empty(const Package& package, const Listing& listing) {
  constexpr const char* kForms =
      "kernel.cpp, kernel.cu, kernel.hip, kernel.cl, kernel.so, an executable kernel, or a Python module with "
      "run_benchmark()";
  if (listing.is_python() && listing.others.empty())
    reject(fmt::format("no kernel: no Python module of the folder defines {}()",
                       package.config.function_name.empty() ? kUsualFunction : package.config.function_name),
           "Define it at the beginning of a line, or name the function in bench.yaml: function_name.");
  if (listing.others.empty()) reject("no kernel: the folder has nothing that can run", fmt::format("Add {}.", kForms));
  const std::string name = printable(listing.others[0], 100);
  reject(fmt::format("{} is not executable, and no source that is built here", name),
         fmt::format("chmod +x {} where it is to be run as it is; else a package has {}.",
                     shown_path(package.folder / name), kForms));
}

// Reads one folder, or one Python module in it.
Package read_package(const fs::path& folder, const Listing& listing, const std::string& module = "") {
  Package package;
  package.folder = folder;
  package.parts = listing.parts;
  package.has_config = listing.has_config;
  try {
    if (!module.empty()) look_at_module(package, folder / module);
    add_executable(package, listing);
    if (package.parts.empty() && !listing.is_python()) add_library(package, listing);
    if (!listing.has_config && listing.has_misnamed_config) reject("bench.yml is not read", "Rename it to bench.yaml.");
    if (listing.has_config) {
      const fs::path file = folder / "bench.yaml";
      package.config = parse_config(file_beginning(file, kConfigBytes), shown_path(file), &package);
    }
    if (package.parts.empty()) refuse_empty(package, listing);
  } catch (const Error& error) {
    package.trouble = error.what();
    package.hint = error.hint;
  }
  package.dependencies = dependencies_of(package);
  return package;
}

// The packages of one folder: each Python module is one, and anything else is one together. Knows no other folder, so
// that several threads may call it.
std::vector<Package> read_packages(const fs::path& folder, const Listing& listing) {
  if (!listing.is_python()) return {read_package(folder, listing)};
  std::vector<std::string> modules = listing.modules;
  if (listing.has_config) try {
      const fs::path file = folder / "bench.yaml";
      const Config config = parse_config(file_beginning(file, kConfigBytes), shown_path(file));
      if (const std::string& function = config.function_name; !function.empty() && function != kUsualFunction) {
        modules.insert(modules.end(), listing.scripts.begin(), listing.scripts.end());
        std::erase_if(modules, [&](const std::string& name) { return !defines(folder / name, function); });
        std::sort(modules.begin(), modules.end());
      }
    } catch (const Error&) {
      // Each of its packages reports the error.
    }
  if (modules.empty()) return {read_package(folder, listing)};
  std::vector<Package> packages;
  for (const std::string& name : modules) {
    packages.push_back(read_package(folder, listing, name));
    // The only module of a folder has the folder's name, unless the folder is one for all kernels.
    if (modules.size() > 1 || folder.filename() == "kernels") packages.back().name = fs::path(name).stem().string();
  }
  return packages;
}

class Finder {
 public:
  void walk(const fs::path& root) {
    struct Pending {
      fs::path folder;
      int depth;
      bool is_inside;  // whether it is inside a package
    };
    std::vector<Pending> pending = {{root, 0, false}};
    while (!pending.empty()) {
      const Pending next = std::move(pending.back());
      pending.pop_back();
      if (!is_new(next.folder)) continue;
      const Listing listing = list(next.folder);
      for (const std::string& link : listing.links)
        note(
            fmt::format("{}: a link to a folder is not followed; name it with --path", shown_path(next.folder / link)));
      const bool is_package = listing.is_package(next.is_inside);
      if (is_package) candidates_.push_back({next.folder, listing});
      if (!listing.parts.empty() || !listing.executables.empty()) {
        for (const std::string& name : listing.modules)
          note(fmt::format("{}: the folder has a kernel of another form, so this module is not used",
                           shown_path(next.folder / name)));
        for (const std::string& name : listing.others)
          note(fmt::format("{}: it is not executable and no known source, so it is not used",
                           shown_path(next.folder / name)));
      }
      if (listing.libraries.size() > 1 && !is_package && !next.is_inside)
        note(fmt::format("{}: {} libraries and none is kernel.so, so it is not taken for a package",
                         shown_path(next.folder), listing.libraries.size()));
      if (next.depth == kMaxDepth) {
        if (!listing.folders.empty())
          note(fmt::format("{}: folders below it are too deep to be searched", shown_path(next.folder)));
        continue;
      }
      if (seen_.size() + pending.size() + listing.folders.size() > kMaxFolders)
        reject(fmt::format("{}: more than {} folders", shown_path(root), kMaxFolders),
               "Name the folders that hold kernels, not one far above them.");
      for (const std::string& name : listing.folders)
        pending.push_back({next.folder / name, next.depth + 1, is_package || next.is_inside});
    }
  }

  // yaml-cpp takes 0.4 ms for a file of 20 lines (Neoverse-V1 core, 2026-11), which is most of the time.
  Discovery finish() {
    if (dropped_notes_ > 0) notes_.push_back(fmt::format("{} more of these", dropped_notes_));
    std::vector<std::vector<Package>> packages(candidates_.size());
    std::atomic<std::size_t> next = 0;  // gives each index to one thread; results are visible after get()
    const auto read = [&] {
      for (std::size_t i = next++; i < packages.size(); i = next++)
        packages[i] = read_packages(candidates_[i].folder, candidates_[i].listing);
    };
    std::vector<std::future<void>> others;
    const std::size_t threads = std::min<std::size_t>(std::thread::hardware_concurrency(), packages.size() / 16);
    try {
      while (others.size() + 1 < threads) others.push_back(std::async(std::launch::async, read));
    } catch (const std::system_error&) {
      // No more threads: the others read the rest.
    }
    read();
    for (auto& other : others) other.get();
    Discovery found{{}, std::move(notes_)};
    for (std::vector<Package>& of_folder : packages)
      std::move(of_folder.begin(), of_folder.end(), std::back_inserter(found.packages));
    return found;
  }

 private:
  // Roots may be nested, and mounts may show a folder twice.
  bool is_new(const fs::path& folder) {
    struct stat facts{};
    if (::stat(folder.c_str(), &facts) != 0) return true;  // listing it will report the error
    return seen_.insert({facts.st_dev, facts.st_ino}).second;
  }
  void note(std::string text) {
    if (notes_.size() < kMaxNotes)
      notes_.push_back(std::move(text));
    else
      ++dropped_notes_;
  }

  Listing list(const fs::path& folder) {
    Listing listing;
    std::error_code status;
    fs::directory_iterator entry(folder, status);
    for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
      const std::string name = entry->path().filename().string();
      if (name.empty() || name[0] == '.') continue;
      std::error_code ignored;
      if (name == "bench.yaml") {
        listing.has_config = true;  // whatever it is: reading it will tell
      } else if (entry->is_directory(ignored)) {
        if (entry->is_symlink(ignored))
          listing.links.push_back(name);
        else if (std::find(std::begin(kSkippedFolders), std::end(kSkippedFolders), name) == std::end(kSkippedFolders))
          listing.folders.push_back(name);
      } else if (name == "bench.yml") {
        listing.has_misnamed_config = true;
      } else if (name.ends_with(".so") || name.ends_with(".py") || name.starts_with("kernel")) {
        // Pipes, sockets and dangling links are ignored.
        if (entry->is_regular_file(ignored)) take_file(listing, entry->path(), name);
      }
    }
    if (status) note(fmt::format("{}: cannot be read: {}", shown_path(folder), status.message()));
    // File systems list in arbitrary order; the last folder is taken first.
    for (auto* const names : {&listing.libraries, &listing.executables, &listing.others, &listing.links,
                              &listing.modules, &listing.scripts})
      std::sort(names->begin(), names->end());
    std::sort(listing.folders.rbegin(), listing.folders.rend());
    std::sort(listing.parts.begin(), listing.parts.end(), [](const Part& a, const Part& b) { return a.form < b.form; });
    return listing;
  }

  struct Candidate {
    fs::path folder;
    Listing listing;
  };
  std::vector<Candidate> candidates_;
  std::vector<std::string> notes_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::size_t dropped_notes_ = 0;
};

// Letters, digits, _ . and -; the name does not begin with - or a dot.
std::string safe_name(const std::string& text) {
  std::string name = text.substr(0, kMaxNameBytes);
  for (char& c : name)
    if (!is_letter(c) && !is_digit(c) && c != '.' && c != '-') c = '_';
  if (name.empty() || name[0] == '.' || name[0] == '-') name.insert(0, "_");
  return name;
}

// The last `count` parts of a path: a_softmax for 2.
std::string tail_name(const fs::path& folder, std::size_t count) {
  std::vector<std::string> parts;
  for (const fs::path& part : folder.relative_path()) parts.push_back(part.string());
  const std::size_t first = parts.size() - std::min(count, parts.size());
  return safe_name(fmt::format("{}", fmt::join(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end(), "_")));
}

void give_names(std::vector<Package>& packages) {
  constexpr std::size_t kMaxParts = 4;
  std::vector<std::size_t> parts(packages.size(), 1);
  std::vector<fs::path> paths;  // what they are named after
  for (const Package& package : packages)
    paths.push_back(package.name.empty() ? package.folder : package.folder / package.name);
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t level = 1;; ++level) {
    by_name.clear();
    for (std::size_t i = 0; i < packages.size(); ++i) {
      packages[i].name = tail_name(paths[i], parts[i]);
      by_name[packages[i].name].push_back(i);
    }
    if (by_name.size() == packages.size()) return;
    if (level == kMaxParts) break;
    for (const auto& [name, same] : by_name)
      if (same.size() > 1)
        for (const std::size_t i : same) ++parts[i];
  }
  // Names that are equal in four parts, or become equal by replacement, are numbered in the order of their folders.
  std::set<std::string> taken;
  for (const auto& [name, same] : by_name) taken.insert(name);
  for (const auto& [name, same] : by_name) {
    std::size_t number = 2;
    for (std::size_t k = 1; k < same.size(); ++k) {
      while (!taken.insert(fmt::format("{}_{}", name, number)).second) ++number;
      packages[same[k]].name = fmt::format("{}_{}", name, number);
    }
  }
}

}  // namespace

fs::path path_from_here(const fs::path& path) {
  std::error_code status;
  const fs::path here = fs::current_path(status);
  const fs::path near = status ? fs::path() : path.lexically_relative(here);
  return near.empty() || *near.begin() == ".." ? path : near;
}

Discovery discover(std::span<const fs::path> roots) {
  Finder finder;
  for (const fs::path& root : roots) {
    std::error_code status;
    if (!fs::exists(root, status)) reject(fmt::format("{}: no such folder", printable(root.string(), 300)));
    if (!fs::is_directory(root, status))
      reject(fmt::format("{}: this is not a folder", printable(root.string(), 300)),
             "Name the folder that the kernel is in.");
    fs::path folder = fs::absolute(root).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "kernels/"
    finder.walk(folder);
  }
  Discovery found = finder.finish();
  std::sort(found.packages.begin(), found.packages.end(), [](const Package& a, const Package& b) {
    return std::pair(a.folder.native(), a.name) < std::pair(b.folder.native(), b.name);
  });
  give_names(found.packages);
  std::sort(found.packages.begin(), found.packages.end(),
            [](const Package& a, const Package& b) { return a.name < b.name; });
  return found;
}

}  // namespace weir::package
