#include "report/text/step_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text_gate.h"
#include "base/units.h"
#include "kernel/chain.h"
#include "report/text/sections.h"

namespace weir {
namespace {

std::string chain_text(std::int64_t packed) {
  constexpr std::string_view kNames[] = {"none", "mul", "add", "abs", "clamp", "relu", "square"};
  std::string text;
  for (int i = 0; i < kMaxChainOps; ++i) {
    const auto op = static_cast<std::size_t>(packed >> (8 * i) & 0xff);
    if (op != 0 && op < std::size(kNames)) text += fmt::format("{}{}", text.empty() ? "" : " ", kNames[op]);
  }
  return text;
}

}  // namespace

std::string command_name(const Command& command) {
  switch (command.kind) {
    case CommandKind::copy:
      return "copy";
    case CommandKind::collective:
      return std::string(name_of(command.collective));
    default:
      return std::string(kernel(command.kernel).name);
  }
}

std::string command_size(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  const auto accesses = step.accesses(id);
  if (command.kind == CommandKind::copy || command.kind == CommandKind::collective) {
    const Place from = step.buffers()[accesses[0].buffer].place, to = step.buffers()[accesses[1].buffer].place;
    const std::string size = format_bytes(accesses[0].size_bytes);
    if (command.kind == CommandKind::collective) return size;
    return fmt::format("{}, {}",
                       from == to            ? "here to here"
                       : to == Place::device ? "host to device"
                                             : "device to host",
                       size);
  }
  const std::string_view type = name_of(command.shape.type);
  constexpr std::int64_t kMinPacked = 1 << 24;
  const auto& dims = command.shape.dims;
  const std::string name = command_name(command);
  if (name == "chain") return fmt::format("{}: {}", dims[0], chain_text(dims[1]));
  const std::size_t shown = name == "gemm" ? 3 : dims.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    // Options that some kernels pack into a dim would only confuse.
    if (dims[i] > 0 && dims[i] < kMinPacked) text += fmt::format("{}{}", text.empty() ? "" : " x ", dims[i]);
  return text.empty() ? std::string(type) : fmt::format("{}, {}", text, type);
}

std::string describe_step(const StepView& view) {
  const Step& step = view.step;
  std::string out = fmt::format("{}: one step, not run\n\n", for_line(view.workload));
  const auto line = [&](std::string_view name, const std::string& text) {
    out += fmt::format("  {:<12}{}\n", name, wrapped(for_line(text), 14));
  };
  std::string params;
  for (const auto& [name, value] : view.params)
    params += fmt::format("{}{}={}", params.empty() ? "" : ", ", name, value);
  line("scale", fmt::format("{}, {}", view.scale, view.precision));
  if (!params.empty()) line("parameters", params);
  line("streams", view.placement.stream_count == view.streams
                      ? fmt::format("{}, placed {}", view.streams, view.placement.name)
                      : fmt::format("{} of the workload placed on {} ({})", view.streams, view.placement.stream_count,
                                    view.placement.name));
  std::map<std::string, std::size_t> by_name;
  std::vector<std::size_t> by_role(view.roles.size(), 0);
  for (const Command& command : step.commands()) {
    ++by_name[command.kind == CommandKind::host ? command_name(command) + " on the host" : command_name(command)];
    if (command.role < by_role.size()) ++by_role[command.role];
  }
  std::string names, roles;
  for (const auto& [name, count] : by_name) names += fmt::format("{}{} {}", names.empty() ? "" : ", ", count, name);
  for (std::size_t i = 0; i < by_role.size(); ++i)
    roles += fmt::format("{}{} {}", roles.empty() ? "" : ", ", by_role[i], view.roles[i]);
  line("commands", fmt::format("{}: {}", step.commands().size(), names));
  if (view.roles.size() > 1) line("roles", roles);
  const auto carried =
      std::count_if(view.waits.begin(), view.waits.end(), [](const auto& wait) { return wait.is_carried; });
  line("waits", fmt::format("{} between streams; {} more where iterations are pipelined",
                            view.waits.size() - static_cast<std::size_t>(carried), carried));
  line("memory",
       fmt::format("{} on the device, {} on the host, {} buffers", format_bytes(step.size_bytes(Place::device)),
                   format_bytes(step.size_bytes(Place::host)), step.buffers().size()));
  const Cost cost = step.cost();
  line("cost", fmt::format("{}FLOP, {}B least traffic", format_quantity(cost.flop), format_quantity(cost.bytes)));
  line("work", step.counted() ? fmt::format("counted by the device ({})", view.unit)
                              : fmt::format("{:.6g} per iteration ({})", step.work(), view.unit));
  return out;
}

}  // namespace weir
