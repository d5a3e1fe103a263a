// One table of cases that every device has to pass. Knows what devices promise (device.h) and compares them with `cpu`
// and with the kernels' references; knows no device by name and prints nothing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"

namespace weir::conformance {

struct CaseOutcome {
  enum class Status : std::uint8_t { passed, skipped, failed, not_run };
  Status status = Status::passed;
  std::string text;  // why it was skipped or not run, or what is wrong

  bool is_passed() const { return status == Status::passed; }
};
std::string_view name_of(CaseOutcome::Status status);

inline CaseOutcome passed() { return {}; }
inline CaseOutcome skipped(std::string reason) { return {CaseOutcome::Status::skipped, std::move(reason)}; }
inline CaseOutcome failed(std::string what) { return {CaseOutcome::Status::failed, std::move(what)}; }

// The device under test.
struct Subject {
  Device& device;
  DeviceInfo info;
  Device* cpu = nullptr;  // the device to compare with; null: the device under test is the cpu itself
  // Opens the same device again; empty if that is not possible.
  std::function<std::unique_ptr<Device>(const DeviceOptions&)> open_again;
};

// What a case needs, in terms of DeviceInfo. A device without it is skipped, with the device's reason.
struct Needs {
  bool results = false;  // computed results can be read
  bool runs = false;     // commands take place, possibly in virtual time
  bool graphs = false;
  bool host_functions = false;
  bool host_memory = false;
  bool kernel_clock = false;
  bool compute_units = false;
  bool second_device = false;  // Subject::open_again
  std::optional<Precision> precision = {};
};
// Why the device cannot run a case with these needs; empty if it can.
std::string reason_to_skip(const Subject& subject, const Needs& needs);

struct ConformanceCase {
  std::string group;
  std::string name;
  Needs needs;
  std::function<CaseOutcome(Subject&)> examine;
  std::string_view kernel = {};          // under test; empty: none in particular
  std::optional<ElementType> type = {};  // of that kernel

  std::string full_name() const { return group + "/" + name; }
};

// All cases, group by group. Created once.
std::span<const ConformanceCase> cases();

// The cases whose full name matches one of the patterns: with * or ? like file names, otherwise as a substring. Without
// patterns: all.
std::vector<const ConformanceCase*> matching(std::span<const ConformanceCase> all,
                                             std::span<const std::string> patterns);

struct CaseResult {
  const ConformanceCase* which = nullptr;
  CaseOutcome outcome;
  double seconds = 0;
};

struct ConformanceResults {
  DeviceInfo info;
  std::vector<CaseResult> results;  // one for each requested case, in order
  std::string lost;                 // the device's error when it stopped working; empty: it works
  bool is_interrupted = false;

  std::size_t count(CaseOutcome::Status status) const;
  // No case has failed, and none was left out; skipped ones do not matter.
  bool has_passed() const {
    return count(CaseOutcome::Status::failed) == 0 && count(CaseOutcome::Status::not_run) == 0;
  }
};

struct Control {
  const std::atomic<bool>* stop = nullptr;  // if set, the current case is finished and the rest is not run
  std::function<void(const ConformanceCase&, int done, int total)> progress;
};

// Runs the cases one after the other. A case that throws has failed; if the device then cannot run the simplest step,
// it is lost, and the rest is not run.
ConformanceResults examine(Subject& subject, std::span<const ConformanceCase* const> cases,
                           const Control& control = {});

}  // namespace weir::conformance
