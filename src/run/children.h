// Child processes that this one starts and waits for: this program again, with other arguments and another environment,
// because drivers read some settings only once. No shell in between. Knows no experiment.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/process.h"
#include "device/device.h"

namespace weir {

inline constexpr std::int64_t kChildLimitNs = 600'000'000'000;           // the default limit for one child
inline constexpr std::int64_t kNoChildLimit = 365 * 86'400'000'000'000;  // a year: the run itself has no limit

// The executable file of this process.
std::filesystem::path own_binary();
// A library of Weir that is loaded into other programs: next to this binary, or in ../lib/weir; empty where it was not
// built.
std::optional<std::filesystem::path> own_library(const char* file);
// LD_PRELOAD with these libraries of Weir before what it has, the last one first. One that was not built, or is there
// already, is left out, and so is one whose path has a blank or a colon: LD_PRELOAD is a list.
std::string preloaded(std::string preload, std::initializer_list<const char*> libraries);

inline constexpr int kNotExecuted = 127;  // exit code where a program could not be executed

// The error message of a child.
struct ChildError {
  std::string message;  // one line; empty where it printed nothing
  std::string hint;
};
ChildError child_error_in(const std::string& error_output);

struct ChildRequest {
  std::string program;                 // empty: this program
  std::vector<std::string> arguments;  // for weir: {"run", "moe", ...}; must not write other files
  Variables variables;                 // set in the child, in addition to this process's environment
  std::vector<std::string> absent;     // variables of this process that the child does not get
  std::int64_t limit_ns = kChildLimitNs;
  std::string output_flag = "-o";  // the flag that names the child's output file
  // For a child that writes a folder: its name, and the name of the document in it. It is kept.
  std::filesystem::path folder;
  std::string document = "document.json";
};

enum class ChildEnd : std::uint8_t {
  done,         // exit code 0, and a readable document
  failed,       // `message` explains why
  timed_out,    // it was killed, with all its descendants
  interrupted,  // this process was (or the child); the child was ended
};

struct ChildOutcome {
  ChildEnd end = ChildEnd::failed;
  int code = -1;        // exit code, or 128 + signal
  Json document;        // null unless `done`, or `failed` and the child wrote one that says so
  std::string message;  // the error, in one line; empty for `done`
  std::string hint;     // what the child advised
  std::int64_t wall_ns = 0;
};

// Runs this program again with `-o FILE` (in a private folder, removed afterwards, unless a folder is given) and
// `--quiet`, and reads the document. Call from a thread that outlives the child: it dies with it. The child is ended
// when `stop` is set.
ChildOutcome run_child(const ChildRequest& request, const std::atomic<bool>& stop);
// The same where the document is indispensable: fails, or rejects if the child did. Empty where it was interrupted.
std::optional<Json> child_document(const ChildRequest& request, const std::atomic<bool>& stop);

// How the number of hardware queues of a device is set: by a variable that its driver reads once, or by a flag.
struct QueueSetting {
  std::string variable;  // empty: by the flag
  int most = 0;          // the largest allowed number

  void apply(int queues, ChildRequest& request) const;
  // As a user would type it: "CUDA_DEVICE_MAX_CONNECTIONS=32", "--hw-queues 32".
  std::string text(int queues) const;
};
// The device name for a child: the device that was found, because `auto` may find another one; a simulated one as
// given, because that may be a file.
std::string child_device(const DeviceInfo& info, const std::string& asked);
// Rejects a device whose number of queues cannot be set.
QueueSetting queue_setting(const DeviceInfo& info);

}  // namespace weir
