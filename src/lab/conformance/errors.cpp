// Requests that a device must reject with a helpful message, and that it works afterwards.
#include <fmt/format.h>

#include "base/error.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"
#include "lab/conformance/round_trip.h"

namespace weir::conformance {
namespace {

CaseOutcome works_afterwards(Subject& subject) {
  const Step step = random_step(51, 2);
  CaseOutcome outcome = same_buffers(subject, step, natural(step), {});
  if (!outcome.is_passed()) outcome.text = "afterwards the device does not work: " + outcome.text;
  return outcome;
}

// Sixteen times the device's memory.
CaseOutcome too_large(Subject& subject) {
  const std::optional<std::uint64_t> memory = subject.info.memory_bytes.value;
  if (!memory) return skipped("how much memory it has is not known: " + subject.info.memory_bytes.reason);
  const std::uint64_t count = *memory / 4 * 16;
  StepBuilder builder(1);
  const BufferId big = builder.output(ElementType::f32, count);
  builder.launch("fill", {}, {.dims = {static_cast<std::int64_t>(count), 0}}, {{big}});
  const Step step = std::move(builder).seal(1);
  if (CaseOutcome outcome = rejected(subject, step, {}, "iB"); !outcome.is_passed()) return outcome;
  return works_afterwards(subject);
}

CaseOutcome unknown_number(Subject& subject) {
  const std::string name = subject.info.backend + ":977";
  try {
    open_device(name, {});
  } catch (const Error& error) {
    return error.fault == Fault::input
               ? passed()
               : failed(fmt::format("{} fails instead of being rejected: {}", name, error.what()));
  }
  return failed(fmt::format("there is a device {}", name));
}

CaseOutcome declares_reasons(Subject& subject) {
  const DeviceInfo& info = subject.info;
  const std::pair<const char*, const Capability*> all[] = {{"graphs", &info.graphs},
                                                           {"priorities", &info.priorities},
                                                           {"host functions", &info.host_functions},
                                                           {"host memory", &info.host_memory},
                                                           {"a clock in kernels", &info.kernel_clock},
                                                           {"compute units", &info.compute_units}};
  for (const auto& [name, capability] : all)
    if (!*capability && capability->reason.empty())
      return failed(fmt::format("{}: not offered, without a reason", name));
  if (info.name.empty() || info.backend.empty() || info.model.empty())
    return failed(fmt::format("it is called '{}', backend '{}', model '{}'", info.name, info.backend, info.model));
  if (info.precisions.empty()) return failed("it offers no precision");
  const std::pair<const char*, bool> facts[] = {
      {"hardware queues", !info.hardware_queues.value && info.hardware_queues.reason.empty()},
      {"compute units", !info.multiprocessors.value && info.multiprocessors.reason.empty()},
      {"copy engines", !info.copy_engines.value && info.copy_engines.reason.empty()},
      {"memory", !info.memory_bytes.value && info.memory_bytes.reason.empty()}};
  for (const auto& [name, is_missing] : facts)
    if (is_missing) return failed(fmt::format("{}: unknown, without a reason", name));
  return passed();
}

}  // namespace

Cases errors() {
  Cases cases;
  cases.push_back({"errors", "a step too large", {}, too_large});
  cases.push_back({"errors", "a device number that is not there", {}, unknown_number});
  cases.push_back({"errors", "what is lacking has a reason", {}, declares_reasons});
  return cases;
}

}  // namespace weir::conformance
