#include "run/record_folders.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/process.h"
#include "base/text_gate.h"
#include "base/units.h"
#include "run/record_live.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSessionFile = "session.json";  // on which start of which machine, and ranks
constexpr const char* kStacksSuffix = ".stacks";
constexpr std::time_t kOldS = 86400;

// Returns why a folder is not this user's alone, or empty.
std::string not_private(const fs::path& folder) {
  struct stat facts{};
  if (::lstat(folder.c_str(), &facts) != 0) return std::strerror(errno);
  if (!S_ISDIR(facts.st_mode)) return S_ISLNK(facts.st_mode) ? "it is a link" : "it is no folder";
  if (facts.st_uid != ::geteuid()) return "it belongs to another user";
  if ((facts.st_mode & 077) != 0) return fmt::format("it is open to others (mode {:o})", facts.st_mode & 07777);
  return {};
}

// A root is BASE/weir/record or BASE/weir-UID/record: the last two are made, and are the user's alone.
std::string make_root(const fs::path& root) {
  for (const fs::path& folder : {root.parent_path(), root}) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return fmt::format("{}: {}", folder.string(), std::strerror(errno));
    if (const std::string reason = not_private(folder); !reason.empty())
      return fmt::format("{}: {}", folder.string(), reason);
  }
  return {};
}

bool is_root(const fs::path& root) { return not_private(root.parent_path()).empty() && not_private(root).empty(); }

std::string lack_of_room(const fs::path& folder, std::uint64_t bytes) {
  struct statvfs facts{};
  if (::statvfs(folder.c_str(), &facts) != 0) return fmt::format("{}: {}", folder.string(), std::strerror(errno));
  const std::uint64_t room = std::uint64_t{facts.f_bavail} * facts.f_frsize;
  if (room >= bytes) return {};
  return fmt::format("{}: {} are free, and {} are needed", folder.string(), format_bytes(room), format_bytes(bytes));
}

std::string boot_id() { return read_kernel_file("/proc/sys/kernel/random/boot_id", 64); }

// A folder or a link with the name of this process, or of this process and a number. Returns why not, or empty.
template <class Make>
std::string make_named(const fs::path& root, fs::path& made, Make make) {
  for (int i = 0; i < 100; ++i) {
    made = root / fmt::format("{}{}", ::getpid(), i == 0 ? "" : fmt::format(".{}", i));
    if (make(made.c_str()) == 0) return {};
    if (errno != EEXIST) break;
  }
  return fmt::format("{}: {}", made.string(), std::strerror(errno));
}

// The number that a name begins with: of 4711.weirrec, 4711.1.weirrec, 4711, 4711.1.
std::uint64_t number_of(const fs::path& path) {
  const std::string name = path.filename();
  const std::size_t end = std::min(name.find('.'), name.size());
  const auto number = parse_integer(name.substr(0, end));
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

// "4711.2.weirrec" is the third program that this process executed.
std::uint64_t turn_of(const fs::path& path) {
  const std::string stem = path.stem();
  const std::size_t dot = stem.find('.');
  return dot == std::string::npos ? 0 : static_cast<std::uint64_t>(parse_integer(stem.substr(dot + 1)).value_or(0));
}

// What make_record_folder() and note_ranks() wrote; an empty object where that cannot be read.
Json session_of(const fs::path& folder) {
  try {
    Json session = parse_json(start_of_file(folder / kSessionFile, 1 << 20), kSessionFile);
    if (session.is_object()) return session;
  } catch (const Error&) {
    // A folder of files that were gathered by hand has none.
  }
  return Json::object();
}

// On this machine, since it was booted.
bool is_written_here(const Json& session) {
  return session.contains("boot") && session["boot"].is_string() && session["boot"].get<std::string>() == boot_id();
}

int rank_in(const Json& session, std::uint64_t pid) {
  const std::string key = std::to_string(pid);
  if (!session.contains("ranks") || !session["ranks"].is_object() || !session["ranks"].contains(key)) return -1;
  const Json& rank = session["ranks"][key];
  if (!rank.is_number_integer()) return -1;
  const auto value = rank.get<std::int64_t>();
  return value >= 0 && value <= INT32_MAX ? static_cast<int>(value) : -1;
}

void write_session(const fs::path& folder, const Json& session) {
  try {
    write_file(folder / kSessionFile, session.dump() + "\n", true);
  } catch (const Error&) {
    // On a full disk; the library will say the same of the recording.
  }
}

bool anybody_lives(const fs::path& folder) {
  for (const RecordFile& file : recordings_in(folder)) {
    std::string ignored;
    const auto state = LiveRecording(file.path).read(ignored);
    if (state && file.is_ours && is_alive(state->header)) return true;
  }
  return facts_of(static_cast<pid_t>(number_of(folder))).has_value();
}

void remove_with(const fs::path& folder, std::string_view suffix) {
  std::error_code ignored;
  try {
    for (const fs::path& file : files_in(folder, suffix).files) fs::remove(file, ignored);
  } catch (const Error&) {
    // Whoever removed the folder has done it for us.
  }
}

// What stands below a root: folders, and links to folders that users chose.
std::vector<fs::path> sessions_of(const fs::path& root) {
  std::vector<fs::path> sessions;
  if (!is_root(root)) return sessions;
  std::error_code status;
  for (fs::directory_iterator entry(root, status); !status && entry != fs::directory_iterator();
       entry.increment(status))
    if (number_of(entry->path()) != 0) sessions.push_back(entry->path());
  std::sort(sessions.begin(), sessions.end());
  return sessions;
}

void add_all(std::vector<RecordFile>& to, const fs::path& session) {
  for (RecordFile& file : recordings_in(session)) {
    file.session = number_of(session);
    to.push_back(std::move(file));
  }
}

// Rejects a process that has no recording.
[[noreturn]] void reject_process(const std::string& word) {
  const std::string list = "`weir record list` shows what is recorded.";
  const auto number = parse_integer(word);
  const bool is_there = number && *number > 0 && *number <= INT32_MAX && facts_of(static_cast<pid_t>(*number));
  if (!is_there) reject(fmt::format("{}: there is no recording of such a process", word), list);
  std::string line = read_kernel_file(fmt::format("/proc/{}/cmdline", word), 200);
  std::replace(line.begin(), line.end(), '\0', ' ');
  while (line.ends_with(' ')) line.pop_back();
  reject(fmt::format("{}: this process runs, but was not started by `weir record`, or has not used CUDA yet", word),
         fmt::format("A program that runs already cannot be recorded. {} Start it again: weir record -- {}", list,
                     line.empty() ? "PROGRAM" : for_line(line)));
}

}  // namespace

std::vector<fs::path> record_roots(const std::string& runtime, const std::string& temporary) {
  const std::string own = fmt::format("weir-{}", ::geteuid());
  std::vector<fs::path> roots;
  if (fs::path(runtime).is_absolute()) roots.push_back(fs::path(runtime) / "weir" / "record");
  roots.push_back(fs::path("/dev/shm") / own / "record");
  roots.push_back((fs::path(temporary).is_absolute() ? fs::path(temporary) : fs::path("/tmp")) / own / "record");
  return roots;
}

RecordFolder make_record_folder(const std::vector<fs::path>& roots, const std::optional<fs::path>& asked,
                                std::uint64_t room) {
  RecordFolder folder;
  std::string reasons;
  const auto note = [&](const std::string& reason) {
    if (!reason.empty()) reasons += (reasons.empty() ? "" : "; ") + reason;
    return reason.empty();
  };
  if (asked) {
    std::error_code status;
    folder.path = fs::absolute(*asked, status);
    const bool is_made = folder.is_made = ::mkdir(folder.path.c_str(), 0700) == 0;
    if (!is_made && errno != EEXIST) throw_file_error(*asked, "be made", errno);
    if (!is_made && !fs::is_directory(folder.path, status))
      reject(fmt::format("-o {}: is not a folder", asked->string()),
             "`weir record` writes several files: name a folder.");
    if (!is_made && !fs::is_empty(folder.path, status))
      reject(fmt::format("-o {}: the folder is not empty", asked->string()), "Name a new one.");
    if (::access(folder.path.c_str(), W_OK | X_OK) != 0) throw_file_error(*asked, "be written to", errno);
    for (const fs::path& root : roots)
      if (folder.link.empty() && make_root(root).empty() && !make_named(root, folder.link, [&](const char* name) {
                                                               return ::symlink(folder.path.c_str(), name);
                                                             }).empty())
        folder.link.clear();
  }
  for (const fs::path& root : roots) {
    if (!folder.path.empty()) break;
    fs::path made;
    if (note(make_root(root)) && note(lack_of_room(root, room)) &&
        note(make_named(root, made, [](const char* name) { return ::mkdir(name, 0700); })))
      folder.path = made;
  }
  if (folder.path.empty())
    fail(fmt::format("there is no place for recordings: {}", reasons), "Name one: weir record -o FOLDER -- PROGRAM");
  write_session(folder.path, {{"boot", boot_id()}, {"pid", ::getpid()}});
  return folder;
}

void note_ranks(const RecordFolder& folder, const std::map<std::uint64_t, int>& ranks) {
  Json session = session_of(folder.path);
  session["ranks"] = Json::object();
  for (const auto& [pid, rank] : ranks) session["ranks"][std::to_string(pid)] = rank;
  write_session(folder.path, session);
}

void remove_recordings(const RecordFolder& folder) {
  remove_with(folder.path, record::kSuffix);
  remove_with(folder.path, kStacksSuffix);
  std::error_code ignored;
  fs::remove(folder.path / kSessionFile, ignored);
  // Fails where dumps are in it.
  if ((!folder.is_made || fs::remove(folder.path, ignored)) && !folder.link.empty()) fs::remove(folder.link, ignored);
}

void remove_old_recordings(const std::vector<fs::path>& roots) {
  for (const fs::path& root : roots)
    for (const fs::path& session : sessions_of(root)) {
      struct stat facts{};
      std::error_code status;
      if (::lstat(session.c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) continue;
      const bool is_link = S_ISLNK(facts.st_mode);
      if (is_link && !fs::exists(session, status)) {
        fs::remove(session, status);
        continue;
      }
      std::time_t newest = facts.st_mtime;
      for (const RecordFile& file : recordings_in(session))
        if (struct stat of{}; ::stat(file.path.c_str(), &of) == 0) newest = std::max(newest, of.st_mtime);
      if (std::time(nullptr) - newest < kOldS || anybody_lives(session)) continue;
      if (is_link)
        fs::remove(session, status);  // what it leads to is the user's
      else
        fs::remove_all(session, status);
    }
}

std::vector<RecordFile> recordings_in(const fs::path& folder) {
  std::vector<RecordFile> all;
  FilesInFolder found;
  try {
    found = files_in(folder, record::kSuffix);
  } catch (const Error&) {
    return all;
  }
  const Json session = session_of(folder);
  const bool is_ours = is_written_here(session);
  for (const fs::path& file : found.files)
    if (const std::uint64_t pid = number_of(file); pid != 0)
      all.push_back({file, pid, is_ours, false, 0, rank_in(session, pid)});
  std::sort(all.begin(), all.end(), [](const RecordFile& a, const RecordFile& b) {
    return std::pair(a.pid, turn_of(a.path)) < std::pair(b.pid, turn_of(b.path));
  });
  for (std::size_t i = 0; i + 1 < all.size(); ++i) all[i].is_replaced = all[i].pid == all[i + 1].pid;
  return all;
}

std::vector<RecordFile> all_recordings(const std::vector<fs::path>& roots) {
  std::vector<RecordFile> all;
  for (const fs::path& root : roots)
    for (const fs::path& session : sessions_of(root)) add_all(all, session);
  return all;
}

std::vector<RecordFile> find_recordings(const std::vector<fs::path>& roots, const std::vector<std::string>& words) {
  std::vector<RecordFile> found;
  std::optional<std::vector<RecordFile>> kept;
  for (const std::string& word : words) {
    const std::size_t before = found.size();
    std::error_code status;
    if (const auto number = parse_integer(word); number && *number > 0) {
      if (!kept) kept = all_recordings(roots);
      const auto pid = static_cast<std::uint64_t>(*number);
      for (const RecordFile& file : *kept)
        if (file.pid == pid) found.push_back(file);
      for (const RecordFile& file : *kept)
        if (file.session == pid && (found.size() == before || found[before].pid != pid)) found.push_back(file);
      if (found.size() == before && !fs::exists(word, status)) reject_process(word);
    }
    if (found.size() > before) continue;
    if (fs::is_directory(word, status)) {
      for (RecordFile& file : recordings_in(word)) found.push_back(std::move(file));
      if (found.size() == before)
        reject(fmt::format("{}: holds no recording (*{})", word, record::kSuffix),
               "A program writes one when it starts CUDA. `weir record list` shows what is recorded.");
      continue;
    }
    if (!fs::exists(word, status))
      reject(fmt::format("{}: no such process, file or folder", word), "`weir record list` shows what is recorded.");
    const fs::path path = word;
    const Json session = session_of(path.has_parent_path() ? path.parent_path() : ".");
    found.push_back({path, number_of(path), is_written_here(session), false, 0, rank_in(session, number_of(path))});
  }
  // Two words may mean the same.
  std::set<fs::path> known;
  std::erase_if(found, [&](const RecordFile& file) {
    std::error_code status;
    const fs::path path = fs::canonical(file.path, status);
    return !known.insert(status ? file.path : path).second;
  });
  return found;
}

}  // namespace weir
