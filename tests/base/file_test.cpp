// The one writer and the one reader of files, among links, pipes, full disks and other processes.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "base/console.h"
#include "base/error.h"
#include "support/message_of.h"
#include "support/programs.h"
#include "support/text.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using testing::Folder;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

int fault_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return static_cast<int>(error.fault);
  }
  return 0;
}

constexpr NewFile::Until kBoth[] = {NewFile::Until::unnamed, NewFile::Until::named};

// The limit of a resource, lowered for a moment.
class Limited {
 public:
  Limited(__rlimit_resource what, rlim_t value) : what_(what) {
    ::getrlimit(what, &before_);
    const rlimit lower{value, before_.rlim_max};
    ::setrlimit(what, &lower);
  }
  ~Limited() { ::setrlimit(what_, &before_); }

 private:
  __rlimit_resource what_;
  rlimit before_{};
};

TEST(NewFile, PlantedNamesLeadNowhere) {
  const Folder folder;
  const std::string path = folder / "result.json", temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  put_file(folder / "victim", "theirs");
  fs::create_symlink(folder / "victim", temporary);
  write_file(path, "ours", false);
  EXPECT_EQ(content(folder / "victim"), "theirs") << "the name of the temporary file can be guessed";
  EXPECT_EQ(content(path), "ours");
  EXPECT_TRUE(fs::is_symlink(temporary)) << "what others put there stays";
  // A file of somebody else in that place must not become the result.
  fs::remove(temporary);
  put_file(temporary, "");
  ::chmod(temporary.c_str(), 0666);
  struct stat planted{}, result{};
  ASSERT_EQ(::stat(temporary.c_str(), &planted), 0);
  write_file(path, "again", true);
  ASSERT_EQ(::stat(path.c_str(), &result), 0);
  EXPECT_NE(planted.st_ino, result.st_ino);
}

TEST(NewFile, LinksAreReplacedAndNeverFollowed) {
  const Folder folder;
  put_file(folder / "victim", "theirs");
  fs::create_symlink(folder / "victim", folder / "link");
  fs::create_symlink(folder / "absent", folder / "dangling");
  for (const char* name : {"link", "dangling"}) {
    EXPECT_TRUE(has(message_of([&] { write_file(folder / name, "ours", false); }), "already exists")) << name;
    write_file(folder / name, "ours", true);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / name))) << name;
  }
  EXPECT_EQ(content(folder / "victim"), "theirs");
  EXPECT_FALSE(fs::exists(folder / "absent"));
}

TEST(NewFile, ModeFollowsTheUmask) {
  const Folder folder;
  for (const NewFile::Until until : kBoth)
    for (const mode_t mask : {mode_t{077}, mode_t{022}, mode_t{002}}) {
      const mode_t before = ::umask(mask);
      NewFile file(folder / "file", true, until);
      file.commit();
      ::umask(before);
      struct stat facts{};
      ASSERT_EQ(::stat((folder / "file").c_str(), &facts), 0);
      EXPECT_EQ(facts.st_mode & 07777U, 0666U & ~mask);
    }
}

TEST(NewFile, IsCompleteOrNotThere) {
  const Folder folder;
  for (const NewFile::Until until : kBoth) {
    {
      NewFile file(folder / "file", false, until);
      file.write("half");
      EXPECT_FALSE(fs::exists(folder / "file"));
    }
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{}) << "an incomplete file was left";
    {
      NewFile file(folder / "file", false, until);
      file.write("whole");
      put_file(folder / "file", "somebody was faster");
      EXPECT_TRUE(has(message_of([&] { file.commit(); }), "already exists"));
    }
    EXPECT_EQ(content(folder / "file"), "somebody was faster");
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"file"});
    NewFile file(folder / "file", true, until);
    file.write("replaced");
    file.sync();
    file.commit();
    EXPECT_EQ(content(folder / "file"), "replaced");
    fs::remove(folder / "file");
  }
}

TEST(NewFile, EndedProcessesLeaveNothing) {
  const Folder folder;
  for (const NewFile::Until until : kBoth) {
    const pid_t child = ::fork();
    if (child == 0) {
      const FileLock lock(folder / "file");
      NewFile file(folder / "file", false, until);
      file.write("half");
      catch_interrupts();
      for (int i = 0; i < 3; ++i) ::raise(SIGTERM);
    }
    EXPECT_EQ(testing::wait_for(child), 128 + SIGTERM);
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{});
  }
}

TEST(NewFile, FullDisksHaveAReasonAndLeaveNothing) {
  const std::string told = message_of([] { write_file("/dev/full", "much", false); });
  EXPECT_TRUE(has(told, "No space left on device")) << told;
  EXPECT_TRUE(has(told, "Free some space")) << told;
  EXPECT_EQ(fault_of([] { write_file("/dev/full", "much", true); }), 1);
  EXPECT_TRUE(fs::is_character_file("/dev/full")) << "a device was replaced";

  const Folder folder;
  put_file(folder / "old", "kept");
  for (const NewFile::Until until : kBoth) {
    std::signal(SIGXFSZ, SIG_IGN);  // as main() does
    const Limited size(RLIMIT_FSIZE, 4096);
    const auto write = [&] {
      NewFile file(folder / "old", true, until);
      file.write(std::string(1 << 20, 'x'));
      file.commit();
    };
    EXPECT_EQ(fault_of(write), 1);
    const std::string reason = message_of(write);
    EXPECT_TRUE(has(reason, "File too large")) << reason;
  }
  EXPECT_EQ(content(folder / "old"), "kept");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"old"});
}

TEST(NewFile, TooManyOpenFilesAreNotTheUsersMistake) {
  const Folder folder;
  const Descriptor next(::dup(STDERR_FILENO));
  const Limited files(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()) + 1);
  const auto write = [&] { write_file(folder / "file", "text", false); };
  EXPECT_TRUE(has(message_of(write), "Too many open files"));
  EXPECT_TRUE(has(message_of(write), "ulimit -n"));
  EXPECT_EQ(fault_of(write), 1);
  EXPECT_EQ(fault_of([&] { read_file("/etc/passwd"); }), 1);
}

TEST(NewFile, PathsThatCannotBeAreTheUsersMistake) {
  const Folder folder;
  put_file(folder / "file", "");
  for (const std::string& path : {folder / "absent/file", folder / "file/below", folder.path().string(), std::string(),
                                  folder / std::string(300, 'x')})
    EXPECT_EQ(fault_of([&] { write_file(path, "text", true); }), 2) << path;
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ::chmod(folder.path().c_str(), 0500);
  EXPECT_EQ(fault_of([&] { write_file(folder / "new", "text", true); }), 2);
  ::chmod(folder.path().c_str(), 0700);
}

TEST(NewFile, LongNamesHaveTemporaryOnes) {
  const Folder folder;
  const std::string path = folder / std::string(255, 'x');
  write_file(path, "text", false);
  EXPECT_EQ(content(path), "text");
  const FileLock lock(path);
}

TEST(NewFile, PipesAndDevicesStayWhatTheyAre) {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_file(pipe); });
  write_file(pipe, "for a pipe", false);
  reader.join();
  EXPECT_EQ(got, "for a pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));

  // >(program) in a shell
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor in(ends[0]);
  write_file("/dev/fd/" + std::to_string(ends[1]), "for a shell", false);
  ::close(ends[1]);
  got.clear();
  EXPECT_TRUE(read_all(in.get(), got));
  EXPECT_EQ(got, "for a shell");
  write_file("/dev/null", "for nobody", false);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(has(message_of([&] { SavedFile(pipe, true); }), "again and again"));

  // Standard output that is a file goes on where it was, and the name of the device stays.
  const Descriptor kept(::dup(STDOUT_FILENO)), file = create_file(folder / "out");
  ::dup2(file.get(), STDOUT_FILENO);
  EXPECT_TRUE(write_all(STDOUT_FILENO, "first, "));
  write_file("/dev/stdout", "second", true);
  write_out(", third");
  write_file("/dev/stdout", ", fourth", true);
  ::dup2(kept.get(), STDOUT_FILENO);
  EXPECT_EQ(content(folder / "out"), "first, second, third, fourth");
}

// Other processes make shared pipes non-blocking.
TEST(NewFile, NonBlockingPipesLoseNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  const std::string name = "/dev/fd/" + std::to_string(out.get()), text(std::size_t{1} << 20, 'x');
  std::string got;
  std::thread writer([&] {
    write_file(name, text, false);
    out.reset();
  });
  got = read_file("/dev/fd/" + std::to_string(in.get()));
  writer.join();
  EXPECT_EQ(got, text);
}

TEST(NewFile, NonBlockingPipesWithoutAReaderAreAnError) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ::close(ends[0]);
  const Descriptor out(ends[1]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(fault_of([&] { write_file("/dev/fd/" + std::to_string(out.get()), "text", false); }), 1);
  std::signal(SIGPIPE, before);
}

TEST(NewFile, SocketsAreRejected) {
  const Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(fault_of([&] { write_file(folder / "socket", "text", true); }), 2);
  EXPECT_TRUE(fs::is_socket(folder / "socket"));
}

TEST(NewFile, WaitingForAReaderCanBeInterrupted) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  put_file(folder / "file", "text");
  const pid_t child = ::fork();
  if (child == 0) {
    catch_interrupts();
    ::raise(SIGINT);
    const bool has_ended = fault_of([&] { write_file(folder / "pipe", "text", false); }) == kExitInterrupted &&
                           fault_of([&] { read_file(folder / "pipe"); }) == kExitInterrupted;
    // Files can be read and written after an interruption, to save what there is.
    if (read_file(folder / "file") == "text") write_file(folder / "file", "saved", true);
    ::_exit(has_ended ? 0 : 1);
  }
  EXPECT_EQ(testing::wait_for(child), 0);
  EXPECT_EQ(content(folder / "file"), "saved");
}

TEST(Lock, NamesTheProcessThatHoldsIt) {
  const Folder folder;
  const std::string path = folder / "sweep.json";
  {
    SavedFile first(path, false);
    first.save("one");
    const std::string told = message_of([&] { SavedFile(path, true); });
    EXPECT_TRUE(has(told, "another weir (process " + std::to_string(::getpid()) + ") is writing it")) << told;
    EXPECT_EQ(fault_of([&] { SavedFile(path, true); }), 2);
    first.save("two");
  }
  EXPECT_EQ(content(path), "two");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"sweep.json"}) << "the lock is removed";
  EXPECT_TRUE(has(message_of([&] { SavedFile(path, false); }), "already exists"));
}

TEST(Lock, OfAProcessThatWasKilledIsFree) {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(folder / "file");
    ::raise(SIGKILL);
  }
  EXPECT_EQ(testing::wait_for(child), 128 + SIGKILL);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{".file.lock"});
  {
    const FileLock lock(folder / "file");
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{});
}

TEST(Lock, IsNotLedAstray) {
  const Folder folder;
  put_file(folder / "victim", "theirs");
  const std::string lock = folder / ".file.lock";
  const std::function<void()> plants[] = {[&] { fs::create_symlink(folder / "victim", lock); },
                                          [&] { fs::create_hard_link(folder / "victim", lock); },
                                          [&] { ::mkfifo(lock.c_str(), 0600); }};
  for (const auto& plant : plants) {
    plant();
    EXPECT_EQ(fault_of([&] { FileLock(folder / "file"); }), 2);
    EXPECT_EQ(content(folder / "victim"), "theirs");
    fs::remove(lock);
  }
}

// Several processes add to one number: read, then replaced. None of it is lost.
TEST(Lock, NothingIsLostBetweenProcesses) {
  constexpr int kProcesses = 6, kTimes = 25, kPatienceMs = 600'000;
  const Folder folder;
  const std::string path = folder / "number";
  write_file(path, "0", false);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    try {
      for (int j = 0; j < kTimes; ++j) {
        const FileLock lock(path, kPatienceMs);
        write_file(path, std::to_string(std::stoi(read_file(path)) + 1), true);
      }
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) EXPECT_EQ(testing::wait_for(child), 0);
  EXPECT_EQ(content(path), std::to_string(kProcesses * kTimes));
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"number"});
}

TEST(Append, NeverWaitsAndFollowsNoLink) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  put_file(folder / "victim", "theirs");
  fs::create_symlink(folder / "victim", folder / "link");
  EXPECT_TRUE(has(message_of([&] { open_to_append(folder / "pipe"); }), "nobody reads"));
  EXPECT_TRUE(has(message_of([&] { open_to_append(folder / "link"); }), "is a link"));
  for (const char* text : {"one ", "two"}) EXPECT_TRUE(write_all(open_to_append(folder / "log").get(), text));
  EXPECT_EQ(content(folder / "log"), "one two");
}

TEST(Reader, LargeFilesAreRejectedBeforeTheyAreRead) {
  const Folder folder;
  put_file(folder / "large", "");
  ASSERT_EQ(::truncate((folder / "large").c_str(), off_t{1} << 40), 0);
  const std::string told = message_of([&] { read_file(folder / "large"); });
  EXPECT_TRUE(has(told, "larger than 256 MiB")) << told;
  EXPECT_TRUE(has(message_of([&] { read_file("/dev/zero", 1 << 20); }), "larger than 1 MiB"));
  put_file(folder / "exact", std::string(1000, 'x'));
  EXPECT_EQ(read_file(folder / "exact", 1000).size(), 1000u);
  EXPECT_THROW(read_file(folder / "exact", 999), Error);
  EXPECT_EQ(start_of_file(folder / "exact", 10), "xxxxxxxxxx");
}

TEST(Reader, TakesPipesThatTheUserNamed) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string text(300'000, 'y');
  std::thread writer([&] { write_file(folder / "pipe", text, false); });
  EXPECT_EQ(read_file(folder / "pipe"), text);
  writer.join();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor in(ends[0]);
  EXPECT_TRUE(write_all(ends[1], "<(zcat x)"));
  ::close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(in.get())), "<(zcat x)");
}

TEST(Reader, FoldersGiveFilesAndNothingElse) {
  const Folder folder;
  put_file(folder / "b.json", "{}");
  put_file(folder / "a.json", "{}");
  put_file(folder / "note.txt", "");
  fs::create_directory(folder / "c.json");
  ASSERT_EQ(::mkfifo((folder / "pipe.json").c_str(), 0600), 0);
  fs::create_symlink(folder / "pipe.json", folder / "link.json");
  fs::create_symlink(folder / "a.json", folder / "good.json");
  fs::create_symlink("/dev/zero", folder / "zero.json");
  const FilesInFolder found = files_in(folder.path(), ".json");
  EXPECT_EQ(found.files, (std::vector<fs::path>{folder / "a.json", folder / "b.json", folder / "good.json"}));
  EXPECT_EQ(found.skipped, (std::vector<fs::path>{folder / "link.json", folder / "pipe.json", folder / "zero.json"}));
  for (const char* name : {"pipe.json", "link.json", "zero.json", "c.json", "absent"}) {
    EXPECT_FALSE(open_regular(folder / name)) << name;
    EXPECT_EQ(start_of_file(folder / name, 10), "") << name;
  }
  EXPECT_EQ(fault_of([&] { files_in(folder / "absent", ".json"); }), 2);
}

TEST(Reader, ReadsFilesOfTheKernelWithoutASize) {
  EXPECT_TRUE(has(read_kernel_file("/proc/self/status"), "VmRSS"));
  EXPECT_EQ(read_kernel_file("/proc/self/status", 5), "Name:");
  EXPECT_EQ(read_kernel_file("/proc/self/absent"), "");
}

}  // namespace
}  // namespace weir
