#include "submit/inject/program_stacks.h"

#include <cxxabi.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "submit/inject/process.h"

namespace weir::inject {
namespace {

constexpr int kMaxFrames = 40, kOwnFrames = 2;  // the handler and the kernel's trampoline
constexpr int kMaxOwnFrames = 128;              // frameworks are deep
constexpr std::size_t kMaxText = 60'000, kMaxThreads = 256;
constexpr int kWaitsMs = 50;  // for one thread

int native_signal() noexcept { return SIGRTMAX - 3; }
int python_signal() noexcept { return SIGRTMAX - 4; }

// One thread is asked at a time.
std::atomic<int> g_asked{0};
std::atomic<int> g_answered{0};
std::atomic<bool> g_has_python{false};  // its handler is registered
void* g_frames[kMaxFrames];
int g_count = 0;

void answer(int) {
  const int kept = errno;
  int own = static_cast<int>(::syscall(SYS_gettid));
  // Acquire: pairs with the release of the thread that asks. A request that timed out has been withdrawn.
  if (g_asked.compare_exchange_strong(own, -1, std::memory_order_acq_rel)) {
    g_count = ::backtrace(g_frames, kMaxFrames);
    g_answered.store(own, std::memory_order_release);
  }
  errno = kept;
}

void rest_ms(long ms) noexcept {
  const timespec rest{0, ms * 1'000'000};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
}

std::string line_of(const char* path) {
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return "";
  char line[256] = {};
  if (std::fgets(line, sizeof(line), file) == nullptr) line[0] = '\0';
  std::fclose(file);
  line[std::strcspn(line, "\n")] = '\0';
  return line;
}

// `has_place`: where no name is known, the place in the file stands for it.
std::string frame_text(void* address, bool has_place = false) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "  ?";
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const std::string library = slash == nullptr ? info.dli_fname : slash + 1;
  if (info.dli_sname == nullptr) {
    char place[32] = "";
    const auto at = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
    if (has_place) std::snprintf(place, sizeof(place), "+0x%llx", static_cast<unsigned long long>(at));
    return "  [" + library + place + "]";
  }
  int status = -1;
  char* const plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string text = "  " + std::string(status == 0 && plain != nullptr ? plain : info.dli_sname).substr(0, 160) +
                     " [" + library + "]";
  std::free(plain);
  return text;
}

// The program may have taken the signal for itself, and without a handler it would end the program.
bool is_ours() noexcept {
  struct sigaction action{};
  return ::sigaction(native_signal(), nullptr, &action) == 0 && action.sa_handler == answer;
}

std::string native_stack(int thread) {
  if (!is_ours()) return "  cannot be asked: the program uses the signal " + std::to_string(native_signal()) + "\n";
  g_answered.store(0);
  g_asked.store(thread, std::memory_order_release);
  if (::syscall(SYS_tgkill, ::getpid(), thread, native_signal()) != 0) return "";
  for (int waited = 0; waited < kWaitsMs && g_answered.load(std::memory_order_acquire) != thread; ++waited) rest_ms(1);
  int asked = thread;
  if (g_answered.load(std::memory_order_acquire) != thread) {
    if (g_asked.compare_exchange_strong(asked, 0)) return "  does not answer: it blocks signals\n";
    rest_ms(1);  // it is answering
    if (g_answered.load(std::memory_order_acquire) != thread) return "";
  }
  std::string text;
  for (int i = kOwnFrames; i < g_count; ++i) text += frame_text(g_frames[i]) + "\n";
  return text;
}

// Python's own C interface, where the program has it. The names are those of all versions since 3.3.
void* ask_python(void*) {
  const auto is_there = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  const auto enter = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  const auto leave = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  const auto run = reinterpret_cast<int (*)(const char*)>(::dlsym(RTLD_DEFAULT, "PyRun_SimpleString"));
  if (is_there == nullptr || enter == nullptr || leave == nullptr || run == nullptr || is_there() == 0) return nullptr;
  // Not in the program's own namespace. The path is taken from the environment, so that nothing in it is read as code.
  const std::string code = "exec(\"import faulthandler, os\\nfaulthandler.register(" + std::to_string(python_signal()) +
                           ", file=open(os.environ['WEIR_RECORD_FOLDER'] + '/' + str(os.getpid()) + '.stacks', 'w'), "
                           "all_threads=True)\", {})";
  struct sigaction before{};
  if (::sigaction(python_signal(), nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return nullptr;
  const int state = enter();
  if (run(code.c_str()) == 0) g_has_python.store(true, std::memory_order_release);
  leave(state);
  return nullptr;
}

}  // namespace

ProgramStacks::ProgramStacks(std::string folder)
    : file_(std::move(folder) + "/" + std::to_string(::getpid()) + ".stacks") {
  void* frames[4];
  ::backtrace(frames, 4);  // its first call allocates, which a handler may not
  struct sigaction action{};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // on the program's own signal stack where it has one: threads of Go do
  sigfillset(&action.sa_mask);
  struct sigaction before{};
  if (::sigaction(native_signal(), nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
    ::sigaction(native_signal(), &action, nullptr);
  // In a thread of its own: it waits until the interpreter is free, which the program's threads decide.
  start_own_thread(ask_python);
}

std::string ProgramStacks::of_python() {
  struct sigaction action{};
  // Without Python's handler the signal would end the program.
  if (!g_has_python.load(std::memory_order_acquire) || ::sigaction(python_signal(), nullptr, &action) != 0 ||
      action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
    return "";
  ::kill(::getpid(), python_signal());
  rest_ms(200);
  std::FILE* const file = std::fopen(file_.c_str(), "re");
  if (file == nullptr) return "";
  std::string text;
  if (std::fseek(file, static_cast<long>(read_), SEEK_SET) == 0) {
    char part[4096];
    for (std::size_t got = 0; text.size() < kMaxText / 2 && (got = std::fread(part, 1, sizeof(part), file)) > 0;)
      text.append(part, got);
  }
  std::fclose(file);
  read_ += text.size();
  return text;
}

std::string ProgramStacks::take() {
  std::string text = of_python();
  if (!text.empty()) text = "Python:\n" + text + "\n";
  std::vector<int> threads;
  if (DIR* const folder = ::opendir("/proc/self/task")) {
    while (const dirent* const entry = ::readdir(folder))
      if (const int thread = std::atoi(entry->d_name); thread > 0 && threads.size() < kMaxThreads)
        threads.push_back(thread);
    ::closedir(folder);
  }
  const auto own = static_cast<int>(::syscall(SYS_gettid));
  timespec begun{};
  ::clock_gettime(CLOCK_MONOTONIC, &begun);
  for (const int thread : threads) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    if (thread == own || text.size() > kMaxText || now.tv_sec - begun.tv_sec > 1) continue;
    const std::string place = "/proc/self/task/" + std::to_string(thread) + "/";
    text +=
        "thread " + std::to_string(thread) + " (" + line_of((place + "comm").c_str()) + "):\n" + native_stack(thread);
  }
  return text.substr(0, kMaxText);
}

std::string own_native_stack() {
  void* frames[kMaxOwnFrames];
  const int count = ::backtrace(frames, kMaxOwnFrames);
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&own_native_stack), &own) == 0) own.dli_fbase = nullptr;
  std::string text;
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    const bool is_own = ::dladdr(frames[i], &info) != 0 && info.dli_fbase == own.dli_fbase;
    if (!is_own) text += frame_text(frames[i], true) + "\n";
  }
  return text;
}

namespace {

std::string text_in(int descriptor) {
  std::string text;
  char part[4096];
  for (ssize_t got = 0;
       text.size() < kMaxText && (got = ::pread(descriptor, part, sizeof(part), static_cast<off_t>(text.size()))) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  return text;
}

// Returns whether it could. The interpreter's own function for crashes takes no lock; versions that hide it are asked
// by their public interface.
bool dump_python(int descriptor, void* state, bool& has_own_frames) {
  if (const auto dump = reinterpret_cast<void (*)(int, void*)>(::dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"))) {
    dump(descriptor, state);
    return true;
  }
  const auto enter = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  const auto leave = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  const auto run = reinterpret_cast<int (*)(const char*)>(::dlsym(RTLD_DEFAULT, "PyRun_SimpleString"));
  if (enter == nullptr || leave == nullptr || run == nullptr) return false;
  const std::string code =
      "exec(\"import faulthandler\\nfaulthandler.dump_traceback(file=" + std::to_string(descriptor) +
      ", all_threads=False)\", {})";
  const int before = enter();  // also for a thread that has it
  has_own_frames = run(code.c_str()) == 0;
  leave(before);
  return has_own_frames;
}

}  // namespace

std::string own_python_stack(std::string& reason) {
  const auto is_there = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  const auto state_of = reinterpret_cast<void* (*)()>(::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  void* const state = is_there == nullptr || is_there() == 0 || state_of == nullptr ? nullptr : state_of();
  if (state == nullptr) return "";
  const int descriptor = ::memfd_create("weir", MFD_CLOEXEC);
  bool has_own_frames = false;
  std::string text;
  if (descriptor < 0 || !dump_python(descriptor, state, has_own_frames))
    reason = "Python gives no frames";
  else
    text = text_in(descriptor);
  if (descriptor >= 0) ::close(descriptor);
  // Those of our own two lines come first, behind the title.
  for (int i = 0; has_own_frames && i < 2; ++i)
    if (const std::size_t own = text.find("  File \"<string>\", line "), end = text.find('\n', own);
        own != std::string::npos && end != std::string::npos)
      text.erase(own, end + 1 - own);
  return text;
}

}  // namespace weir::inject
