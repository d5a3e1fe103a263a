#include "step/workload/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/file.h"
#include "base/options.h"
#include "step/workload/yaml_commands.h"
#include "step/workload/yaml_definition.h"
#include "step/workload/yaml_step.h"

namespace weir {
namespace {

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: distinguishes a user's texts, does not resist attacks
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

// A plain number without variables, for values needed before anything is built.
double constant(const YamlNode& node, std::string_view wanted) {
  const std::string& text = node.scalar(wanted);
  return node.place.guard([&] { return Expression(text, {}).value({}); });
}

std::int64_t whole_constant(const YamlNode& node, std::int64_t lowest, std::int64_t highest) {
  const std::string& text = node.scalar("a whole number");
  const std::int64_t value = node.place.guard([&] { return Expression(text, {}).whole({}); });
  if (value < lowest || value > highest)
    node.place.refuse(fmt::format("{} is out of range", value), fmt::format("Use {} to {}.", lowest, highest));
  return value;
}

std::string short_text(const YamlNode& root, std::string_view key, std::string initial) {
  const YamlNode* const node = root.find(key);
  if (node == nullptr) return initial;
  const std::string& text = node->scalar("a line of text");
  if (text.empty() || text.size() > 200 || text.find('\n') != std::string::npos)
    node->place.refuse("a line of 1 to 200 characters is needed");
  return text;
}

// One of `names`; rejects any other with a suggestion.
std::size_t choice(const YamlNode& node, const std::vector<std::string>& names) {
  const std::string& text = node.scalar("a word");
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return i;
  node.place.refuse(fmt::format("'{}' is not known here", shown(text)), suggestion(shown(text), names));
}

void check_new_name(const YamlPlace& place, const std::string& name) {
  if (!is_identifier(name))
    place.refuse(fmt::format("'{}' is no name", shown(name)), "Letters, digits and underscores; a letter first.");
  for (const std::string_view taken : {"streams", "stream", "ranks", "rank", "definition"})
    if (name == taken) place.refuse(fmt::format("'{}' has a meaning of its own", name), "Choose another name.");
  if (is_expression_word(name)) place.refuse(fmt::format("'{}' is a function", name), "Choose another name.");
}

// name: pipeline
std::string read_name(const YamlNode& root) {
  const YamlNode& node = root.at("name");
  const std::string& name = node.scalar("a name");
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  // It becomes part of file names.
  if (name.empty() || name.size() > 64 || !is_plain)
    node.place.refuse(fmt::format("'{}' is no name", shown(name)), "Letters, digits, _ and -; 64 at most.");
  return name;
}

void reject_our_name(const YamlNode& root, const std::string& name) {
  for (const Workload& workload : workloads())
    if (workload.name == name)
      root.at("name").place.refuse(fmt::format("'{}' is a workload of this program", name),
                                   "Choose another name: results are told apart by it.");
}

// streams: 4
// streams: {min: 2, recommended: 8, max: 64}
StreamRange read_streams(const YamlNode& root) {
  const YamlNode* const node = root.find("streams");
  if (node == nullptr) return {1, 4, kMaxStreams};
  if (node->kind == YamlNode::Kind::scalar) {
    const auto only = static_cast<int>(whole_constant(*node, 1, kMaxStreams));
    return {only, only, only};
  }
  node->map("a count, or {min, recommended, max}");
  node->allow({"min", "recommended", "max"});
  const auto bound = [&](std::string_view key, int initial, int lowest) {
    const YamlNode* const value = node->find(key);
    return value == nullptr ? initial : static_cast<int>(whole_constant(*value, lowest, kMaxStreams));
  };
  StreamRange range;
  range.min = bound("min", 1, 1);
  range.max = bound("max", kMaxStreams, range.min);
  range.recommended = bound("recommended", std::clamp(4, range.min, range.max), range.min);
  if (range.recommended > range.max) node->place.refuse("recommended is above max");
  return range;
}

// size: 64
// size: {tiny: 32, small: 256, full: 4096, min: 1, max: 65536, help: rows and columns}
// parts: {default: 8, at_least: streams, help: of the batch}
ParamSpec read_param(const YamlNode& node) {
  const std::string& name = node.key;
  check_new_name(node.place, name);
  ParamSpec spec;
  spec.name = name;
  std::array<const YamlNode*, 3> defaults = {&node, &node, &node};
  if (node.kind == YamlNode::Kind::map) {
    node.allow({"default", "tiny", "small", "full", "min", "max", "at_least", "help"});
    const YamlNode* const common = node.find("default");
    for (const Scale scale : {Scale::tiny, Scale::small, Scale::full}) {
      const YamlNode* const own = node.find(name_of(scale));
      defaults[static_cast<std::size_t>(scale)] = own != nullptr ? own : common;
      if (own == nullptr && common == nullptr)
        node.place.refuse(fmt::format("there is no default for scale {}", name_of(scale)),
                          "Give `default`, or all of tiny, small and full.");
    }
    spec.help = short_text(node, "help", "");
  }
  std::array<double, 3> values{};
  bool is_whole = true;
  for (std::size_t i = 0; i < 3; ++i) {
    values[i] = constant(*defaults[i], "a number");
    is_whole = is_whole && values[i] == std::floor(values[i]) && std::fabs(values[i]) < 0x1p53 &&
               defaults[i]->text.find('.') == std::string::npos;
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto bound = [&](std::string_view key, double initial) {
    const YamlNode* const value = node.kind == YamlNode::Kind::map ? node.find(key) : nullptr;
    return value == nullptr ? initial : constant(*value, "a number");
  };
  spec.lowest = bound("min", std::min(*low, is_whole ? 1.0 : 0.0));
  spec.highest = bound("max", std::max(*high, 1e9));
  for (std::size_t i = 0; i < 3; ++i) {
    if (values[i] < spec.lowest || values[i] > spec.highest)
      defaults[i]->place.refuse(fmt::format("{} is not between min and max", values[i]),
                                fmt::format("They are {} and {}.", spec.lowest, spec.highest));
    spec.defaults[i] = is_whole ? ParamValue(static_cast<std::int64_t>(values[i])) : ParamValue(values[i]);
  }
  return spec;
}

// weights: {type: compute, count: size * size, init: uniform, scale: 0.1, place: device}
YamlBuffer read_buffer(const YamlNode& node, std::span<const std::string> variables) {
  const std::string& name = node.key;
  check_new_name(node.place, name);
  node.map("{count: ..., type: ..., init: ...}");
  node.allow({"type", "count", "init", "scale", "offset", "value", "limit", "place"});
  YamlBuffer buffer{node.place, name, {}, {}, {}, read_expression(node.at("count"), variables), {}, {}, {}, {}};
  if (const YamlNode* const type = node.find("type")) {
    const std::size_t index = choice(*type, {"f32", "f16", "bf16", "i32", "compute"});
    if (index < 4) buffer.type = static_cast<ElementType>(index);
  }
  if (const YamlNode* const place = node.find("place"))
    buffer.where = choice(*place, {"device", "host"}) == 0 ? Place::device : Place::host;
  if (const YamlNode* const init = node.find("init"))
    buffer.init = static_cast<YamlInit>(
        choice(*init, {"output", "uniform", "sharded", "constant", "ramp", "indices", "integers"}));
  const auto number = [&](std::string_view key, std::initializer_list<YamlInit> users) {
    const YamlNode* const value = node.find(key);
    if (value == nullptr) return std::optional<YamlExpression>();
    if (std::find(users.begin(), users.end(), buffer.init) == users.end())
      value->place.refuse("it has no meaning for this init", "docs/yaml.md says which init takes which numbers.");
    return std::optional(read_expression(*value, variables));
  };
  buffer.scale = number("scale", {YamlInit::uniform, YamlInit::sharded, YamlInit::ramp});
  buffer.offset = number("offset", {YamlInit::uniform, YamlInit::ramp});
  buffer.value = number("value", {YamlInit::constant});
  buffer.limit = number("limit", {YamlInit::integers});
  const bool is_integer = buffer.init == YamlInit::indices || buffer.init == YamlInit::integers;
  if (is_integer && node.find("type") == nullptr) buffer.type = ElementType::i32;
  if (is_integer && buffer.type != ElementType::i32) node.at("init").place.refuse("it needs type: i32");
  const bool is_plain_float = buffer.init == YamlInit::uniform || buffer.init == YamlInit::sharded;
  if (is_plain_float && buffer.type == ElementType::i32)
    node.at("init").place.refuse("it gives no integers", "Use init: integers with a limit.");
  if (buffer.init == YamlInit::integers && !buffer.limit) node.place.refuse("the key 'limit' is missing");
  if (buffer.init == YamlInit::constant && !buffer.value) node.place.refuse("the key 'value' is missing");
  return buffer;
}

// work: flop | bytes | commands | 2 * size * streams
void read_work(const YamlNode& root, std::span<const std::string> variables, YamlDefinition& definition) {
  using Work = YamlDefinition::Work;
  const YamlNode* const node = root.find("work");
  const std::string text = node == nullptr ? "commands" : node->scalar("flop, bytes, commands or an expression");
  const std::string initial = text == "flop" ? "GFLOP/s" : text == "bytes" ? "GB/s" : "commands/s";
  definition.unit = short_text(root, "unit", initial);
  const std::string& unit = definition.unit;
  const YamlPlace& place = root.find("unit") != nullptr ? root.at("unit").place : root.place;
  const auto scale = [&](std::initializer_list<std::pair<std::string_view, double>> known) {
    for (const auto& [name, factor] : known)
      if (name == unit) return factor;
    std::vector<std::string> names;
    for (const auto& entry : known) names.emplace_back(entry.first);
    place.refuse(fmt::format("work in {} has no unit '{}'", text, shown(unit)), suggestion(shown(unit), names));
  };
  if (text == "flop") {
    definition.work = Work::flop;
    definition.work_scale = scale({{"FLOP/s", 1}, {"MFLOP/s", 1e-6}, {"GFLOP/s", 1e-9}, {"TFLOP/s", 1e-12}});
  } else if (text == "bytes") {
    definition.work = Work::bytes;
    definition.work_scale = scale({{"B/s", 1}, {"MB/s", 1e-6}, {"GB/s", 1e-9}, {"GiB/s", 0x1p-30}, {"TB/s", 1e-12}});
  } else if (text == "commands") {
    definition.work = Work::commands;
  } else {
    if (root.find("unit") == nullptr) node->place.refuse("work of what? The key 'unit' is missing", "unit: samples/s");
    definition.work = Work::expression;
    definition.work_expression = read_expression(*node, variables);
  }
}

enum class Origin : std::uint8_t { user, program };

Workload read_workload(std::string_view text, const std::string& name, const YamlLimits& limits, Origin origin) {
  const YamlNode root = parse_yaml(text, name, limits.document);
  root.map("a map with name, buffers and commands");
  root.allow({"name", "summary", "shows", "category", "class", "unit", "work", "scaling", "streams", "params", "roles",
              "convoy", "buffers", "commands"});
  auto definition = std::make_shared<YamlDefinition>();
  definition->limits = limits;
  definition->place = {root.place.file, 0, ""};

  Workload workload;
  workload.name = definition->name = read_name(root);
  if (origin == Origin::user) reject_our_name(root, workload.name);
  workload.summary = short_text(root, "summary", "read from " + name);
  workload.shows = short_text(root, "shows", "what its author wants to see");
  workload.category = short_text(root, "category", "file");
  workload.priority = 3;
  if (const YamlNode* const node = root.find("class"))
    workload.priority = static_cast<int>(choice(*node, {"P0", "P1", "P2", "P3"}));
  if (const YamlNode* const node = root.find("scaling"))
    workload.scaling = static_cast<Scaling>(choice(*node, {"grows", "divided", "requests"}));
  workload.streams = definition->streams = read_streams(root);

  std::vector<std::string> variables = {"streams", "ranks", "rank"};
  if (const YamlNode* const params = root.find("params")) {
    for (const YamlNode& node : params->map("a map of parameters")) {
      if (definition->params.size() == 200) node.place.refuse("more than 200 parameters");
      definition->params.push_back(read_param(node));
      const YamlNode* const least = node.kind == YamlNode::Kind::map ? node.find("at_least") : nullptr;
      definition->at_least.push_back(least == nullptr ? std::nullopt
                                                      : std::optional(read_expression(*least, variables)));
      variables.push_back(node.key);
    }
  }
  for (const YamlNode& node : root.at("buffers").map("a map of buffers")) {
    if (definition->buffers.size() == limits.buffers)
      node.place.refuse(fmt::format("more than {} buffers", limits.buffers), "Use slices of larger ones.");
    definition->buffers.push_back(read_buffer(node, variables));
  }
  read_work(root, variables, *definition);
  read_commands(root, variables, *definition);
  if (const YamlNode* const node = root.find("convoy"))
    workload.convoy_role = static_cast<std::uint8_t>(choice(*node, definition->roles));
  workload.unit = definition->unit;
  workload.params = definition->params;
  workload.roles = definition->roles;
  if (origin == Origin::user) workload.source = {name, std::string(text), hash_of(text)};
  workload.build = [definition](const Params& params, int stream_count) {
    return build_yaml_step(*definition, params, stream_count);
  };
  return workload;
}

}  // namespace

Workload parse_workload(std::string_view text, const std::string& name, const YamlLimits& limits) {
  return read_workload(text, name, limits, Origin::user);
}

Workload parse_own_workload(std::string_view text, const std::string& name) {
  return read_workload(text, name, {}, Origin::program);
}

Workload load_workload(const std::filesystem::path& file, const YamlLimits& limits) {
  return parse_workload(read_file(file, limits.document.file_bytes), file.string(), limits);
}

}  // namespace weir
