#include "support/programs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "support/text.h"

namespace weir::testing {

pid_t start_program(const std::vector<std::string>& command, const std::filesystem::path& folder,
                    const std::string& out, const std::string& err) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const int in = ::open("/dev/null", O_RDONLY);
    const int to_out = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int to_err = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in < 0 || to_out < 0 || to_err < 0 || ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::dup2(in, STDIN_FILENO);
    ::dup2(to_out, STDOUT_FILENO);
    ::dup2(to_err, STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool has_ended(pid_t process) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

void await_handler(pid_t process, int signal, bool is_fork) {
  // Between fork and exec the child still has our own handlers, which other tests may have set.
  const auto program_of = [](const std::string& id) {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + id + "/exe", ignored);
  };
  const std::filesystem::path own = program_of("self");
  for (int i = 0; i < 60'000; ++i) {
    if (!is_fork && program_of(std::to_string(process)) == own) {
      ::usleep(1000);
      continue;
    }
    // SigCgt:	0000000000004002
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigCgt:")) continue;
      const unsigned long long caught = std::strtoull(line.c_str() + 7, nullptr, 16);
      if ((caught >> (signal - 1) & 1) != 0) return;
    }
    ::usleep(1000);
  }
}

Outcome run_program(const std::vector<std::string>& command, const std::filesystem::path& folder) {
  const Folder kept;
  Outcome outcome;
  outcome.code = wait_for(start_program(command, folder, kept / "out", kept / "err"));
  outcome.out = content(kept / "out");
  outcome.err = content(kept / "err");
  return outcome;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "weir_cli_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace weir::testing
