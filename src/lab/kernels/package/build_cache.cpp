#include "lab/kernels/package/build_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "lab/kernels/package/build.h"

namespace weir::package {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 4096;
constexpr std::uintmax_t kMaxHashedBytes = std::uintmax_t{64} << 20;

std::optional<std::string> content_of(const fs::path& path) {
  const Descriptor file = open_regular(path);
  std::string text;
  if (!file || !read_all(file.get(), text, kMaxHashedBytes) || text.size() > kMaxHashedBytes) return std::nullopt;
  return text;
}

bool is_source(const fs::path& path) {
  static constexpr std::array<std::string_view, 22> kEndings = {
      ".c",   ".cc",  ".cpp", ".cxx", ".h",   ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp",
      ".tpp", ".def", ".cu",  ".cuh", ".hip", ".cl", ".clh", ".ixx", ".txt", ".tcc", ".impl"};
  return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
}

// A make rule as compilers write it with -MMD: "a.so: /p/kernel.cpp /q/with\ blank.h \" and further lines.
std::vector<std::string> prerequisites(const std::string& rule) {
  std::vector<std::string> paths;
  std::string path;
  const auto take = [&] {
    if (!path.empty()) paths.push_back(std::exchange(path, {}));
  };
  const std::size_t colon = rule.find(": ");
  for (std::size_t i = colon == std::string::npos ? rule.size() : colon + 1; i < rule.size(); ++i) {
    const char c = rule[i];
    if (c == '\\' && i + 1 < rule.size() && rule[i + 1] == '\n') {
      take();
      ++i;
    } else if (c == '\\' && i + 1 < rule.size() && (rule[i + 1] == ' ' || rule[i + 1] == '#')) {
      path += rule[++i];
    } else if (c == '$' && i + 1 < rule.size() && rule[i + 1] == '$') {
      path += rule[++i];
    } else if (c == ' ' || c == '\n' || c == '\t') {
      take();
    } else {
      path += c;
    }
  }
  take();
  return paths;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

void write_headers(const fs::path& folder) {
  make_private(folder, false);
  make_private(folder / "weir", false);
  for (const EmbeddedHeader& header : embedded_headers()) {
    const fs::path path = folder / "weir" / header.name;
    if (content_of(path) != std::string(header.text)) write_file(path, header.text, true);
  }
}

void add_sources(ContentHash& hash, const fs::path& folder) {
  std::vector<fs::path> files;
  std::uintmax_t bytes = 0;
  std::error_code status;
  auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, status);
  for (; !status && entry != fs::recursive_directory_iterator(); entry.increment(status)) {
    if (!is_source(entry->path()) || !entry->is_regular_file(status)) continue;
    bytes += entry->file_size(status);
    files.push_back(entry->path());
    if (files.size() > kMaxFiles || bytes > kMaxHashedBytes)
      reject(fmt::format("{}: has more than {} sources, or more than {} MiB of them", folder.string(), kMaxFiles,
                         kMaxHashedBytes >> 20),
             "A package is one kernel; put it into a folder of its own.");
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    hash.add(file.lexically_relative(folder).string()).add(content_of(file).value_or(""));
}

CacheEntry::CacheEntry(fs::path cache, const std::string& name, const std::string& key) {
  std::string stem;
  for (const char c : name.substr(0, 60)) stem += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  library_ = cache / fmt::format("{}-{}.so", stem, key);
  deps_ = cache / fmt::format("{}-{}.deps", stem, key);
  log_ = cache / fmt::format("{}-{}.log", stem, key);
}

// Each line: 0123456789abcdef0123456789abcdef /path/of/file
bool CacheEntry::is_fresh() const {
  if (::access(library_.c_str(), R_OK) != 0) return false;
  const auto list = content_of(deps_);
  if (!list) return false;
  std::istringstream lines(*list);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 34) return false;
    const auto content = content_of(line.substr(33));
    if (!content || ContentHash().add(*content).text() != line.substr(0, 32)) return false;
  }
  return true;
}

fs::path CacheEntry::unfinished() const { return library_.string() + fmt::format(".{}.tmp", ::getpid()); }
fs::path CacheEntry::unfinished_deps() const { return deps_.string() + fmt::format(".{}.tmp", ::getpid()); }

void CacheEntry::take(const fs::path& own) const {
  std::string list;
  for (const std::string& path : prerequisites(content_of(unfinished_deps()).value_or(""))) {
    const fs::path file = fs::absolute(path).lexically_normal();
    if (is_below(file, own)) continue;
    // A name with a line break cannot be listed, so the entry never counts as fresh.
    const auto content = content_of(file);
    list += file.string().find('\n') != std::string::npos || !content
                ? "?\n"
                : fmt::format("{} {}\n", ContentHash().add(*content).text(), file.string());
  }
  // The library first: if the process is stopped in between, a new library has an old list and is built again. An old
  // library with a new list would count as fresh.
  if (std::rename(unfinished().c_str(), library_.c_str()) != 0) {
    const std::string words = std::strerror(errno);
    discard();
    fail(fmt::format("{}: cannot be written: {}", library_.string(), words), "Is the disk full?");
  }
  discard();
  write_file(deps_, list, true);
}

void CacheEntry::discard() const {
  std::error_code status;
  fs::remove(unfinished(), status);
  fs::remove(unfinished_deps(), status);
}

}  // namespace weir::package
