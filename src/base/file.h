// Files of the user and of this program: the one way to write them and the one way to read them. Others may be able to
// write to the same folder, disks are full, names lead to pipes: all of that is settled here. A test
// (tests/repo/files_test.cpp) fails where a file is opened by other means. Knows no format.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/stop.h"

namespace weir {

// ---- Writing ----
// An existing file is replaced, never changed; a link is replaced, never followed. Pipes and devices (/dev/stdout,
// >(gzip)) are written as they are: nothing is lost there, so they need no `overwrite`. The mode follows from the
// umask. Errors of the system (a full disk, a closed pipe) throw with their reason.

// Rejects a path that `write_file` could not write, before any work is done for it.
void check_writable(const std::filesystem::path& path, bool overwrite);

// Writes all of it or nothing, safe from a loss of power. With `overwrite` false an existing file is rejected.
void write_file(const std::filesystem::path& path, std::string_view text, bool overwrite);

// A file that is written piece by piece and has its name only when complete. Where the file system allows it the
// incomplete file has no name at all, so that not even SIGKILL leaves one; otherwise nobody can guess its name.
class NewFile {
 public:
  enum class Until { unnamed, named };  // `named` is for file systems without O_TMPFILE, and for their test
  NewFile(const std::filesystem::path& path, bool overwrite, Until until = Until::unnamed);
  // Without commit() no file remains.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const noexcept { return file_.get(); }
  void write(std::string_view text);
  // Throws the error for errno: for those who write to the descriptor themselves.
  [[noreturn]] void give_up(const char* doing) const;
  void sync();
  // Gives the file its name.
  void commit();

 private:
  void open(Until until);
  void give_temporary_name();
  void remember(const std::string& temporary);

  std::filesystem::path path_;
  bool overwrites_;
  bool is_stream_ = false;
  std::string temporary_;  // empty: none
  std::optional<RemovedWhenCut> removed_;
  Descriptor file_;
};

// Held while a file is written again and again, or read and then replaced. Rejects a file that another process holds
// for longer than we are willing to wait, by its number. The lock is a file beside it (".NAME.lock"), removed at the
// end; after a crash it no longer locks.
class FileLock {
 public:
  static constexpr int kPatienceMs = 100;  // is_locked() holds it for a moment, too
  explicit FileLock(const std::filesystem::path& path, int patience_ms = kPatienceMs);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string name_;
  std::optional<RemovedWhenCut> removed_;
  Descriptor file_;
};

// Whether a process, of whoever, holds the lock of a file.
bool is_locked(const std::filesystem::path& path) noexcept;

// A document that is saved while the work for it goes on. It is this process's alone until the end.
class SavedFile {
 public:
  // `overwrite` is about a file that exists already.
  SavedFile(const std::filesystem::path& path, bool overwrite);
  void save(std::string_view text);

 private:
  std::filesystem::path path_;
  bool overwrites_;
  FileLock lock_;
};

// Makes a folder and those above it; one that exists is fine.
void make_folders(const std::filesystem::path& folder);

// A log or a summary that grows, created if it does not exist. Rejects links, and never waits for the reader of a pipe.
Descriptor open_to_append(const std::filesystem::path& path, mode_t mode = 0600);

// A file in a folder that is ours or the user's, empty at first, and readable while it grows; an old one is removed.
Descriptor create_file(const std::filesystem::path& path, mode_t mode = 0600);

// ---- Reading ----
// What parsers hold in memory as a whole: a document may take 20 times its size there.
inline constexpr std::uint64_t kLargestDocument = std::uint64_t{256} << 20;

// All of a regular file, or of a pipe or a terminal that the user named. Rejects one that is missing, unreadable, a
// folder, or larger than `most`.
std::string read_file(const std::filesystem::path& path, std::uint64_t most = kLargestDocument);

// The same, piece by piece. Opening never waits for the writer of a pipe.
Descriptor open_to_read(const std::filesystem::path& path);
// The next bytes, 0 at the end. Waits for a pipe to have some; a signal that the program catches ends that by an error.
std::size_t read_some(int file, char* to, std::size_t capacity, const std::string& name);

// A regular file, and nothing else: for those that were found in a folder. Otherwise none, with errno.
Descriptor open_regular(const std::filesystem::path& path, int more_flags = 0) noexcept;
// The first bytes of a regular file; none where it is anything else, or cannot be read.
std::string start_of_file(const std::filesystem::path& path, std::size_t most);

// What a folder has of the files that end like this (".json"), in order. Links to files count; pipes, sockets and
// devices do not: opening them could wait for ever.
struct FilesInFolder {
  std::vector<std::filesystem::path> files, skipped;
};
FilesInFolder files_in(const std::filesystem::path& folder, std::string_view ending);

// ---- The kernel's ----
// A file of /proc, /sys, tracefs or /dev, which is never created; otherwise none, with errno.
Descriptor open_kernel_file(const std::string& path, int flags = O_RDONLY) noexcept;
// All of a file of /proc or /sys; cut at `most`, empty where it cannot be read, then with errno.
std::string read_kernel_file(const std::string& path, std::size_t most = std::size_t{8} << 20);

// ---- Errors ----
// Throws what the user needs to know about a file: exit 2 for a path that cannot be right, otherwise exit 1.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, const std::string& doing, int reason);
// What can be done about an error of the system; empty where we do not know.
std::string advice_for(int reason);

}  // namespace weir
