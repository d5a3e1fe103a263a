#include "support/replay.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"

namespace weir {

Replay::Replay(const Step& step) : step_(step) {
  for (const Buffer& buffer : step.buffers()) {
    buffers_.emplace_back(buffer.size_bytes());
    initialise(buffer, buffers_.back());
  }
}

KernelCall Replay::call_of(CommandId id) {
  KernelCall call{step_.commands()[id].shape, {}};
  const auto accesses = step_.accesses(id);
  for (std::size_t i = 0; i < accesses.size(); ++i) call.operands[i] = bytes(accesses[i]).data();
  return call;
}

void Replay::run(const std::function<void(CommandId)>& before) {
  for (CommandId id = 0; id < step_.commands().size(); ++id) {
    if (before) before(id);
    const Command& command = step_.commands()[id];
    if (command.kind == CommandKind::collective) fail("a replay has one rank");
    if (command.kind == CommandKind::copy) {
      std::memmove(bytes(step_.accesses(id)[1]).data(), bytes(step_.accesses(id)[0]).data(),
                   step_.accesses(id)[0].size_bytes);
    } else {
      kernel(command.kernel).reference(call_of(id));
    }
  }
}

void Replay::run_body(CommandId id) {
  const Kernel& body = kernel(step_.commands()[id].kernel);
  const KernelCall call = call_of(id);
  for (std::uint32_t block = 0; block < body.blocks(call.shape); ++block) body.run_block(call, block);
}

std::span<std::byte> Replay::bytes(const Access& access) {
  return std::span(buffers_[access.buffer]).subspan(access.offset_bytes, access.size_bytes);
}

std::vector<std::byte> Replay::copy_of(const Access& access) {
  const auto here = bytes(access);
  return {here.begin(), here.end()};
}

std::vector<double> floats(ElementType type, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / size_of(type));
  with_float_type(type, [&]<class T>(T*) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = to_float(value);
    }
  });
  return values;
}

std::vector<std::int32_t> integers(std::span<const std::byte> bytes) {
  std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string_view kernel_name(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  const bool is_kernel = command.kind == CommandKind::kernel || command.kind == CommandKind::host;
  return is_kernel ? kernel(command.kernel).name : std::string_view();
}

std::vector<CommandId> launches_of(const Step& step, std::string_view kernel) {
  std::vector<CommandId> found;
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (kernel_name(step, id) == kernel) found.push_back(id);
  return found;
}

bool overlaps(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

std::vector<CommandId> last_writers(const Step& step, const Access& access, CommandId id) {
  std::vector<CommandId> found;
  // Parts of the access whose writer is still looked for, going back.
  std::map<std::uint64_t, std::uint64_t> open{{access.offset_bytes, access.offset_bytes + access.size_bytes}};
  while (id-- > 0 && !open.empty()) {
    for (const Access& write : step.accesses(id)) {
      if (!write.writes || write.buffer != access.buffer) continue;
      const std::uint64_t begin = write.offset_bytes, end = begin + write.size_bytes;
      std::map<std::uint64_t, std::uint64_t> left;
      bool is_found = false;
      for (const auto& [from, to] : open) {
        if (end <= from || to <= begin) {
          left.emplace(from, to);
          continue;
        }
        is_found = true;
        if (from < begin) left.emplace(from, begin);
        if (end < to) left.emplace(end, to);
      }
      open = std::move(left);
      if (is_found) found.push_back(id);
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace weir
