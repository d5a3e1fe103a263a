// Which operation of which program, in which part of the model, kernels of XLA are of. Knows how JAX writes scopes;
// reads no file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/timeline_builder.h"

namespace weir {

struct XlaOperation {
  std::string_view name;     // "fusion.12"
  std::string_view program;  // "jit_train_step"
  std::string_view path;     // "jit(train_step)/transpose(jvp(MLP))/Dense_0/dot_general"
};

// "jit(train_step)/transpose(jvp(MLP))/Dense_0/dot_general": MLP and Dense_0, backward. The last part is the primitive.
struct XlaScope {
  std::vector<std::string> modules;
  Phase phase = Phase::unknown;
};
XlaScope xla_scope(std::string_view path);

class XlaScopes {
 public:
  explicit XlaScopes(TimelineBuilder& to) : to_(to) {}

  // A kernel that the call `correlation` launched is of this operation. A call that launched kernels of several (a
  // graph) is of their program only.
  void add(std::uint64_t correlation, const XlaOperation& operation);
  // kNoOperation where none is known.
  std::uint32_t of(std::uint64_t correlation) const;

 private:
  struct Known {
    std::uint32_t operation = kNoOperation, program = kNoModule;
  };
  std::uint32_t operation(const XlaOperation& operation, std::uint32_t program);

  TimelineBuilder& to_;
  std::unordered_map<std::uint64_t, Known> calls_;             // by correlation
  std::unordered_map<std::string, std::uint32_t> operations_;  // by program, path and name
};

}  // namespace weir
