#include "step/workload/yaml_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/options.h"
#include "kernel/chain.h"

namespace weir {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// "a[max(0, i):n], b" -> "a[max(0, i):n]", "b"
std::vector<std::string_view> split_operands(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (text[i] != ',' || depth != 0) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

class CommandReader {
 public:
  CommandReader(const YamlNode& root, std::span<const std::string> variables, YamlDefinition& definition)
      : root_(root), variables_(variables.begin(), variables.end()), definition_(definition) {
    for (std::size_t i = 0; i < definition.buffers.size(); ++i) buffers_.emplace(definition.buffers[i].name, i);
  }

  void run() {
    if (const YamlNode* const roles = root_.find("roles")) {
      for (const YamlNode& role : roles->list("a list of names")) add_role(role.place, role.scalar("a name"));
      has_roles_ = true;
    }
    definition_.items = read_items(root_.at("commands"));
    if (definition_.commands.empty()) root_.at("commands").place.refuse("there is no command in it");
    for (YamlCommand& command : definition_.commands) {
      for (const auto& [place, name] : command.after) {
        const auto found = named_.find(name);
        if (found == named_.end()) {
          std::vector<std::string> names;
          for (const auto& entry : named_) names.push_back(entry.first);
          place.refuse(fmt::format("no command has the name '{}'", shown(name)), suggestion(shown(name), names));
        }
        command.after_commands.push_back(found->second);
      }
    }
  }

 private:
  std::uint8_t add_role(const YamlPlace& place, const std::string& name) {
    if (name.empty() || name.size() > 40) place.refuse("a role's name has 1 to 40 characters");
    auto& roles = definition_.roles;
    const auto found = std::find(roles.begin(), roles.end(), name);
    if (found != roles.end()) return static_cast<std::uint8_t>(found - roles.begin());
    if (has_roles_)
      place.refuse(fmt::format("'{}' is not among the roles", shown(name)), suggestion(shown(name), roles));
    if (roles.size() == 255) place.refuse("more than 255 roles");
    roles.push_back(name);
    return static_cast<std::uint8_t>(roles.size() - 1);
  }

  std::vector<YamlItem> read_items(const YamlNode& node) {
    std::vector<YamlItem> items;
    for (const YamlNode& each : node.list("a list of commands")) items.push_back(read_item(each));
    return items;
  }

  YamlItem read_item(const YamlNode& node) {
    node.map("a command: {kernel: ..., reads: ..., writes: ...}");
    constexpr std::string_view kKinds[] = {"kernel", "host", "copy", "collective", "repeat", "per_stream"};
    std::vector<std::string_view> kinds;
    for (const std::string_view kind : kKinds)
      if (node.find(kind) != nullptr) kinds.push_back(kind);
    if (kinds.empty()) {
      node.allow({"kernel", "host", "copy", "collective", "repeat", "per_stream", "dims", "scalars", "ops", "reads",
                  "writes", "stream", "role", "priority", "name", "after", "when"});
      node.place.refuse("what is it? One of kernel, host, copy, collective, repeat and per_stream is needed");
    }
    if (kinds.size() > 1)
      node.place.refuse(fmt::format("{} and {} in one command", kinds[0], kinds[1]), "Make it two.");
    YamlItem item;
    item.place = node.place;
    if (const YamlNode* const when = node.find("when")) item.when = expression(*when);
    if (kinds[0] == "repeat") {
      node.allow({"repeat", "when"});
      read_repeat(node.at("repeat"), item);
    } else if (kinds[0] == "per_stream") {
      node.allow({"per_stream", "when"});
      item.kind = YamlItem::Kind::per_stream;
      const auto outer = own_stream_;
      own_stream_ = variables_.size();
      if (outer) node.place.refuse("per_stream inside of per_stream");
      enter(node.place, "stream");
      item.items = read_items(node.at("per_stream"));
      leave();
      own_stream_ = outer;
    } else {
      read_command(node, kinds[0]);
      item.command = definition_.commands.size() - 1;
    }
    return item;
  }

  // repeat: {for: i, count: 4, do: [...]}
  void read_repeat(const YamlNode& node, YamlItem& item) {
    node.map("{for: i, count: ..., do: [...]}");
    node.allow({"for", "count", "do"});
    item.kind = YamlItem::Kind::repeat;
    item.count = expression(node.at("count"));
    std::string name;  // no expression can refer to a loop variable without a name
    if (const YamlNode* const variable = node.find("for")) {
      name = variable->scalar("a name");
      if (!is_identifier(name) || is_expression_word(name) || name == "stream")
        variable->place.refuse(fmt::format("'{}' cannot be a loop's variable", shown(name)), "A name such as i.");
    }
    enter(node.place, name);
    item.items = read_items(node.at("do"));
    leave();
  }

  void enter(const YamlPlace& place, const std::string& name) {
    if (!name.empty() && std::find(variables_.begin(), variables_.end(), name) != variables_.end())
      place.refuse(fmt::format("'{}' has a meaning here already", name), "Give the loop another variable.");
    variables_.push_back(name);
    loops_.push_back(loop_count_++);
    definition_.loop_levels = std::max(definition_.loop_levels, loops_.size());
  }
  void leave() {
    variables_.pop_back();
    loops_.pop_back();
  }

  void read_command(const YamlNode& node, std::string_view kind) {
    YamlCommand command;
    command.place = node.place;
    command.loops = loops_;
    command.own_stream = own_stream_;
    std::string role;
    if (kind == "copy" || kind == "collective") {
      node.allow({kind, "stream", "role", "priority", "name", "after", "when"});
      role = read_transfer(node.at(kind), kind == "collective", command);
    } else {
      node.allow(
          {kind, "dims", "scalars", "ops", "reads", "writes", "stream", "role", "priority", "name", "after", "when"});
      command.kind = kind == "host" ? CommandKind::host : CommandKind::kernel;
      const YamlNode& name = node.at(kind);
      role = name.scalar("a kernel's name");
      command.kernel = name.place.guard([&] { return kernel_named(shown(role)); });
      if (command.kind == CommandKind::kernel && kernel(command.kernel).is_host_only)
        name.place.refuse(fmt::format("'{}' runs on the host only", role), fmt::format("host: {}", role));
      command.names = yaml_kernel(role);
      read_shape(node, command);
      if (const YamlNode* const reads = node.find("reads")) command.reads = read_operands(*reads);
      if (const YamlNode* const writes = node.find("writes")) command.writes = read_operands(*writes);
    }
    if (const YamlNode* const own = node.find("role")) {
      command.role = add_role(own->place, own->scalar("a name"));
    } else {
      command.role = has_roles_ ? 0 : add_role(node.place, role);
    }
    if (const YamlNode* const stream = node.find("stream")) command.stream = expression(*stream);
    if (const YamlNode* const priority = node.find("priority")) command.priority = expression(*priority);
    read_order(node, command);
    definition_.commands.push_back(std::move(command));
  }

  // copy: {from: a, to: b}
  // collective: {op: all_reduce, from: a, to: b}
  std::string read_transfer(const YamlNode& node, bool is_collective, YamlCommand& command) {
    node.map(is_collective ? "{op: all_reduce, from: ..., to: ...}" : "{from: ..., to: ...}");
    std::string role = "copy";
    command.kind = CommandKind::copy;
    if (is_collective) {
      node.allow({"op", "from", "to"});
      command.kind = CommandKind::collective;
      const YamlNode& op = node.at("op");
      std::vector<std::string> names;
      for (int i = 0; i <= static_cast<int>(CollectiveOp::shift); ++i)
        names.emplace_back(name_of(static_cast<CollectiveOp>(i)));
      role = op.scalar("a name");
      const auto found = std::find(names.begin(), names.end(), role);
      if (found == names.end())
        op.place.refuse(fmt::format("there is no collective '{}'", shown(role)), suggestion(shown(role), names));
      command.collective = static_cast<CollectiveOp>(found - names.begin());
    } else {
      node.allow({"from", "to"});
    }
    for (const auto& [key, operands] : {std::pair("from", &command.reads), std::pair("to", &command.writes)}) {
      const YamlNode& operand = node.at(key);
      operands->push_back(read_operand(operand.place, operand.scalar("a buffer, or a slice of one")));
    }
    return role;
  }

  // name: load
  // after: [load, gemm]
  void read_order(const YamlNode& node, YamlCommand& command) {
    if (const YamlNode* const name = node.find("name")) {
      command.name = name->scalar("a name");
      if (command.name.empty() || command.name.size() > 64) name->place.refuse("a name has 1 to 64 characters");
      const auto [found, is_new] = named_.emplace(command.name, definition_.commands.size());
      if (!is_new)
        name->place.refuse(fmt::format("another command is called '{}'", shown(command.name)),
                           fmt::format("It is on line {}.", definition_.commands[found->second].place.line));
    }
    const YamlNode* const after = node.find("after");
    if (after == nullptr) return;
    if (after->kind == YamlNode::Kind::scalar) {
      command.after.emplace_back(after->place, after->text);
    } else {
      for (const YamlNode& each : after->list("names of commands"))
        command.after.emplace_back(each.place, each.scalar("a command's name"));
    }
  }

  // dims: {m: 64, n: 64, k: 64}, dims: [64, 64, 64]; scalars likewise; ops: [mul 1.5, add 0.5] for a chain
  void read_shape(const YamlNode& node, YamlCommand& command) {
    const bool is_named = command.names != nullptr;
    using Slots = std::span<const YamlKernel::Slot>;
    read_sizes(node, "dims", is_named, is_named ? command.names->dims : Slots(), kMaxDims, command.dims);
    read_sizes(node, "scalars", is_named, is_named ? command.names->scalars : Slots(), kMaxScalars, command.scalars);
    const bool is_chain = kernel(command.kernel).name == "chain";
    const YamlNode* const ops = node.find("ops");
    if (is_chain && ops == nullptr) node.place.refuse("the key 'ops' is missing", "ops: [mul 1.5, add 0.5]");
    if (!is_chain && ops != nullptr) ops->place.refuse("only a chain has operations");
    if (is_chain) read_ops(*ops, command);
  }

  void read_sizes(const YamlNode& node, std::string_view key, bool is_named, std::span<const YamlKernel::Slot> slots,
                  std::size_t most, std::vector<YamlSize>& sizes) {
    const YamlNode* const given = node.find(key);
    if (given != nullptr && given->kind == YamlNode::Kind::map) {
      if (!is_named) given->place.refuse("this kernel has no names for them", "Write a list: [64, 64].");
      std::vector<std::string> names;
      for (const auto& slot : slots) names.emplace_back(slot.name);
      for (const YamlNode& value : given->items) {
        const auto slot = std::find(names.begin(), names.end(), value.key) - names.begin();
        if (static_cast<std::size_t>(slot) == names.size())
          value.place.refuse(fmt::format("the kernel has no '{}'", shown(value.key)),
                             names.empty() ? "It takes none." : suggestion(shown(value.key), names));
        const auto& found = slots[static_cast<std::size_t>(slot)];
        sizes.push_back({&found, static_cast<std::size_t>(found.index), expression(value)});
      }
    } else if (given != nullptr) {
      const auto list = given->list("a map of names, or a list of numbers");
      if (list.size() > (is_named ? slots.size() : most))
        given->place.refuse(
            fmt::format("{} numbers, {} at most are taken", list.size(), is_named ? slots.size() : most));
      for (std::size_t i = 0; i < list.size(); ++i)
        sizes.push_back({is_named ? &slots[i] : nullptr, is_named ? static_cast<std::size_t>(slots[i].index) : i,
                         expression(list[i])});
    }
  }

  // mul 1.5 | add x | abs | relu | square | clamp 0 10
  void read_ops(const YamlNode& node, YamlCommand& command) {
    const std::vector<std::string> names = {"mul", "add", "abs", "clamp", "relu", "square"};
    constexpr ChainOp kOps[] = {ChainOp::mul,   ChainOp::add,  ChainOp::abs,
                                ChainOp::clamp, ChainOp::relu, ChainOp::square};
    const auto ops = node.list("a list of operations");
    if (ops.empty() || ops.size() > kMaxChainOps)
      node.place.refuse(fmt::format("{} operations", ops.size()), fmt::format("1 to {} fit.", kMaxChainOps));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::string_view text = trimmed(ops[i].scalar("an operation such as mul 1.5"));
      const std::string_view word = text.substr(0, text.find(' '));
      const auto found = std::find(names.begin(), names.end(), word);
      if (found == names.end())
        ops[i].place.refuse(fmt::format("there is no operation '{}'", shown(word)), suggestion(shown(word), names));
      const ChainOp op = kOps[found - names.begin()];
      command.chain |= static_cast<std::int64_t>(op) << (8 * i);
      std::string_view rest = trimmed(text.substr(word.size()));
      const int wanted = scalar_count(op);
      for (int s = 0; s < wanted; ++s) {
        // The last scalar may contain blanks; earlier ones end at the first blank.
        const std::string_view part = s + 1 == wanted ? rest : rest.substr(0, rest.find(' '));
        if (part.empty())
          ops[i].place.refuse(fmt::format("'{}' takes {} number{}", word, wanted, wanted == 1 ? "" : "s"));
        if (command.scalars.size() == kMaxScalars) node.place.refuse(fmt::format("more than {} numbers", kMaxScalars));
        command.scalars.push_back({nullptr, command.scalars.size(), {ops[i].place, ops[i].place.guard([&] {
                                                                       return Expression(part, variables_);
                                                                     })}});
        rest = trimmed(rest.substr(part.size()));
      }
      if (!rest.empty()) ops[i].place.refuse(fmt::format("'{}' after '{}'", shown(rest), word));
    }
  }

  std::vector<YamlOperand> read_operands(const YamlNode& node) {
    std::vector<YamlOperand> operands;
    if (node.kind == YamlNode::Kind::scalar) {
      for (const std::string_view part : split_operands(node.text)) operands.push_back(read_operand(node.place, part));
    } else {
      for (const YamlNode& each : node.list("buffers, or slices of them"))
        operands.push_back(read_operand(each.place, each.scalar("a buffer, or a slice of one")));
    }
    if (operands.size() > kMaxOperands) node.place.refuse(fmt::format("more than {} operands", kMaxOperands));
    return operands;
  }

  // name | name[offset:count] | name[offset:] | name[:count]
  YamlOperand read_operand(const YamlPlace& place, std::string_view text) {
    text = trimmed(text);
    const std::size_t bracket = text.find('[');
    const std::string name(trimmed(text.substr(0, bracket)));
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) {
      std::vector<std::string> names;
      for (const auto& entry : buffers_) names.push_back(entry.first);
      if (names.size() > 50) names.resize(50);
      place.refuse(fmt::format("there is no buffer '{}'", shown(name)), suggestion(shown(name), names));
    }
    YamlOperand operand{place, found->second, {}, {}};
    if (bracket == std::string_view::npos) return operand;
    const std::size_t colon = text.find(':');
    if (!text.ends_with(']') || colon == std::string_view::npos || colon < bracket)
      place.refuse(fmt::format("'{}' is no slice", shown(text)), fmt::format("Write {}[offset:count].", name));
    const std::string_view offset = trimmed(text.substr(bracket + 1, colon - bracket - 1));
    const std::string_view count = trimmed(text.substr(colon + 1, text.size() - colon - 2));
    place.guard([&] {
      if (!offset.empty()) operand.offset.emplace(offset, variables_);
      if (!count.empty()) operand.count.emplace(count, variables_);
    });
    return operand;
  }

  YamlExpression expression(const YamlNode& node) const { return read_expression(node, variables_); }

  const YamlNode& root_;
  std::vector<std::string> variables_;
  YamlDefinition& definition_;
  std::map<std::string, std::size_t> buffers_, named_;
  std::vector<std::size_t> loops_;
  std::size_t loop_count_ = 0;
  std::optional<std::size_t> own_stream_;
  bool has_roles_ = false;
};

}  // namespace

YamlExpression read_expression(const YamlNode& node, std::span<const std::string> variables) {
  const std::string& text = node.scalar("a number or an expression");
  return {node.place, node.place.guard([&] { return Expression(text, variables); })};
}

void read_commands(const YamlNode& root, std::span<const std::string> variables, YamlDefinition& definition) {
  CommandReader(root, variables, definition).run();
}

}  // namespace weir
