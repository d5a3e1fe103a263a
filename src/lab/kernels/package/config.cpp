// Reads bench.yaml. Every accepted key has an effect (docs/bench_yaml.md lists them); every other key is refused with
// file, line and key.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/options.h"
#include "base/yaml.h"
#include "lab/kernels/package/compile_flags.h"
#include "lab/kernels/package/discovery.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

// Such a file has some 20 lines. The node limit also bounds the search for duplicate keys.
constexpr YamlBounds kBounds{.file_bytes = 256 << 10, .nodes = 10'000, .depth = 10};
constexpr std::size_t kMaxItems = 64;    // in a list of words
constexpr std::size_t kMaxNumbers = 16;  // in one value: grid: [[64, 64, 64]]
constexpr std::size_t kLongestConfigText = 1000;
constexpr const char* kSweepHint =
    "A list sweeps over its items. One value of several numbers is a list in a list: [[64, 64, 64]].";

// YAML ends a document at these lines, and the reader reads only one: what follows would be ignored.
//   problem_size: {rows: 8}
//   ---
//   backends: [cpu]
void refuse_second_document(std::string_view text, const std::string& name) {
  bool has_content = false;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = text.substr(begin, end - begin);
    ++line;
    const bool is_mark = (row.starts_with("---") || row.starts_with("...")) &&
                         (row.size() == 3 || row[3] == ' ' || row[3] == '\t' || row[3] == '\r');
    if (is_mark && has_content && text.find_first_not_of(" \t\r\n.-", begin) != std::string_view::npos)
      YamlPlace{std::make_shared<const std::string>(name), line, ""}.refuse("a second document begins here",
                                                                            "One file is one document.");
    // "--- {seed: 1}" is content too.
    const std::size_t first = row.find_first_not_of(" \t\r", is_mark ? 3 : 0);
    has_content |= first != std::string_view::npos && row[first] != '#' && row[first] != '%';
    begin = end + 1;
  }
}

double number(const YamlNode& node) {
  const std::string& text = node.scalar("a number");
  const auto value = parse_number(text);
  if (!value) node.place.refuse(fmt::format("'{}' is not a number", shown(text)), "Write 1024, 0.5 or 1.0e-5.");
  return *value;
}

std::int64_t whole(const YamlNode& node, std::int64_t lowest, std::int64_t highest) {
  const std::string& text = node.scalar("a whole number");
  const auto value = parse_integer(text);
  if (!value || *value < lowest || *value > highest)
    node.place.refuse(fmt::format("'{}' is not a whole number that can be used", shown(text)),
                      fmt::format("Use {} to {}.", lowest, highest));
  return *value;
}

// "grid: [64, 64, 64]" is one value of several numbers: nobody sweeps over 64, 64 and 64. Nothing for other lists.
std::optional<std::vector<double>> read_one_value(const YamlNode& node) {
  std::vector<double> value;
  for (const YamlNode& item : node.items) {
    if (item.kind == YamlNode::Kind::list) return std::nullopt;
    value.push_back(number(item));
  }
  const bool is_sweep = std::set<double>(value.begin(), value.end()).size() == value.size();
  if (is_sweep || value.size() > kMaxNumbers) return std::nullopt;
  return value;
}

// "rows: 1024", "rows: [256, 1024]", "grid: [[64, 64, 64], [128, 128, 128]]"
Sweep read_sweep(const YamlNode& node) {
  Sweep sweep{node.key, {}};
  // Names are part of the keys by which results are compared: rows=1024,grid=64x64.
  if (node.key.size() > 64 || !is_identifier(node.key))
    node.place.refuse("not the name of a parameter", "Use letters, digits and underscores, a letter first.");
  if (node.kind != YamlNode::Kind::list) {
    sweep.values.push_back({number(node)});
    return sweep;
  }
  if (const auto one = read_one_value(node)) {
    sweep.values.push_back(*one);
    return sweep;
  }
  for (const YamlNode& item : node.items) {
    std::vector<double> value;
    if (item.kind == YamlNode::Kind::list) {
      for (const YamlNode& each : item.items) value.push_back(number(each));
    } else {
      value.push_back(number(item));
    }
    if (value.empty() || value.size() > kMaxNumbers)
      item.place.refuse(fmt::format("a value of {} numbers", value.size()),
                        fmt::format("1 to {} can be used. {}", kMaxNumbers, kSweepHint));
    if (!sweep.values.empty() && value.size() != sweep.values[0].size())
      item.place.refuse(fmt::format("{} numbers, where the first value has {}", value.size(), sweep.values[0].size()),
                        kSweepHint);
    if (std::find(sweep.values.begin(), sweep.values.end(), value) != sweep.values.end())
      item.place.refuse("this value is there already", kSweepHint);
    sweep.values.push_back(std::move(value));
  }
  if (sweep.values.empty()) node.place.refuse("an empty list: nothing would run", kSweepHint);
  return sweep;
}

// One word, or a list of words.
template <class Read>
void read_items(const YamlNode& node, std::string_view wanted, const Read& read) {
  if (node.kind == YamlNode::Kind::scalar) return read(node);
  const auto items = node.list(wanted);
  if (items.empty()) node.place.refuse("an empty list", "Leave the key out, or write an item.");
  if (items.size() > kMaxItems) node.place.refuse(fmt::format("more than {} items", kMaxItems));
  for (const YamlNode& item : items) read(item);
}

template <class Word, std::size_t kCount>
Word word_of(const YamlNode& node, std::string_view what, std::optional<Word> (*parse)(std::string_view),
             const Word (&words)[kCount], std::initializer_list<std::pair<std::string_view, std::string_view>> others) {
  const std::string& text = node.scalar(fmt::format("a {}", what));
  if (const std::optional<Word> word = parse(text)) return *word;
  std::vector<std::string_view> names;
  for (const Word word : words) names.push_back(name_of(word));
  std::string hint = fmt::format("There are {}.", fmt::join(names, ", "));
  for (const auto& [other, ours] : others)
    if (other == text) hint = fmt::format("Write {}. {}", ours, hint);
  node.place.refuse(fmt::format("unknown {} '{}'", what, shown(text)), hint);
}
Backend backend_of(const YamlNode& node) {
  return word_of(node, "backend", parse_backend, kBackends,
                 {{"amd", "hip"}, {"nvidia", "cuda"}, {"gpu", "cuda, hip or opencl"}, {"host", "cpu"}});
}
Precision precision_of(const YamlNode& node) {
  return word_of(node, "precision", parse_precision, kPrecisions,
                 {{"double", "fp64"},
                  {"float64", "fp64"},
                  {"float", "fp32"},
                  {"float32", "fp32"},
                  {"single", "fp32"},
                  {"half", "fp16"},
                  {"float16", "fp16"},
                  {"bfloat16", "bf16"},
                  {"float8_e4m3fn", "fp8_e4m3"},
                  {"float8_e5m2", "fp8_e5m2"}});
}

template <class Word>
void add_once(std::vector<Word>& words, Word word, const YamlNode& node) {
  if (std::find(words.begin(), words.end(), word) != words.end())
    node.place.refuse(fmt::format("'{}' is there already", shown(node.text)));
  words.push_back(std::move(word));
}

// "30", "30s", "500ms", "2min"
double seconds(const YamlNode& node) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}};
  constexpr double kLongest = 24 * 3600;
  std::string_view text = node.scalar("a time");
  double unit = 1;
  for (const auto& [name, size] : kUnits)
    if (text.ends_with(name)) {
      text.remove_suffix(name.size());
      unit = size;
      break;
    }
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto value = parse_number(text);
  if (!value || !(*value * unit > 0) || *value * unit > kLongest)
    node.place.refuse(fmt::format("'{}' is not a time that can be used", shown(node.text)),
                      "Write seconds, or 500ms, 30s, 2min; 24h at most.");
  return *value * unit;
}

double tolerance(const YamlNode& node) {
  const double value = number(node);
  if (value < 0) node.place.refuse("an error is never negative", "Write 1.0e-3.");
  return value;
}

// {rmse: 1.0e-3, relative_error: 1.0e-2}
Tolerance read_limits(const YamlNode& node) {
  Tolerance limits;
  if (const YamlNode* const rmse = node.find("rmse")) limits.rmse = tolerance(*rmse);
  if (const YamlNode* const relative = node.find("relative_error")) limits.relative_error = tolerance(*relative);
  return limits;
}

// {relative_error: 1.0e-5, fp16: {relative_error: 1.0e-2}}
void read_tolerances(const YamlNode& node, Config& config) {
  constexpr const char* kWanted = "limits: {rmse: 1.0e-3, relative_error: 1.0e-2}";
  node.map(kWanted);
  node.allow({"rmse", "relative_error", "fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"});
  config.tolerances = read_limits(node);
  for (const Precision precision : kPrecisions) {
    const YamlNode* const own = node.find(name_of(precision));
    if (own == nullptr) continue;
    if (own->map(kWanted).empty()) own->place.refuse("no limit", "Write rmse or relative_error.");
    own->allow({"rmse", "relative_error"});
    config.precision_tolerances[precision] = read_limits(*own);
  }
}

SkipCondition read_skip(const YamlNode& node) {
  node.map("a map with reason, and backend or check");
  node.allow({"backend", "reason", "check"});
  SkipCondition skip;
  if (const YamlNode* const backend = node.find("backend")) skip.backend = backend_of(*backend);
  skip.reason = node.at("reason").scalar("a text");
  if (skip.reason.find_first_not_of(" \t\n") == std::string::npos || skip.reason.size() > kLongestConfigText)
    node.at("reason").place.refuse("say why in some words", "The report shows them beside what was skipped.");
  if (const YamlNode* const check = node.find("check"))
    check->place.guard([&] { skip.check.emplace(check->scalar("a condition")); });
  return skip;
}

// nvcc, libfoo.so.1
std::string dependency(const YamlNode& node) {
  const std::string& text = node.scalar("the name of a program or library");
  const auto is_plain = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-'; };
  if (text.empty() || text.size() > 64 || text[0] == '.' || text[0] == '-' ||
      !std::all_of(text.begin(), text.end(), is_plain))
    node.place.refuse(fmt::format("'{}' is not the name of a program or library", shown(text)),
                      "Write nvcc, or libfoo.so.1: no path, no version range.");
  return text;
}

std::string argument(const YamlNode& node) {
  const std::string& text = node.scalar("a text");
  if (text.size() > kLongestConfigText)
    node.place.refuse(fmt::format("an argument of {} characters", text.size()),
                      fmt::format("{} at most.", kLongestConfigText));
  return text;
}

std::string function_name(const YamlNode& node) {
  const std::string& text = node.scalar("the name of a function");
  if (!is_identifier(text) || text.size() > 100)
    node.place.refuse(fmt::format("'{}' is not the name of a function", shown(text)),
                      "Write the name that the Python module defines: run_benchmark.");
  return text;
}

Compiler compiler_of(const YamlNode& node) {
  const std::string& text = node.scalar("a word");
  if (text == "auto") return Compiler::automatic;
  if (text == "runtime") return Compiler::runtime;
  if (text == "ahead") return Compiler::ahead;
  node.place.refuse(fmt::format("unknown compiler '{}'", shown(text)),
                    "Write auto, runtime (NVRTC, hipRTC) or ahead (nvcc, hipcc).");
}

void read_key(const YamlNode& node, Config& config) {
  if (node.key == "problem_size") {
    for (const YamlNode& item : node.map("parameters with values: {rows: [256, 1024]}"))
      config.problem_size.push_back(read_sweep(item));
    if (config.problem_size.size() > kMaxItems) node.place.refuse(fmt::format("more than {} parameters", kMaxItems));
    node.place.guard([&] { problems_of(config.problem_size); });
  } else if (node.key == "precisions") {
    read_items(node, "a list of precisions",
               [&](const YamlNode& item) { add_once(config.precisions, precision_of(item), item); });
  } else if (node.key == "backends") {
    read_items(node, "a list of backends",
               [&](const YamlNode& item) { add_once(config.backends, backend_of(item), item); });
  } else if (node.key == "tolerances") {
    read_tolerances(node, config);
  } else if (node.key == "skip_conditions") {
    const auto items = node.list("a list of conditions");
    if (items.size() > kMaxItems) node.place.refuse(fmt::format("more than {} conditions", kMaxItems));
    for (const YamlNode& item : items) config.skip_conditions.push_back(read_skip(item));
  } else if (node.key == "iterations") {
    config.iterations = static_cast<int>(whole(node, 1, 1'000'000));
  } else if (node.key == "warmup") {
    config.warmup = static_cast<int>(whole(node, 0, 1'000'000));
  } else if (node.key == "seed") {
    config.seed = static_cast<std::uint64_t>(whole(node, 0, std::numeric_limits<std::int64_t>::max()));
  } else if (node.key == "time_limit") {
    config.time_limit_s = seconds(node);
  } else if (node.key == "dependencies") {
    read_items(node, "a list of programs and libraries",
               [&](const YamlNode& item) { add_once(config.dependencies, dependency(item), item); });
  } else if (node.key == "compile_flags") {
    read_items(node, "a list of flags", [&](const YamlNode& item) {
      const std::string& flag = item.scalar("a flag");
      item.place.guard([&] { check_compile_flag(flag); });
      config.compile_flags.push_back(flag);
    });
  } else if (node.key == "compiler") {
    config.compiler = compiler_of(node);
  } else if (node.key == "arguments") {
    read_items(node, "a list of texts", [&](const YamlNode& item) { config.arguments.push_back(argument(item)); });
  } else if (node.key == "function_name") {
    config.function_name = function_name(node);
  }
}

// Refuses limits for a precision that is never measured.
void refuse_idle_tolerances(const YamlNode& root, const Config& config) {
  for (const auto& [precision, limits] : config.precision_tolerances)
    if (!config.precisions.empty() &&
        std::find(config.precisions.begin(), config.precisions.end(), precision) == config.precisions.end())
      root.at("tolerances")
          .at(name_of(precision))
          .place.refuse("it is not among precisions", "Remove the key: it has no effect here.");
}

void refuse_without_effect(const YamlNode& root, const Package& package) {
  const auto has = [&](Form form) { return package.find(form) != nullptr; };
  const bool has_gpu_source = has(Form::cuda_source) || has(Form::hip_source);
  const bool has_source = has_gpu_source || has(Form::host_source) || has(Form::opencl_source);
  const auto need = [&](std::string_view key, bool is_there, const std::string& what) {
    const YamlNode* const node = root.find(key);
    if (node != nullptr && !is_there) node->place.refuse(what, "Remove the key: it has no effect here.");
  };
  need("arguments", has(Form::executable), "the package has no executable that would get them");
  need("function_name", has(Form::python), "the package has no Python module that would define it");
  need("compile_flags", has_source, "the package has no source that would be compiled with them");
  need("compiler", has_gpu_source, "the package has neither kernel.cu nor kernel.hip");
}

}  // namespace

Config parse_config(std::string_view text, const std::string& name, const Package* package) {
  const YamlNode root = parse_yaml(text, name, kBounds);
  refuse_second_document(text, name);
  root.map("keys with values: problem_size, precisions, backends, ...");
  root.allow({"problem_size", "precisions", "backends", "tolerances", "skip_conditions", "iterations", "warmup", "seed",
              "time_limit", "dependencies", "compile_flags", "compiler", "arguments", "function_name"});
  Config config;
  for (const YamlNode& node : root.items) read_key(node, config);
  refuse_idle_tolerances(root, config);
  if (package != nullptr && !package->parts.empty()) refuse_without_effect(root, *package);
  return config;
}

}  // namespace weir::package
