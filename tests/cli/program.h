// Runs the built binary as a user would, and keeps what it said.
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
Outcome weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder = ".");

// Checks a document against that file of docs/schema with another implementation of JSON Schema. Skips, with the
// reason, where python3-jsonschema is not installed.
void expect_valid_as(const std::string& file, const std::string& schema);

// Starts a program without waiting; what it says goes to files.
pid_t start_program(const std::vector<std::string>& command, const std::filesystem::path& folder,
                    const std::string& out, const std::string& err);
// Starts the binary without waiting; `wait_for` returns its exit code, or 128 + signal.
pid_t start_weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder);
int wait_for(pid_t process);
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
