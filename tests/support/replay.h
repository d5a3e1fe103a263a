// Runs a step in order, in host memory, by the catalogue's references: what it computes if there are no streams at all.
// Tests may look at the data between commands, and change it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "step/step.h"

namespace weir {

class Replay {
 public:
  explicit Replay(const Step& step);

  // `before` is called ahead of each command.
  void run(const std::function<void(CommandId)>& before = {});
  // The same command by the body that the cpu device runs.
  void run_body(CommandId id);

  std::span<std::byte> bytes(const Access& access);
  template <class T>
  std::span<T> values(const Access& access) {
    return {reinterpret_cast<T*>(bytes(access).data()), access.size_bytes / sizeof(T)};
  }
  std::vector<std::byte> copy_of(const Access& access);

 private:
  KernelCall call_of(CommandId id);

  const Step& step_;
  std::vector<std::vector<std::byte>> buffers_;
};

// Floats of any stored type; poison is NaN.
std::vector<double> floats(ElementType type, std::span<const std::byte> bytes);
std::vector<std::int32_t> integers(std::span<const std::byte> bytes);

// The kernel that a command launches; empty for copies and collectives.
std::string_view kernel_name(const Step& step, CommandId id);
std::vector<CommandId> launches_of(const Step& step, std::string_view kernel);
bool overlaps(const Access& a, const Access& b);
// Commands before `id` that wrote what `access` covers and nobody overwrote since, in order; with `id` at the end of
// the step, what the step leaves behind.
std::vector<CommandId> last_writers(const Step& step, const Access& access, CommandId id);

}  // namespace weir
