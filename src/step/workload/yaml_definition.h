// A workload as written in its file: names resolved, expressions compiled, nothing evaluated. Knows no device.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/yaml.h"
#include "step/step.h"
#include "step/workload/expression.h"
#include "step/workload/params.h"
#include "step/workload/yaml.h"
#include "step/workload/yaml_kernels.h"

namespace weir {

struct YamlExpression {
  YamlPlace place;
  Expression expression;
};

enum class YamlInit : std::uint8_t { output, uniform, sharded, constant, ramp, indices, integers };

struct YamlBuffer {
  YamlPlace place;
  std::string name;
  std::optional<ElementType> type;  // empty: the storage type of the run's precision
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

// A dim or scalar of a kernel; `slot` if the kernel has names.
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
  std::optional<YamlExpression> stream;    // empty: that of the enclosing per_stream, or 0
  std::optional<std::size_t> own_stream;   // variable of the enclosing per_stream
  std::optional<YamlExpression> priority;
  std::uint8_t role = 0;
  std::string name;
  std::vector<std::pair<YamlPlace, std::string>> after;
  std::vector<std::size_t> after_commands;
  std::vector<std::size_t> loops;  // ids of the enclosing loops, outermost first
};

// A command, or a loop over several.
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
  // Variables of every expression: these, the parameters, then one per loop level.
  enum Variable : std::size_t { kStreams, kRanks, kRank, kFirstParam };

  YamlLimits limits;
  YamlPlace place;
  std::string name, unit;
  StreamRange streams;
  std::vector<ParamSpec> params;
  std::vector<std::optional<YamlExpression>> at_least;  // by parameter: expressions see a smaller value as this one
  std::vector<std::string> roles;
  std::vector<YamlBuffer> buffers;
  std::vector<YamlCommand> commands;
  std::vector<YamlItem> items;
  std::size_t loop_levels = 0;
  // Work of an iteration: counted in commands, or in flop or bytes times `work_scale`, or given by an expression.
  enum class Work : std::uint8_t { commands, flop, bytes, expression };
  Work work = Work::commands;
  double work_scale = 1;
  std::optional<YamlExpression> work_expression;
};

}  // namespace weir
