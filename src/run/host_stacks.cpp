#include "run/host_stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/options.h"
#include "run/function_names.h"

namespace weir {
namespace {

constexpr int kSignal = SIGURG;
constexpr int kMaxFrames = 48;
constexpr std::size_t kMaxThreads = 512;
constexpr int kOwnFrames = 2;  // the handler and the kernel's signal trampoline
constexpr std::size_t kStackColumns = 80;

// A request to a thread, and its answer.
struct Slot {
  enum State : int { free, asked, answering, answered };
  std::atomic<int> thread{0};
  std::atomic<int> state{free};
  int count = 0;
  void* frames[kMaxFrames];
};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// Never freed: a thread may answer long after the last wait for it.
std::atomic<Slot*> slots{nullptr};

void answer(int) {
  const int kept = errno;
  Slot* const all = slots.load(std::memory_order_acquire);  // pairs with the store in host_stacks()
  const auto own = static_cast<int>(::syscall(SYS_gettid));
  for (std::size_t i = 0; all != nullptr && i < kMaxThreads; ++i) {
    if (all[i].thread.load(std::memory_order_relaxed) != own) continue;
    int expected = Slot::asked;
    // Acquire: pairs with the release in ask(). A request that timed out has been withdrawn.
    if (!all[i].state.compare_exchange_strong(expected, Slot::answering, std::memory_order_acquire)) break;
    // glibc's backtrace() allocates only on its first call, which host_stacks() has made.
    all[i].count = ::backtrace(all[i].frames, kMaxFrames);
    all[i].state.store(Slot::answered, std::memory_order_release);  // pairs with the acquire in collect()
    break;
  }
  errno = kept;
}

std::vector<int> threads_of_process() {
  std::vector<int> threads;
  DIR* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return threads;
  while (const dirent* const entry = ::readdir(folder))
    if (const auto number = parse_integer(entry->d_name)) threads.push_back(static_cast<int>(*number));
  ::closedir(folder);
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::string name_of(int thread) {
  std::istringstream file(read_kernel_file(fmt::format("/proc/self/task/{}/comm", thread)));
  std::string name;
  std::getline(file, name);
  return name;
}

// Sends a request to a thread; null if no slot is left or the thread is gone.
Slot* ask(Slot* all, int thread) {
  for (std::size_t i = 0; i < kMaxThreads; ++i) {
    int expected = Slot::free;
    if (all[i].state.load(std::memory_order_relaxed) != expected) continue;
    all[i].thread.store(thread, std::memory_order_relaxed);
    all[i].state.store(Slot::asked, std::memory_order_release);  // pairs with the acquire in answer()
    if (::syscall(SYS_tgkill, ::getpid(), thread, kSignal) == 0) return &all[i];
    all[i].state.store(Slot::free, std::memory_order_relaxed);
    return nullptr;
  }
  return nullptr;
}

// Waits for an answer. A request that is still unanswered at the deadline is withdrawn; one that is just being answered
// keeps its slot.
bool collect(Slot& slot, std::int64_t deadline_ns) {
  constexpr timespec kNap{0, 500'000};
  for (;;) {
    if (slot.state.load(std::memory_order_acquire) == Slot::answered) return true;  // pairs with answer()
    if (now_ns() >= deadline_ns) break;
    ::nanosleep(&kNap, nullptr);
  }
  int expected = Slot::asked;
  slot.state.compare_exchange_strong(expected, Slot::free, std::memory_order_relaxed);
  return false;
}

// Handles the signal during its lifetime. Threads that have not answered by then may get the signal later, when it is
// ignored again.
class Handler {
 public:
  Handler() {
    struct sigaction action{};
    action.sa_handler = answer;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    ::sigaction(kSignal, &action, &before_);
  }
  ~Handler() { ::sigaction(kSignal, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  struct sigaction before_{};
};

std::string stack_text(std::span<void* const> frames, const FunctionNames& names) {
  std::string text;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    // A return address may be the start of the next function: look one byte before it, except in the interrupted frame.
    const void* const address = i == 0 ? frames[i] : static_cast<const char*>(frames[i]) - 1;
    std::string line = fmt::format("  {}", names.at(address));
    if (line.size() > kStackColumns) line = line.substr(0, kStackColumns - 3) + "...";
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string host_stacks(std::int64_t limit_ns) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::int64_t deadline_ns = now_ns() + limit_ns;
  void* first[4];
  ::backtrace(first, 4);  // loads the unwinder
  if (slots.load(std::memory_order_relaxed) == nullptr)
    slots.store(std::make_unique<Slot[]>(kMaxThreads).release(), std::memory_order_release);  // pairs with answer()
  Slot* const all = slots.load(std::memory_order_relaxed);

  const auto own = static_cast<int>(::syscall(SYS_gettid));
  struct Asked {
    int thread;
    Slot* slot;
  };
  struct Group {
    std::string stack;
    std::vector<std::string> threads;
  };
  std::vector<Group> groups;
  const auto add = [&](int thread, const std::string& stack) {
    std::string who = fmt::format("{} {}", thread, name_of(thread));
    for (Group& group : groups)
      if (group.stack == stack) return group.threads.push_back(std::move(who));
    groups.push_back({stack, {std::move(who)}});
  };
  const FunctionNames names;
  std::vector<Asked> asked;
  {
    const Handler handler;
    for (const int thread : threads_of_process())
      if (thread != own) asked.push_back({thread, ask(all, thread)});
    for (const Asked& each : asked) {
      if (each.slot == nullptr || !collect(*each.slot, deadline_ns)) {
        add(each.thread, "  does not answer: it blocks signals, or has ended\n");
        continue;
      }
      const int skipped = std::min(kOwnFrames, each.slot->count);
      add(each.thread, stack_text({each.slot->frames + skipped, each.slot->frames + each.slot->count}, names));
      each.slot->state.store(Slot::free, std::memory_order_relaxed);
    }
  }
  std::string text;
  for (const Group& group : groups) {
    std::string row = group.threads.size() == 1 ? "thread" : "threads";
    for (std::size_t i = 0; i < group.threads.size(); ++i) {
      const std::string item = fmt::format(" {}{}", group.threads[i], i + 1 < group.threads.size() ? "," : "");
      if (row.size() + item.size() > kStackColumns) text += std::exchange(row, "  ") + "\n";
      row += item;
    }
    text += row + "\n" + group.stack;
  }
  return text;
}

}  // namespace weir
