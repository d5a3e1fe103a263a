#include "base/file.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExists = "Use --force to replace it, or choose another name.";
constexpr std::size_t kMostNames = 1'000;  // looked at for a misspelt one
constexpr int kTries = 100;                // for a name that nobody has
constexpr int kWaitMs = 200;               // between looks at whether we were asked to stop
constexpr mode_t kMode = 0666;             // less the umask
constexpr std::size_t kPiece = std::size_t{1} << 20;

void stop_if_interrupted(const std::string& name) {
  if (first_interrupt() != 0)
    throw Error(static_cast<Fault>(kExitInterrupted), fmt::format("{}: interrupted while waiting for it", name));
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::string random_name(const fs::path& folder) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    fail(fmt::format("no random numbers: {}", std::strerror(errno)));
  return (folder / fmt::format(".weir-{:016x}.tmp", number)).string();
}

// /dev/stdout, /dev/fd/63 and the like stand for a descriptor that we have; -1 for any other name. Opening the name
// again would begin at the file's start, and fails for sockets.
int descriptor_named(const std::string& name) {
  if (name == "/dev/stdin") return STDIN_FILENO;
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(folder)) continue;
    int number = -1;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + folder.size(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return -1;
}

// Whether a file is written as it is instead of being replaced: a pipe or a device, not a link to one.
bool is_stream(const fs::path& path) {
  if (descriptor_named(path.string()) >= 0) return true;
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return false;
  if (S_ISSOCK(facts.st_mode) || S_ISBLK(facts.st_mode))
    reject(fmt::format("{}: is a {}, not a file", path.string(), S_ISSOCK(facts.st_mode) ? "socket" : "disk"),
           "Choose another name.");
  if (S_ISFIFO(facts.st_mode) && facts.st_uid != ::geteuid())
    reject(fmt::format("{}: is a pipe of another user", path.string()), "Choose another name.");
  return S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode);
}

// For a descriptor that we have. Another process may have made a shared pipe or terminal non-blocking, and writing all
// of a text would fail: opened again it blocks. Without O_NONBLOCK that would wait where the reader has gone.
Descriptor open_again(const fs::path& path, int own) {
  if (own == STDOUT_FILENO) flush_out();  // what was printed before comes first
  struct stat facts{};
  const int flags = ::fcntl(own, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0 && (flags & O_ACCMODE) != O_RDONLY && ::fstat(own, &facts) == 0 &&
      (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode))) {
    const std::string name = fmt::format("/proc/self/fd/{}", own);
    Descriptor again(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (again && ::fcntl(again.get(), F_SETFL, 0) == 0) return again;
  }
  Descriptor same(::fcntl(own, F_DUPFD_CLOEXEC, 0));
  if (!same) throw_file_error(path, "be opened", errno);
  return same;
}

// Waits for the reader of a pipe, for ever if need be, as a shell does.
Descriptor open_stream(const fs::path& path) {
  const std::string name = path.string();
  std::error_code status;
  if (const int own = descriptor_named(name); own >= 0) return open_again(path, own);
  while (true) {
    Descriptor file(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
    const int reason = errno;
    if (!file && (reason != ENXIO || !fs::is_fifo(path, status))) throw_file_error(path, "be opened", reason);
    if (file) {
      ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
      return file;
    }
    stop_if_interrupted(name);
    ::poll(nullptr, 0, kWaitMs);
  }
}

}  // namespace

std::string advice_for(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "Free some space, or name a file on another disk.";
    case EFBIG:
      return "Files may not be larger here: see `ulimit -f`, or use another disk.";
    case EMFILE:
      return "Allow more open files: `ulimit -n 1024`.";
    case EROFS:
    case EACCES:
    case EPERM:
      return "Choose a file or a folder that you have the right to use.";
    case ENOENT:
      return "Check the path.";
    case EPIPE:
      return "The program that reads it ended early.";
    default:
      return "";
  }
}

namespace {

// The name in the same folder that a misspelt one is nearest to.
std::string similar_name(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(path), ignored)) {
    if (names.size() == kMostNames) break;
    names.push_back(entry.path().filename().string());
  }
  const auto meant = nearest(path.filename().string(), names);
  if (!meant) return "Check the path: `ls` shows this folder.";
  return fmt::format("Did you mean '{}'?", path.has_parent_path() ? (path.parent_path() / *meant).string() : *meant);
}

}  // namespace

void throw_file_error(const fs::path& path, const std::string& doing, int reason) {
  const bool is_path = reason == ENOENT || reason == ENOTDIR || reason == EACCES || reason == EPERM ||
                       reason == EROFS || reason == EISDIR || reason == ELOOP || reason == ENAMETOOLONG ||
                       reason == EEXIST || reason == ENXIO || reason == EINVAL;
  throw Error(is_path ? Fault::input : Fault::run,
              fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(reason)),
              reason == ENOENT ? similar_name(path) : advice_for(reason));
}

// ---- Writing ----

void make_folders(const fs::path& folder) {
  std::error_code status;
  fs::create_directories(folder.empty() ? fs::path(".") : folder, status);
  if (status) throw_file_error(folder, "be created", status.value());
}

void check_writable(const fs::path& path, bool overwrite) {
  std::error_code status;
  if (path.empty()) reject("the name of a file is empty", "Name a file.");
  if (is_stream(path)) {
    if (descriptor_named(path.string()) < 0 && ::access(path.c_str(), W_OK) != 0)
      throw_file_error(path, "write", errno);
    return;
  }
  if (fs::is_directory(path, status)) reject(fmt::format("{}: is a folder", path.string()), "Name a file in it.");
  if (fs::exists(fs::symlink_status(path, status)) && !overwrite)
    reject(fmt::format("{}: already exists", path.string()), kExists);
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder, status))
    reject(fmt::format("{}: the folder {} does not exist", path.string(), folder.string()),
           fmt::format("Create it first: mkdir -p {}", folder.string()));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    reject(fmt::format("{}: cannot write into {}: {}", path.string(), folder.string(), std::strerror(errno)),
           advice_for(errno));
}

void write_file(const fs::path& path, std::string_view text, bool overwrite) {
  NewFile file(path, overwrite);
  file.write(text);
  file.sync();
  file.commit();
}

NewFile::NewFile(const fs::path& path, bool overwrite, Until until) : path_(path), overwrites_(overwrite) {
  check_writable(path, overwrite);
  is_stream_ = is_stream(path);
  if (is_stream_)
    file_ = open_stream(path);
  else
    open(until);
}

NewFile::~NewFile() {
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
}

void NewFile::remember(const std::string& temporary) {
  temporary_ = temporary;
  removed_.emplace(temporary_);
}

void NewFile::open(Until until) {
  const fs::path folder = folder_of(path_);
  // A file without a name gets one through /proc.
  if (until == Until::unnamed && ::access("/proc/self/fd", X_OK) == 0) {
    file_.reset(::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, kMode));
    if (file_) return;
  }
  for (int i = 0; i < kTries && !file_; ++i) {
    const std::string name = random_name(folder);
    file_.reset(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (file_) remember(name);
    if (!file_ && errno != EEXIST) break;
  }
  if (!file_) give_up("be written");
}

void NewFile::give_up(const char* doing) const { throw_file_error(path_, doing, errno); }

void NewFile::write(std::string_view text) {
  if (!write_all(file_.get(), text)) give_up("write");
}

void NewFile::sync() {
  // Some file systems do not have it.
  if (!is_stream_ && ::fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOSYS) give_up("write");
}

void NewFile::give_temporary_name() {
  const std::string own = fmt::format("/proc/self/fd/{}", file_.get());
  for (int i = 0; i < kTries; ++i) {
    const std::string name = random_name(folder_of(path_));
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return remember(name);
    }
    if (errno != EEXIST) break;
  }
  // A sandbox may forbid it. A finished run must not lose its result to that.
  const Descriptor unnamed(file_.release());
  open(Until::named);
  off_t offset = 0;
  for (ssize_t count = 1; count != 0;) {
    count = ::sendfile(file_.get(), unnamed.get(), &offset, kPiece);
    if (count < 0 && errno != EINTR) give_up("write");
  }
  sync();
}

void NewFile::commit() {
  if (!is_stream_ && temporary_.empty()) give_temporary_name();
  // Disks that are elsewhere report a full disk only here.
  if (::close(file_.release()) != 0 && errno != EINTR) give_up("write");
  if (is_stream_) return;
  // link() refuses an existing name atomically, unlike rename(); some file systems have no links.
  if (!overwrites_) {
    if (::link(temporary_.c_str(), path_.c_str()) == 0) return;  // the destructor removes the temporary name
    if (errno == EEXIST) reject(fmt::format("{}: already exists", path_.string()), kExists);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("be renamed");
  removed_.reset();
  temporary_.clear();
}

namespace {

std::string lock_of(const fs::path& path) {
  constexpr std::size_t kLongestName = 240;  // names have 255 bytes at most
  return (folder_of(path) / fmt::format(".{}.lock", path.filename().string().substr(0, kLongestName))).string();
}

}  // namespace

bool is_locked(const fs::path& path) noexcept {
  const Descriptor file = open_regular(lock_of(path), O_NOFOLLOW);
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FileLock::FileLock(const fs::path& path, int patience_ms) : name_(lock_of(path)) {
  while (true) {
    // Not O_RDONLY: a pipe in its place must not make us wait.
    file_.reset(::open(name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, kMode));
    struct stat ours{}, named{};
    if (!file_) throw_file_error(name_, "be opened", errno);
    if (::fstat(file_.get(), &ours) != 0 || !S_ISREG(ours.st_mode) || ours.st_nlink > 1)  // it is about to be emptied
      reject(fmt::format("{}: is not a file of its own", name_), "Remove it: it is in the way of a lock.");
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return;  // this file system has no locks
      if (patience_ms > 0) {
        patience_ms -= kWaitMs / 10;
        ::poll(nullptr, 0, kWaitMs / 10);
        continue;
      }
      std::string holder(20, '\0');
      holder.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(file_.get(), holder.data(), 20, 0))));
      holder.resize(std::min(holder.find_first_not_of("0123456789"), holder.size()));
      reject(fmt::format("{}: another weir{} is writing it", path.string(),
                         holder.empty() ? "" : fmt::format(" (process {})", holder)),
             "Wait until it ends, or choose another file.");
    }
    // Whoever held it may just have removed it.
    if (::stat(name_.c_str(), &named) == 0 && named.st_ino == ours.st_ino && named.st_dev == ours.st_dev) break;
  }
  removed_.emplace(name_);
  if (::ftruncate(file_.get(), 0) == 0) write_all(file_.get(), fmt::format("{}\n", ::getpid()));
}

FileLock::~FileLock() {
  ::unlink(name_.c_str());  // before the lock is released, so that nobody locks a file that is then removed
}

namespace {

// Pipes hold one document at most.
const fs::path& checked_to_save(const fs::path& path, bool overwrite) {
  check_writable(path, overwrite);
  if (is_stream(path))
    reject(fmt::format("{}: is not a file, and this is saved again and again", path.string()), "Name a file.");
  return path;
}

}  // namespace

SavedFile::SavedFile(const fs::path& path, bool overwrite)
    : path_(checked_to_save(path, overwrite)), overwrites_(overwrite), lock_(path) {}

void SavedFile::save(std::string_view text) {
  write_file(path_, text, overwrites_);
  overwrites_ = true;
}

Descriptor open_to_append(const fs::path& path, mode_t mode) {
  if (descriptor_named(path.string()) >= 0) return open_stream(path);
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Descriptor file(::open(path.c_str(), kFlags, mode));
  if (!file && errno == ENXIO) reject(fmt::format("{}: is a pipe that nobody reads", path.string()), "Name a file.");
  if (!file && errno == ELOOP) reject(fmt::format("{}: is a link", path.string()), "Name the file that it leads to.");
  if (!file) throw_file_error(path, "be opened", errno);
  struct stat facts{};
  if (::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode))
    ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return file;
}

Descriptor create_file(const fs::path& path, mode_t mode) {
  ::unlink(path.c_str());
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) throw_file_error(path, "be written", errno);
  return file;
}

// ---- Reading ----

Descriptor open_to_read(const fs::path& path) {
  const std::string name = path.string();
  const int own = descriptor_named(name);
  // O_NONBLOCK: a pipe opens at once, and read_some() waits for its writer.
  Descriptor file(own >= 0 ? ::fcntl(own, F_DUPFD_CLOEXEC, 0)
                           : ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) throw_file_error(path, "be read", errno);
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) throw_file_error(path, "be read", errno);
  if (S_ISDIR(facts.st_mode)) reject(fmt::format("{}: is a folder, not a file", name), "Name a file in it.");
  if (S_ISBLK(facts.st_mode)) reject(fmt::format("{}: is a disk, not a file", name), "Name a file.");
  return file;
}

std::size_t read_some(int file, char* to, std::size_t capacity, const std::string& name) {
  while (true) {
    pollfd ready{file, POLLIN, 0};
    const int found = ::poll(&ready, 1, kWaitMs);
    if (found < 0 && errno != EINTR) throw_file_error(name, "be read", errno);
    if (found <= 0) {
      // Not before: what is left to do after an interruption may read files.
      stop_if_interrupted(name);
      continue;
    }
    const ssize_t count = ::read(file, to, capacity);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) throw_file_error(name, "be read", errno);
  }
}

std::string read_file(const fs::path& path, std::uint64_t most) {
  const Descriptor file = open_to_read(path);
  const auto refuse = [&] {
    reject(fmt::format("{}: is larger than {} MiB, the limit for such a file", path.string(), most >> 20));
  };
  struct stat facts{};
  std::string text;
  if (::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)) {
    if (static_cast<std::uint64_t>(facts.st_size) > most) refuse();
    text.reserve(static_cast<std::size_t>(facts.st_size));
  }
  std::string piece(std::size_t{1} << 16, '\0');
  for (std::size_t count = 1; count > 0;) {
    count = read_some(file.get(), piece.data(), piece.size(), path.string());
    if (text.size() + count > most) refuse();
    text.append(piece, 0, count);
  }
  return text;
}

Descriptor open_regular(const fs::path& path, int more_flags) noexcept {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | more_flags));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) return {};
  if (S_ISREG(facts.st_mode)) return file;
  errno = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
  const int reason = errno;
  file.reset();
  errno = reason;
  return {};
}

std::string start_of_file(const fs::path& path, std::size_t most) {
  const Descriptor file = open_regular(path);
  std::string text;
  if (!file || most == 0 || !read_all(file.get(), text, most - 1)) return {};
  text.resize(std::min(text.size(), most));
  return text;
}

FilesInFolder files_in(const fs::path& folder, std::string_view ending) {
  FilesInFolder found;
  std::error_code status, ignored;
  for (fs::directory_iterator entry(folder, status); !status && entry != fs::directory_iterator();
       entry.increment(status)) {
    if (entry->path().extension() != ending || entry->is_directory(ignored)) continue;
    (entry->is_regular_file(ignored) ? found.files : found.skipped).push_back(entry->path());
  }
  if (status) throw_file_error(folder, "be read", status.value());
  std::sort(found.files.begin(), found.files.end());
  std::sort(found.skipped.begin(), found.skipped.end());
  return found;
}

// ---- The kernel's ----

Descriptor open_kernel_file(const std::string& path, int flags) noexcept {
  return Descriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY));
}

std::string read_kernel_file(const std::string& path, std::size_t most) {
  // O_NONBLOCK: tests and containers may have a pipe in its place.
  const Descriptor file = open_kernel_file(path, O_RDONLY | O_NONBLOCK);
  std::string text;
  if (!file || most == 0 || !read_all(file.get(), text, most - 1)) return {};
  text.resize(std::min(text.size(), most));
  return text;
}

}  // namespace weir
