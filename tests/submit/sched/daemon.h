// Daemons for tests: a folder of its own, and a server in a thread or in a child process.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "submit/sched/connection.h"
#include "submit/sched/server.h"

namespace weir::testing {

class SocketFolder {
 public:
  SocketFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir_sched.XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~SocketFolder() {
    std::error_code status;
    std::filesystem::remove_all(path_, status);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  std::filesystem::path folder() const { return path_; }
  std::string socket() const { return (path_ / "sched.sock").string(); }
  scheduler::ServerOptions options(const char* policy = "priority") const {
    scheduler::ServerOptions options;
    options.socket = socket();
    options.policy = &scheduler::policy_named(policy);
    return options;
  }

 private:
  std::filesystem::path path_;
};

class ServerThread {
 public:
  explicit ServerThread(const scheduler::ServerOptions& options)
      : server_(options), thread_([this] { server_.serve(); }) {}
  ~ServerThread() { end(); }
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  void end() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }
  // For one that was told to stop by a message.
  void join() { thread_.join(); }

 private:
  scheduler::Server server_;
  std::thread thread_;
};

// Runs `body` in a child, which never comes back from here. Make it before threads of this process.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed for its time leaves nobody behind
    int code = 99;
    try {
      code = body();
    } catch (const std::exception&) {
      code = 98;
    }
    ::_exit(code);
  }
  ~Child() {
    if (pid_ > 0) {
      send(SIGKILL);
      wait();
    }
  }
  Child(Child&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void forget() { pid_ = -1; }
  void send(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);  // -1, where fork() failed, would mean every process
  }
  // Its exit code, or -signal.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

inline Child daemon_process(const scheduler::ServerOptions& options) {
  return Child([&] {
    scheduler::Server server(options);
    server.serve();
    return 0;
  });
}

inline std::unique_ptr<scheduler::Connection> join(const std::string& socket, const scheduler::Terms& terms = {},
                                                   std::string_view program = "test") {
  // A machine that is busy may keep a daemon from its core for longer than a client waits.
  for (int attempt = 0;; ++attempt) {
    std::string reason;
    auto connection = scheduler::Connection::open(socket, terms, program, &reason);
    if (connection != nullptr || attempt == 20 || reason.find("did not answer") == std::string::npos) return connection;
  }
}

// Until a daemon in another process has made its socket.
inline std::unique_ptr<scheduler::Connection> join_soon(const std::string& socket, const scheduler::Terms& terms = {}) {
  for (;;) {
    if (auto connection = join(socket, terms)) return connection;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void until(const auto& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

inline constexpr scheduler::Terms kUrgent{.priority = 10}, kPatient{.priority = -10};

}  // namespace weir::testing
