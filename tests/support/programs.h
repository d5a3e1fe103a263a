// Runs programs as a user would, and keeps what they print.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace weir::testing {

struct Outcome {
  int code = -1;  // exit code, or 128 + signal
  std::string out, err;
};

// Arguments go to the program as they are: no shell in between.
Outcome run_program(const std::vector<std::string>& command, const std::filesystem::path& folder = ".");

// Starts a program without waiting; what it prints goes to files.
pid_t start_program(const std::vector<std::string>& command, const std::filesystem::path& folder,
                    const std::string& out, const std::string& err);
// Returns its exit code, or 128 + signal.
int wait_for(pid_t process);
// Whether it has ended; wait_for() still returns its code.
bool has_ended(pid_t process);
// Returns once the process has a handler for the signal: earlier it would only die of it. Gives up after a minute.
// `is_fork`: of this very program, which runs on without another one.
void await_handler(pid_t process, int signal, bool is_fork = false);

// An empty folder that goes away with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace weir::testing
