// Other processes that this one starts and waits for: this very program again, with other arguments and another
// environment, because drivers read some settings once. No shell in between. Knows no experiment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/process.h"
#include "device/device.h"

namespace weir::cli {

inline constexpr std::int64_t kChildLimitNs = 600'000'000'000;  // what one child may take unless told otherwise

// The file that this process runs.
std::filesystem::path own_binary();
// A library of ours that lives in other programs: beside this one, or in ../lib/weir; nothing where it was not built.
std::optional<std::filesystem::path> own_library(const char* file);

inline constexpr int kNotExecuted = 127;  // the code of a program that could not be

// What a program of ours complained of.
struct Complaint {
  std::string message;  // one line; empty where it said nothing
  std::string hint;
};
Complaint complaint_in(const std::string& said);

struct ChildRequest {
  std::string program;                 // empty: this very one
  std::vector<std::string> arguments;  // of weir: {"run", "moe", ...}; must not write files of its own
  Variables variables;                 // set in the child, on top of our own environment
  std::int64_t limit_ns = kChildLimitNs;
  std::string output_flag = "-o";  // how the child is told where its document goes
};

enum class ChildEnd : std::uint8_t {
  done,         // exit code 0, and a document that can be read
  failed,       // `message` says why
  timed_out,    // it was killed with all that it had started
  interrupted,  // we were (or it was); it was ended
};

struct ChildOutcome {
  ChildEnd end = ChildEnd::failed;
  int code = -1;        // exit code, or 128 + signal
  Json document;        // null unless `done`
  std::string message;  // what is wrong, in one line; empty where it is done
  std::string hint;     // what the child advised
  std::int64_t wall_ns = 0;
};

// Runs this program again with `-o FILE` (in a private folder, removed again) and `--quiet`, and reads the document.
// Call from the thread that goes on living: the child dies with it. Catches interrupts from here on.
ChildOutcome run_child(const ChildRequest& request);
// The same where there is no going on without: fails, or rejects where the child did. Nothing where we were
// interrupted.
std::optional<Json> child_document(const ChildRequest& request);

// How the number of hardware queues of a device is chosen: by a variable that its driver reads once, or by a flag.
struct QueueSetting {
  std::string variable;  // empty: it is the flag
  int most = 0;          // that may be asked for

  void apply(int queues, ChildRequest& request) const;
  // As a user would type it: "CUDA_DEVICE_MAX_CONNECTIONS=32", "--hw-queues 32".
  std::string text(int queues) const;
};
// How a child names the device: as it was found, because `auto` may find another one; a simulated one as it was asked
// for, because that may be a file.
std::string child_device(const DeviceInfo& info, const std::string& asked);
// Rejects a device whose number of queues cannot be chosen.
QueueSetting queue_setting(const DeviceInfo& info);

}  // namespace weir::cli
