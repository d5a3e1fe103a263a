#include "trace/import/xla_scope.h"

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t kDeepestScope = 64;

// Splits at slashes outside of parentheses: a name may have some in it.
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size() && path[i] == '(') ++depth;
    if (i < path.size() && path[i] == ')') depth = std::max(0, depth - 1);
    if (i < path.size() && (path[i] != '/' || depth > 0)) continue;
    if (i > from) parts.push_back(path.substr(from, i - from));
    from = i + 1;
  }
  return parts;
}

}  // namespace

XlaScope xla_scope(std::string_view path) {
  XlaScope scope;
  // TensorFlow and old versions of JAX add the type: "MLP/Dense_0/dot_general:dot_general"
  path = path.substr(0, path.find(':'));
  std::vector<std::string_view> parts = parts_of(path);
  if (!parts.empty()) parts.pop_back();
  bool is_forward = false;
  for (std::string_view part : parts) {
    // A transformation holds what it transforms: transpose(jvp(MLP)). jit(f) names a function, not a part of the model.
    bool is_function = false;
    while (part.ends_with(')')) {
      const std::size_t open = part.find('(');
      if (open == std::string_view::npos || open == 0) break;
      const std::string_view transformation = part.substr(0, open);
      if (transformation == "transpose") scope.phase = Phase::backward;
      is_forward = is_forward || transformation == "jvp";
      is_function = is_function || transformation == "jit" || transformation == "pjit" || transformation == "pmap";
      part = part.substr(open + 1, part.size() - open - 2);
    }
    if (!is_function && !part.empty() && scope.modules.size() < kDeepestScope) scope.modules.emplace_back(part);
  }
  if (scope.phase == Phase::unknown && is_forward) scope.phase = Phase::forward;
  return scope;
}

void XlaScopes::add(std::uint64_t correlation, const XlaOperation& of) {
  const std::uint32_t program = of.program.empty() ? kNoModule : to_.module_in(kNoModule, to_.name(of.program));
  const std::uint32_t number = operation(of, program);
  const auto [at, is_new] = calls_.try_emplace(correlation, Known{number, program});
  if (is_new) to_.charge(sizeof(*at) * 2);
  Known& known = at->second;
  if (known.operation == number) return;
  if (known.program != program) known.program = kNoModule;
  known.operation = known.program == kNoModule ? kNoOperation : to_.operation({.module = known.program});
}

std::uint32_t XlaScopes::operation(const XlaOperation& of, std::uint32_t program) {
  std::string key(of.program);
  key.append(1, '\n').append(of.path).append(1, '\n').append(of.name);
  if (const auto found = operations_.find(key); found != operations_.end()) return found->second;
  const XlaScope scope = xla_scope(of.path);
  std::uint32_t module = program;
  for (const std::string& part : scope.modules) module = to_.module_in(module, to_.name(part));
  const std::uint32_t number = to_.operation({.name = to_.name(of.name), .module = module, .phase = scope.phase});
  to_.charge(2 * key.size() + 64);
  operations_.emplace(std::move(key), number);
  return number;
}

std::uint32_t XlaScopes::of(std::uint64_t correlation) const {
  const auto found = calls_.find(correlation);
  return found != calls_.end() ? found->second.operation : kNoOperation;
}

}  // namespace weir
