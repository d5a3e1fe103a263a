#include "submit/inject/race_run.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <unordered_map>

#include "submit/inject/process.h"
#include "submit/inject/program_stacks.h"
#include "submit/inject/recorder.h"

namespace weir::inject {
namespace {

enum class RaceState : std::uint8_t { none, unclaimed, claimed, off };
std::atomic<RaceState> g_race_state{RaceState::none};

struct RaceFolder {
  std::string path;
  std::mutex mutex;  // protects the files; taken last
  RaceLines notes, digests, stacks;
};
RaceFolder& race_folder() noexcept {
  static RaceFolder& kFolder = *new RaceFolder;
  return kFolder;
}

void give_up(const std::string& reason) noexcept {
  std::fprintf(stderr, "weir: the program runs undisturbed: %s\n", reason.c_str());
  note_race("nothing is done: " + reason);
}

// Throws when memory runs out.
bool read_plan_of(const char* folder) {
  RaceFolder& files = race_folder();
  files.path = std::string(folder) + "/";
  std::string reason;
  std::optional<RacePlan> plan = read_race_plan_file(files.path + race_format::kPlanFile, reason);
  if (!plan) {
    files.notes.open(files.path + race_format::kNotesFile);
    give_up("the plan " + files.path + race_format::kPlanFile + " cannot be followed: " + reason);
    return false;
  }
  race_run().plan = std::move(*plan);
  return true;
}

// Throws when memory runs out. The files are those of the one who claims.
bool claim_folder() {
  RaceFolder& files = race_folder();
  const std::string claim = files.path + race_format::kClaimFile;
  const int descriptor = open_own_file(claim, O_WRONLY | O_CREAT | O_EXCL);
  if (descriptor < 0) {
    if (errno != EEXIST) give_up(claim + ": " + std::strerror(errno));
    return false;
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  const bool is_written = ::write(descriptor, pid.data(), pid.size()) == static_cast<ssize_t>(pid.size());
  ::close(descriptor);
  std::string reason = files.notes.open(files.path + race_format::kNotesFile);
  RaceRun& run = race_run();
  bool has_stacks = false;
  for (const auto& [name, orders] : run.plan.orders) has_stacks = has_stacks || orders.shows_stack;
  if (reason.empty()) reason = files.digests.open(files.path + race_format::kDigestsFile);
  if (reason.empty() && has_stacks) reason = files.stacks.open(files.path + race_format::kStacksFile);
  if (reason.empty() && run.plan.observes) {
    const std::lock_guard lock(run.mutex);
    reason = run.log.open(files.path + race_format::kLogFile, monotonic_ns());
    // What was allocated before the first command.
    const std::vector<RaceMemory::Block> known(run.memory.blocks().begin(), run.memory.blocks().end());
    for (const RaceMemory::Block& block : known) add_block(run, block, 1, race_format::kNone);
  }
  if (reason.empty() && !is_written) reason = claim + " cannot be written";
  if (!reason.empty()) give_up(reason);
  return reason.empty();
}

}  // namespace

RaceRun& race_run() noexcept {
  static RaceRun& kRun = *new RaceRun;
  return kRun;
}

bool prepare_race() noexcept {
  static const bool kIsWanted = [] {
    const char* const folder = std::getenv(race_format::kFolderVariable);
    if (folder == nullptr || *folder == '\0') return false;
    bool is_good = false;
    try {
      is_good = read_plan_of(folder);
    } catch (const std::exception&) {
      give_up("it is out of memory");
    }
    g_race_state.store(is_good ? RaceState::unclaimed : RaceState::off);
    // No lock is taken in a forked child: whoever held it is not there.
    if (is_good) ::pthread_atfork(nullptr, nullptr, stop_racing);
    return is_good;
  }();
  return kIsWanted && is_racing();
}

bool is_racing() noexcept {
  const RaceState now = g_race_state.load(std::memory_order_acquire);
  return now == RaceState::unclaimed || now == RaceState::claimed;
}

bool claim_race() noexcept {
  if (const RaceState now = g_race_state.load(std::memory_order_acquire); now != RaceState::unclaimed)
    return now == RaceState::claimed;
  static std::mutex& kClaiming = *new std::mutex;
  const std::lock_guard lock(kClaiming);
  if (g_race_state.load() != RaceState::unclaimed) return g_race_state.load() == RaceState::claimed;
  bool is_ours = false;
  try {
    is_ours = claim_folder();
  } catch (const std::exception&) {
    give_up("it is out of memory");
  }
  g_race_state.store(is_ours ? RaceState::claimed : RaceState::off, std::memory_order_release);
  return is_ours;
}

bool claim_race_is_ours() noexcept { return g_race_state.load(std::memory_order_acquire) == RaceState::claimed; }

void stop_racing() noexcept { g_race_state.store(RaceState::off, std::memory_order_release); }

void add_block(RaceRun& run, const RaceMemory::Block& block, std::uint32_t thread, std::uint32_t stream) {
  run.memory.add(block);
  race_format::Entry entry{};
  entry.kind = static_cast<std::uint8_t>(race_format::Kind::allocate);
  entry.flags = block.is_host ? race_format::kHost : std::uint8_t{0};
  entry.thread = thread;
  entry.stream = stream;
  entry.time_ns = monotonic_ns();
  run.log.add(entry, std::array{race_format::Access{block.begin, block.bytes, 0, 0}});
}

std::uint32_t kernel_text(RaceRun& run, const char* mangled) {
  static auto& kKnown = *new std::unordered_map<std::string, std::uint32_t>;
  if (!run.log.is_open()) return 0;
  if (const auto known = kKnown.find(mangled); known != kKnown.end()) return known->second;
  int status = -1;
  char* const plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  const std::uint32_t number = run.log.text(status == 0 && plain != nullptr ? plain : mangled);
  std::free(plain);
  return kKnown.emplace(mangled, number).first->second;
}

void note_race(const std::string& line) noexcept {
  RaceFolder& files = race_folder();
  const std::lock_guard lock(files.mutex);
  try {
    files.notes.add(line + "\n");
  } catch (const std::bad_alloc&) {
    files.notes.add("a note was lost: out of memory\n");
  }
}

void write_digest(const std::string& name, std::uint64_t count, std::uint64_t digest) noexcept {
  char number[64];
  std::snprintf(number, sizeof(number), " %llu %016llx\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(digest));
  RaceFolder& files = race_folder();
  const std::lock_guard lock(files.mutex);
  try {
    files.digests.add(name + number);
  } catch (const std::bad_alloc&) {
    files.notes.add("a digest was lost: out of memory\n");
  }
}

void write_race_stack(RaceName name) noexcept {
  RaceFolder& files = race_folder();
  try {
    std::string reason;
    const std::string text = "command " + text_of(name) + "\n" + own_native_stack() + own_python_stack(reason) + "\n";
    note_race("stack " + text_of(name) + ": done" + (reason.empty() ? "" : ", but " + reason));
    const std::lock_guard lock(files.mutex);
    files.stacks.add(text);
  } catch (const std::bad_alloc&) {
    note_race("a stack was lost: out of memory");
  }
}

void finish_race() noexcept {
  RaceRun& run = race_run();
  int error = 0;
  {
    const std::lock_guard lock(run.mutex);
    run.log.flush();
    error = run.log.error();
  }
  if (error != 0) note_race(std::string("the log is not complete: ") + std::strerror(error));
}

}  // namespace weir::inject
