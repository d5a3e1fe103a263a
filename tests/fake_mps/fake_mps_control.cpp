// Stands in for nvidia-cuda-mps-control, with a server of its own and without a GPU. `-f`: the control process, which
// makes its files, starts a server with the first client, and obeys what comes over its socket. Without arguments: a
// user interface, which sends its input there line by line and prints the answers. Beside the real commands:
//   client PID        a program connects; it leaves when its process ends
//   fault PID         its kernel fails: everybody loses their work
//   die, ignore_quit, ignore_term, hang
// FAKE_MPS=dies: it ends at once with a message, as one without rights does. FAKE_MPS=stubborn: from the start it obeys
// neither quit nor SIGTERM.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::string folder() {
  const char* const name = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return name != nullptr ? name : "/tmp/nvidia-mps";
}

sockaddr_un address() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder() + "/control";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

[[gnu::format(printf, 3, 4)]] void say(const char* role, int pid, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  std::printf("[2026-11-19 14:21:30.247 %s %5d] %s\n", role, pid, text);
  std::fflush(stdout);
}

void make(const std::string& name, mode_t mode, const std::string& text = "") {
  const int file = ::open((folder() + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, mode);
  [[maybe_unused]] const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
}

class Control {
 public:
  int run() {
    const char* const mode = std::getenv("FAKE_MPS");
    if (mode != nullptr && std::strcmp(mode, "dies") == 0) {
      say("Control", ::getpid(), "Failed to start: no rights here");
      return 1;
    }
    ignores_quit_ = mode != nullptr && std::strcmp(mode, "stubborn") == 0;
    if (ignores_quit_) std::signal(SIGTERM, SIG_IGN);
    say("Control", ::getpid(), "Starting control daemon using socket %s/control", folder().c_str());
    make("control_lock", 0666);
    make("nvidia-cuda-mps-control.pid", 0666, std::to_string(::getpid()));
    ::mkfifo((folder() + "/log").c_str(), 0777);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un where = address();
    ::unlink(where.sun_path);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) return 1;
    ::listen(listener_, 16);
    make("control_privileged", 0755);
    while (!is_ending_) {
      pollfd file{listener_, POLLIN, 0};
      ::poll(&file, 1, 20);
      if (file.revents != 0) answer(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
      look();
    }
    // As the real one: these two go, the others stay.
    ::unlink((folder() + "/log").c_str());
    ::unlink((folder() + "/nvidia-cuda-mps-control.pid").c_str());
    return 0;
  }

 private:
  void start_server() {
    int ends[2];
    if (server_ > 0 || ::pipe2(ends, O_CLOEXEC) != 0) return;
    server_ = ::fork();
    if (server_ == 0) {
      ::prctl(PR_SET_NAME, "nvidia-cuda-mps");
      const int pipe_end = ::dup2(ends[0], 3);
      for (int other = 4; other < 64; ++other) ::close(other);
      std::signal(SIGTERM, SIG_IGN);
      char nothing = 0;
      while (::read(pipe_end, &nothing, 1) < 0 && errno == EINTR) {
      }
      ::_exit(0);  // its control process is gone
    }
    ::close(ends[0]);
    to_server_ = ends[1];
    say("Control", ::getpid(), "Starting new server %d for user 0", server_);
    say("Control", ::getpid(), "NEW SERVER %d: Ready", server_);
  }

  void end_server() {
    if (server_ <= 0) return;
    ::close(to_server_);
    ::waitpid(server_, nullptr, 0);
    say("Control", ::getpid(), "Server %d exited with status 0", server_);
    server_ = 0;
  }

  void look() {
    if (server_ > 0 && ::waitpid(server_, nullptr, WNOHANG) == server_) {
      say("Control", ::getpid(), "Server %d exited with status 0", server_);
      ::close(to_server_);
      server_ = 0;
      clients_.clear();
    }
    std::erase_if(clients_, [&](int pid) {
      if (::kill(pid, 0) == 0) return false;
      say("Server", server_, "Client process %d disconnected", pid);
      return true;
    });
    if (is_quitting_ && clients_.empty()) {
      end_server();
      is_ending_ = true;
    }
  }

  void answer(int user) {
    std::string text;
    char part[1024];
    for (ssize_t got = 0; (got = ::read(user, part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(got));
    std::string answers;
    while (!text.empty()) {
      const std::string line = text.substr(0, text.find('\n'));
      text.erase(0, line.size() + 1);
      say("Control", ::getpid(), "Cmd:%s", line.c_str());
      answers += answer_to(line);
    }
    [[maybe_unused]] const ssize_t written = ::write(user, answers.data(), answers.size());
    ::close(user);
  }

  std::string answer_to(const std::string& line) {
    const int number = std::atoi(line.c_str() + std::min(line.size(), line.rfind(' ') + 1));
    if (line == "get_server_list") return server_ > 0 ? std::to_string(server_) + "\n" : "";
    if (line.starts_with("get_client_list ")) {
      std::string all;
      for (const int client : clients_) all += std::to_string(client) + "\n";
      return number == server_ ? all : "";
    }
    if (line.starts_with("client ")) {
      start_server();
      clients_.push_back(number);
      say("Server", server_, "Client {PID: %d, Context ID: 0} connected", number);
    }
    if (line.starts_with("fault ")) {
      say("Server", server_, "Client {PID: %d, Context: 1} encountered a fatal GPU error.", number);
      say("Server", server_, "Server is handling a fatal GPU error.");
      for (const int client : clients_)
        say("Server", server_, "Client {PID: %d, Context ID: 1} on device 0 to be torn down", client);
    }
    if (line == "die") ::kill(::getpid(), SIGKILL);
    if (line == "ignore_quit") ignores_quit_ = true;
    if (line == "ignore_term") std::signal(SIGTERM, SIG_IGN);
    if (line == "hang") ::kill(::getpid(), SIGSTOP);
    if (line.starts_with("quit") && !ignores_quit_) is_quitting_ = true;
    return "";
  }

  int listener_ = -1, server_ = 0, to_server_ = -1;
  bool ignores_quit_ = false, is_quitting_ = false, is_ending_ = false;
  std::vector<int> clients_;
};

int ask() {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un where = address();
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    std::puts("Cannot find MPS control daemon process");
    return 1;
  }
  char part[4096];
  for (ssize_t got = 0; (got = ::read(STDIN_FILENO, part, sizeof part)) > 0;)
    if (::write(socket, part, static_cast<std::size_t>(got)) != got) return 1;
  ::shutdown(socket, SHUT_WR);
  for (ssize_t got = 0; (got = ::read(socket, part, sizeof part)) > 0;)
    if (::write(STDOUT_FILENO, part, static_cast<std::size_t>(got)) != got) return 1;
  return 0;
}

}  // namespace

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  if (count > 1 && std::strcmp(words[1], "-f") == 0) return Control().run();
  return ask();
}
