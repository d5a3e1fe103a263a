// A workload as its file says it: names resolved, expressions compiled, nothing evaluated; and the steps from its text
// to a step. Knows no device.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/yaml.h"
#include "step/step.h"
#include "step/workload/expression.h"
#include "step/workload/params.h"
#include "step/workload/yaml.h"

namespace weir {

// The names that a file uses for a kernel's dims, scalars and operands.
struct YamlKernel {
  // A size or scalar by name. `initial` where it may be left out.
  struct Slot {
    std::string_view name;
    int index = 0;  // into KernelShape::dims or ::scalars
    bool is_optional = false;
    double initial = 0;
    std::int64_t lowest = 1;
    std::int64_t highest = std::int64_t{1} << 40;
    int bit = -1;  // shares its dim with others, from this bit on
  };
  enum class Types : std::uint8_t { floating, any, f32 };

  std::string_view name;
  std::span<const Slot> dims;
  std::span<const Slot> scalars;
  std::span<const std::string_view> operands;
  Types types = Types::floating;
  bool can_work_in_place = false;  // an operand may be read and written at once
  bool counts_itself = false;      // `count` may be left out: it is the written operand's
};

// Null for kernels without an entry, which take plain lists.
const YamlKernel* yaml_kernel(std::string_view name);

struct YamlExpression {
  YamlPlace place;
  Expression expression;
};

enum class YamlInit : std::uint8_t { output, uniform, sharded, constant, ramp, indices, integers };

struct YamlBuffer {
  YamlPlace place;
  std::string name;
  std::optional<ElementType> type;  // empty: what the run's precision stores
  Place where = Place::device;
  YamlInit init = YamlInit::output;
  YamlExpression count;
  std::optional<YamlExpression> scale, offset, value, limit;
};

// name, name[offset:count], name[offset:], name[:count]
struct YamlOperand {
  YamlPlace place;
  std::size_t buffer = 0;
  std::optional<Expression> offset, count;
};

// A dim or scalar of a kernel; `slot` where the kernel has names.
struct YamlSize {
  const YamlKernel::Slot* slot = nullptr;
  std::size_t index = 0;
  YamlExpression value;
};

struct YamlCommand {
  YamlPlace place;
  CommandKind kind = CommandKind::kernel;
  CollectiveOp collective{};
  KernelId kernel{};
  const YamlKernel* names = nullptr;
  std::vector<YamlSize> dims, scalars;
  std::int64_t chain = 0;                  // packed operations
  std::vector<YamlOperand> reads, writes;  // a copy has one of each
  std::optional<YamlExpression> stream;    // empty: the enclosing per_stream's, or 0
  std::optional<std::size_t> own_stream;   // variable of the enclosing per_stream
  std::optional<YamlExpression> priority;
  std::uint8_t role = 0;
  std::string name;
  std::vector<std::pair<YamlPlace, std::string>> after;
  std::vector<std::size_t> after_commands;
  std::vector<std::size_t> loops;  // ids of the loops that it stands in, outermost first
};

// A command, or a loop over more of them.
struct YamlItem {
  enum class Kind : std::uint8_t { command, repeat, per_stream };
  Kind kind = Kind::command;
  YamlPlace place;
  std::optional<YamlExpression> when;
  std::size_t command = 0;              // into YamlDefinition::commands
  std::optional<YamlExpression> count;  // of a repeat
  std::vector<YamlItem> items;
};

struct YamlDefinition {
  // Variables of every expression: these, the parameters, then one per level of loops.
  enum Variable : std::size_t { kStreams, kRanks, kRank, kFirstParam };

  YamlLimits limits;
  YamlPlace place;
  std::string name, unit;
  StreamRange streams;
  std::vector<ParamSpec> params;
  std::vector<std::string> roles;
  std::vector<YamlBuffer> buffers;
  std::vector<YamlCommand> commands;
  std::vector<YamlItem> items;
  std::size_t loop_levels = 0;
  // Work of an iteration: counted in commands, or in flop or bytes times `work_scale`, or by an expression.
  enum class Work : std::uint8_t { commands, flop, bytes, expression };
  Work work = Work::commands;
  double work_scale = 1;
  std::optional<YamlExpression> work_expression;
};

// `variables` are the names that an expression may use there.
YamlExpression read_expression(const YamlNode& node, std::span<const std::string> variables);

// Fills commands, items, roles and loop levels of `definition`, whose buffers are known already.
void read_commands(const YamlNode& root, std::span<const std::string> variables, YamlDefinition& definition);

// One command after loops were expanded. Its loops' variables begin at `first_value` of a list shared by all.
struct YamlInstance {
  std::uint32_t command = 0;
  std::uint32_t first_value = 0;
};

// The order of issue: that of the file, changed only where `after` asks for it. A command waits for those instances of
// another that share the loops in which both stand. Rejects a cycle by names and lines.
std::vector<std::uint32_t> issue_order(const YamlDefinition& definition, std::span<const YamlInstance> instances,
                                       std::span<const std::int32_t> loop_values);

// Builds a step: expands loops, evaluates sizes, launches. Everything that a builder or a kernel would trust is checked
// here first, so that messages can name the line.
Step build_yaml_step(const YamlDefinition& definition, const Params& params, int stream_count);

}  // namespace weir
