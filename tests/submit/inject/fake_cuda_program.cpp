// "Any program": does what the CUDA driver does at its start (loads CUDA_INJECTION64_PATH and calls it), then lets the
// fake CUPTI pretend that it launched things. Words: run N, fork, again (executes itself once more), killed, exit CODE,
// wait (for a signal), say TEXT, read (a line), sleep MS, executes (itself in its own place, once more), daemon (goes
// on in the background for a second), hangup (is it ignored?).
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void load_injection() {
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* const library = ::dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "fake driver: %s\n", ::dlerror());
    std::exit(70);
  }
  const auto start = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (start == nullptr || start() != 1) std::exit(71);
}

int run(int count) {
  void* const cupti = ::dlopen(std::getenv("WEIR_CUPTI_LIBRARY"), RTLD_NOW);
  if (cupti == nullptr) return 0;
  const auto launch = reinterpret_cast<int (*)(int)>(::dlsym(cupti, "fake_cupti_run"));
  return launch == nullptr ? 0 : launch(count);
}

volatile std::sig_atomic_t has_signal = 0;

void on_signal(int) {
  ::write(STDOUT_FILENO, "got it\n", 7) == 7 ? void() : ::_exit(72);
  has_signal = 1;
}

}  // namespace

int main(int argc, char** argv) {
  bool is_loaded = false;
  const auto load = [&] {
    if (!is_loaded) load_injection();
    is_loaded = true;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "run" && i + 1 < argc) {
      load();
      run(std::atoi(argv[++i]));
    } else if (word == "fork") {
      load();
      if (::fork() == 0) std::exit(run(1) > 0 ? 3 : 3);  // with exit handlers: these must not touch our file
      ::wait(nullptr);
    } else if (word == "again") {
      std::fflush(stdout);
      if (::fork() == 0) {
        ::execl("/proc/self/exe", argv[0], "run", "2", nullptr);
        ::_exit(73);
      }
      ::wait(nullptr);
    } else if (word == "killed") {
      ::raise(SIGKILL);
    } else if (word == "exit" && i + 1 < argc) {
      return std::atoi(argv[++i]);
    } else if (word == "wait") {
      ::signal(SIGTERM, on_signal);
      std::puts("ready");
      std::fflush(stdout);
      // Not pause(): the signal may be here already, or go to another thread.
      while (has_signal == 0) ::usleep(1000);
    } else if (word == "sleep" && i + 1 < argc) {
      ::usleep(static_cast<useconds_t>(std::atoi(argv[++i])) * 1000);
    } else if (word == "executes") {
      ::execl("/proc/self/exe", argv[0], "run", "2", nullptr);
    } else if (word == "daemon") {
      if (::fork() == 0) {
        ::setsid();
        ::usleep(300'000);
        ::_exit(0);
      }
    } else if (word == "hangup") {
      struct sigaction action{};
      ::sigaction(SIGHUP, nullptr, &action);
      std::puts(action.sa_handler == SIG_IGN ? "ignored" : "not ignored");
    } else if (word == "say" && i + 1 < argc) {
      std::puts(argv[++i]);
    } else if (word == "read") {
      char line[80] = {};
      if (std::fgets(line, sizeof line, stdin) != nullptr) std::printf("read %s", line);
    }
  }
  return 0;
}
