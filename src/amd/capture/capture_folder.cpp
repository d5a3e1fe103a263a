#include "amd/capture/capture_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "amd/capture/manifest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/schemas.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kDeepest = 16;  // of an earlier capture; Weir's own are 9 levels deep

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};

// Names in an open folder, without "." and "..".
std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int own = ::openat(folder, ".", kFolderFlags);
  if (own < 0) return names;
  const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(own));
  if (!listing) {
    ::close(own);
    return names;
  }
  while (const dirent* const entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void remove_tree(int folder, const std::string& name, int depth) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || depth == 0) return;
  {
    const Descriptor below(::openat(folder, name.c_str(), kFolderFlags));
    if (below.get() < 0) return;
    for (const std::string& entry : names_in(below.get())) remove_tree(below.get(), entry, depth - 1);
  }
  ::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
}

std::uint64_t bytes_of(int folder, const std::string& name, int depth) {
  struct stat facts{};
  if (::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  if (S_ISREG(facts.st_mode)) return static_cast<std::uint64_t>(facts.st_size);
  if (!S_ISDIR(facts.st_mode) || depth == 0) return 0;
  const Descriptor below(::openat(folder, name.c_str(), kFolderFlags));
  if (below.get() < 0) return 0;
  std::uint64_t sum = 0;
  for (const std::string& entry : names_in(below.get())) sum += bytes_of(below.get(), entry, depth - 1);
  return sum;
}

// "a/b/" would follow a link that "a/b" does not.
std::string without_slashes(const fs::path& path) {
  std::string text = path.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// Whether another user may rename it: one who owns a folder above it, or can write there without the sticky bit.
bool can_be_moved(const fs::path& path) {
  for (fs::path above = path.parent_path();; above = above.parent_path()) {
    struct stat facts{};
    if (::stat(above.c_str(), &facts) != 0) return true;
    if (facts.st_uid != 0 && facts.st_uid != ::geteuid()) return true;
    if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (facts.st_mode & S_ISVTX) == 0) return true;
    if (above == above.parent_path()) return false;
  }
}

int open_folder(const std::string& name) {
  if (::mkdir(name.c_str(), 0700) != 0 && errno != EEXIST)
    reject(fmt::format("-o {}: {}", name, std::strerror(errno)),
           errno == ENOENT ? "Create the folder above it first." : "Choose a folder that you may write to.");
  const int folder = ::open(name.c_str(), kFolderFlags);
  if (folder < 0)
    reject(fmt::format("-o {}: {}", name,
                       errno == ENOTDIR || errno == ELOOP ? "is a file or a link, not a folder" : std::strerror(errno)),
           "Name a new folder.");
  return folder;
}

}  // namespace

CaptureFolder::CaptureFolder(const fs::path& path, bool is_forced) : folder_(open_folder(without_slashes(path))) {
  const std::string name = without_slashes(path);
  struct stat facts{};
  if (::fstat(folder_.get(), &facts) != 0) fail(fmt::format("-o {}: {}", name, std::strerror(errno)));
  if (facts.st_uid != ::geteuid())
    reject(fmt::format("-o {}: belongs to another user ({})", name, facts.st_uid),
           "Name a new folder: whoever owns it could lead our files elsewhere.");
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    reject(fmt::format("-o {}: others may write to it", name),
           fmt::format("chmod 0700 {}, or name a new folder.", name));
  if (!names_in(folder_.get()).empty()) {
    if (!is_forced)
      reject(fmt::format("-o {}: is not empty", name), "Use --force to replace a capture in it, or name a new folder.");
    remove_capture();
  }
  std::error_code status;
  path_ = fs::read_symlink(fmt::format("/proc/self/fd/{}", folder_.get()), status);
  if (status) path_ = fs::absolute(name);
}

fs::path CaptureFolder::steady_path() const {
  const std::string through = fmt::format("/proc/{}/fd/{}", ::getpid(), folder_.get());
  struct stat ours{}, theirs{};
  const bool is_there = ::fstat(folder_.get(), &ours) == 0 && ::stat((through + "/.").c_str(), &theirs) == 0 &&
                        ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
  return is_there && can_be_moved(path_) ? fs::path(through) : path_;
}

void CaptureFolder::remove_capture() {
  const Descriptor file(::openat(folder_.get(), kManifestFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string text(1U << 20, '\0');
  const ssize_t count = file.get() < 0 ? -1 : ::read(file.get(), text.data(), text.size());
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  // The beginning is enough: a truncated manifest still counts.
  if (text.find(schemas::amd_capture) == std::string::npos)
    reject("--force: the folder is not empty and holds no capture",
           "--force replaces captures and nothing else. Name a new folder.");
  for (const std::string& name : names_in(folder_.get()))
    if (name == "ftrace.txt" || name == "dmesg.txt" || name == "snapshots" || name == "profile.json" ||
        name == "result.json" || name == "smi.txt" || name.starts_with("log"))
      remove_tree(folder_.get(), name, kDeepest);
  remove_tree(folder_.get(), kManifestFile, 0);  // last, so that an interrupted removal can be repeated
}

int CaptureFolder::create(const std::string& name) {
  int parent = ::openat(folder_.get(), ".", kFolderFlags);
  for (std::size_t begin = 0; parent >= 0;) {
    const std::size_t slash = name.find('/', begin);
    const std::string part = name.substr(begin, slash == std::string::npos ? slash : slash - begin);
    int next = -1;
    if (slash == std::string::npos) {
      next = ::openat(parent, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    } else if (::mkdirat(parent, part.c_str(), 0700) == 0 || errno == EEXIST) {
      next = ::openat(parent, part.c_str(), kFolderFlags);
    }
    const int kept = errno;
    ::close(parent);
    errno = kept;
    if (slash == std::string::npos) return next;
    parent = next;
    begin = slash + 1;
  }
  return -1;
}

std::string CaptureFolder::write_problem(const std::string& name) {
  std::string problem = fmt::format("{}: {}", name, std::strerror(errno));
  if (failure_.empty()) failure_ = problem;
  return problem;
}

std::string CaptureFolder::write(const std::string& name, std::string_view text) {
  const Descriptor file(create(name));
  if (file.get() < 0 || !write_all(file.get(), text)) return write_problem(name);
  return "";
}

std::string CaptureFolder::replace(const std::string& name, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.tmp", name, ::getpid());
  ::unlinkat(folder_.get(), temporary.c_str(), 0);
  const Descriptor file(create(temporary));
  if (file.get() < 0 || !write_all(file.get(), text) || ::fsync(file.get()) != 0 ||
      ::renameat(folder_.get(), temporary.c_str(), folder_.get(), name.c_str()) != 0) {
    const std::string problem = write_problem(name);
    ::unlinkat(folder_.get(), temporary.c_str(), 0);
    return problem;
  }
  return "";
}

CaptureFolder::Copied CaptureFolder::copy(int from, const std::string& name, std::uint64_t most,
                                          const std::function<bool()>& is_stopped) {
  Copied copied;
  const Descriptor file(create(name));
  if (file.get() < 0) {
    copied.problem = write_problem(name);
    return copied;
  }
  copied.is_made = true;
  std::string part(1U << 20, '\0');
  for (;;) {
    if (is_stopped && is_stopped()) {
      copied.is_cut = true;
      return copied;
    }
    const ssize_t count = ::read(from, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) copied.problem = fmt::format("reading: {}", std::strerror(errno));
    if (count <= 0) return copied;
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(count), most - copied.bytes));
    if (!write_all(file.get(), std::string_view(part).substr(0, wanted))) {
      copied.problem = write_problem(name);
      return copied;
    }
    copied.bytes += wanted;
    if (wanted < static_cast<std::size_t>(count)) {
      copied.is_cut = true;
      return copied;
    }
  }
}

std::vector<std::string> CaptureFolder::files(const std::string& prefix) const {
  std::vector<std::string> names;
  for (std::string& name : names_in(folder_.get())) {
    struct stat facts{};
    // Names with control characters, which no manifest may contain, are not logs.
    if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }))
      continue;
    if (name.starts_with(prefix) && ::fstatat(folder_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(facts.st_mode))
      names.push_back(std::move(name));
  }
  return names;
}

std::uint64_t CaptureFolder::bytes(const std::string& name) const { return bytes_of(folder_.get(), name, kDeepest); }

}  // namespace weir::amd
