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

struct Outcome {
  enum class Status : std::uint8_t { passed, skipped, failed, not_run };
  Status status = Status::passed;
  std::string text;  // why it was skipped or not run; what is wrong

  bool is_passed() const { return status == Status::passed; }
};
std::string_view name_of(Outcome::Status status);

inline Outcome passed() { return {}; }
inline Outcome skipped(std::string reason) { return {Outcome::Status::skipped, std::move(reason)}; }
inline Outcome failed(std::string what) { return {Outcome::Status::failed, std::move(what)}; }

// The device that is examined.
struct Subject {
  Device& device;
  DeviceInfo info;
  Device* cpu = nullptr;  // what it is compared with; null: the device is that itself
  // Opens the same device again; empty: there is no second one to be had.
  std::function<std::unique_ptr<Device>(const DeviceOptions&)> open_again;
};

// What a case needs, as DeviceInfo declares it. A device without it is skipped, and the reason is the device's.
struct Needs {
  bool results = false;  // what was computed can be read
  bool runs = false;     // commands take place, be it in virtual time
  bool graphs = false;
  bool host_functions = false;
  bool host_memory = false;
  bool kernel_clock = false;
  bool compute_units = false;
  bool second_device = false;  // Subject::open_again
  std::optional<Precision> precision = {};
};
// Why the device cannot have a case that needs this; empty: it can.
std::string reason_to_skip(const Subject& subject, const Needs& needs);

struct ConformanceCase {
  std::string group;
  std::string name;
  Needs needs;
  std::function<Outcome(Subject&)> examine;
  std::string_view kernel = {};          // that it is about; empty: none in particular
  std::optional<ElementType> type = {};  // of that kernel

  std::string full_name() const { return group + "/" + name; }
};

// All of them, group by group. Made once.
std::span<const ConformanceCase> cases();

// Those whose full name matches one of the patterns: with * or ? as file names do, without as a part of it. No pattern:
// all.
std::vector<const ConformanceCase*> matching(std::span<const ConformanceCase> all,
                                             std::span<const std::string> patterns);

struct CaseResult {
  const ConformanceCase* which = nullptr;
  Outcome outcome;
  double seconds = 0;
};

struct Report {
  DeviceInfo info;
  std::vector<CaseResult> results;  // one for each case that was asked for, in order
  std::string lost;                 // what the device said when it was found not to work any more; empty: it works
  bool is_interrupted = false;

  std::size_t count(Outcome::Status status) const;
  // Nothing has failed and nothing is missing.
  bool has_passed() const { return count(Outcome::Status::failed) == 0 && count(Outcome::Status::not_run) == 0; }
};

struct Control {
  const std::atomic<bool>* stop = nullptr;  // set: the current case is finished, the rest is not run
  std::function<void(const ConformanceCase&, int done, int total)> progress;
};

// Runs the cases one after the other. A case that throws has failed; a device that cannot run the simplest step after
// that is lost, and the rest is not run.
Report examine(Subject& subject, std::span<const ConformanceCase* const> cases, const Control& control = {});

}  // namespace weir::conformance
