// The contents of buffers before the first iteration and after reset(), the reported memory of a session, and memory
// outside sessions.
#include <fmt/format.h>

#include <cstring>

#include "lab/conformance/checks.h"
#include "lab/conformance/kernel_case.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

// All kinds of initial contents, and one buffer that is written.
Step contents_step() {
  StepBuilder builder(5);
  for (const ElementType type : kFloats) {
    builder.uniform(type, 100'003, 3.7f, 0.3f);
    builder.constant(type, 777, 1.25f);
    builder.ramp(type, 1'001, 8.0f, -1.0f);
    builder.output(type, 1'025);
    builder.host(type, 1'000, Init::uniform);
    builder.host(type, 3, Init::constant, 1, 2.5f);
  }
  builder.indices(10'007);
  builder.integers(5'001, 77);
  builder.constant(ElementType::i32, 33, 7);
  builder.ramp(ElementType::i32, 100);
  builder.output(ElementType::i32, 33);
  const BufferId written = builder.output(ElementType::f32, 64);
  builder.launch("fill", {}, {.dims = {64, 0}, .scalars = {9}}, {{written}});
  return std::move(builder).seal(1);
}

CaseOutcome initial_and_reset(Subject& subject) {
  const Step step = contents_step();
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {});
  const Contents initial = initial_contents(step);
  const auto submitter = inline_submitter(step, *session);
  for (int round = 0; round < 2; ++round) {
    if (const std::string d = difference_of(step, read_all(*session, step), initial); !d.empty())
      return failed((round == 0 ? "after prepare(): " : "after reset(): ") + d);
    iterate(*session, *submitter, {});
    if (const std::string d = difference_of(step, read_all(*session, step), reference(step, 1)); !d.empty())
      return failed("after an iteration: " + d);
    session->reset();
  }
  return passed();
}

CaseOutcome memory_use(Subject& subject) {
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 16 << 20);
  builder.launch("fill", {}, {.dims = {16 << 20, 0}}, {{data}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const MemoryUse use = subject.device.prepare(step, placement, {})->memory();
  const bool is_complete = use.allocated_bytes && use.reserved_bytes && use.peak_bytes;
  if (!is_complete && use.reason.empty()) return failed("a figure is missing without a reason");
  if (use.allocated_bytes && *use.allocated_bytes < step.size_bytes(Place::device))
    return failed(
        fmt::format("{} bytes of buffers are {} bytes", step.size_bytes(Place::device), *use.allocated_bytes));
  if (use.allocated_bytes && use.reserved_bytes && *use.reserved_bytes < *use.allocated_bytes)
    return failed(fmt::format("{} bytes were reserved for {}", *use.reserved_bytes, *use.allocated_bytes));
  if (use.reserved_bytes && use.peak_bytes && *use.peak_bytes < *use.reserved_bytes)
    return failed(
        fmt::format("the peak of {} bytes is below the {} that are reserved", *use.peak_bytes, *use.reserved_bytes));
  return passed();
}

CaseOutcome outside_of_sessions(Subject& subject, Place place) {
  const auto memory = subject.device.memory(place);
  std::vector<std::byte*> taken;
  std::string problem;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4'097}, std::size_t{1} << 20}) {
    std::byte* const at = memory->allocate(bytes);
    if (at == nullptr) {
      problem = fmt::format("cannot allocate {} bytes", bytes);
      break;
    }
    taken.push_back(at);
    if (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) problem = "memory is not aligned to 64 bytes";
    std::vector<std::byte> sent(bytes), received(bytes);
    for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<std::byte>(random_bits(bytes, i));
    memory->write(at, sent);
    memory->read(at, received);
    if (sent != received) problem = fmt::format("{} bytes come back changed", bytes);
    if (memory->is_host_accessible() && std::memcmp(at, sent.data(), bytes) != 0)
      problem = fmt::format("the host sees other bytes than were written, of {}", bytes);
  }
  for (std::byte* const at : taken) memory->release(at);
  return problem.empty() ? passed() : failed(problem);
}

}  // namespace

Cases buffers() {
  Cases cases;
  cases.push_back({"buffers", "initial contents and reset", {.results = true}, initial_and_reset});
  cases.push_back({"buffers", "memory use", {}, memory_use});
  cases.push_back({"buffers", "outside of sessions/device", {}, [](Subject& subject) {
                     return outside_of_sessions(subject, Place::device);
                   }});
  cases.push_back({"buffers", "outside of sessions/host", {}, [](Subject& subject) {
                     return outside_of_sessions(subject, Place::host);
                   }});
  return cases;
}

}  // namespace weir::conformance
