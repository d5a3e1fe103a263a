#include "lab/overlap/overlap_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/options.h"

namespace weir {
namespace {

using Kind = OverlapKey::Kind;
constexpr double kMany = 1e9;
constexpr std::size_t kMaxPoints = 1000;

constexpr OverlapKey kKeys[] = {
    {"model.layers", "encoder layers", Kind::integer, 1, 1024, {}, "layers"},
    {"model.dim", "width of the model", Kind::integer, 2, 65536, {}, "dim"},
    {"model.heads", "attention heads", Kind::integer, 1, 1024, {}, "heads"},
    {"model.mlp", "width of the MLP", Kind::integer, 1, kMany, {}, "mlp"},
    {"model.vocab", "rows of the embedding table", Kind::integer, 1, kMany, {}, "vocab"},
    {"model.sparse", "sparse features of a sample: a token each", Kind::integer, 1, 65536, {}, "sparse"},
    {"model.dense", "dense features of a sample", Kind::integer, 1, kMany, {}, "dense"},
    {"model.scorer", "width of the scorer's hidden layer", Kind::integer, 1, kMany, {}, "scorer"},
    {"training.batch", "samples of a micro-batch, of all ranks together", Kind::integer, 1, kMany, {}, "batch"},
    {"training.accumulation", "micro-batches per step", Kind::integer, 1, 1024, {}, "accumulation"},
    {"training.precision", "of compute, gathers and reductions", Kind::text, 0, 0, "fp32", {}, "fp32 tf32 fp16 bf16"},
    {"training.clip", "largest norm of the gradient; 0: not clipped", Kind::number, 0, kMany, {}, "clip"},
    {"training.rate", "learning rate", Kind::number, 0, 1, {}, "rate"},
    {"training.decay", "weight decay", Kind::number, 0, 1, {}, "decay"},
    {"training.positive_weight", "of positive targets in the loss", Kind::number, 0, kMany, {}, "positive_weight"},
    {"training.seed", "of parameters and data", Kind::integer, 0, 1e15, "1"},
    {"parallel.mode", "fsdp: parameters sharded; ddp: replicated", Kind::text, 0, 0, "fsdp", "mode", "fsdp ddp"},
    {"fsdp.prefetch", "units gathered ahead of the one that computes", Kind::integer, 0, 64, {}, "prefetch"},
    {"fsdp.reshard_after_forward",
     "let go of a layer's parameters, and gather them again for backward",
     Kind::boolean,
     0,
     1,
     {},
     "reshard"},
    {"fsdp.bucket_kib", "largest gather or reduce-scatter; 0: a whole unit", Kind::integer, 0, kMany, "0"},
    {"fsdp.gradient_slots",
     "units whose gradients wait for their reduction; 0: all",
     Kind::integer,
     0,
     64,
     {},
     "gradient_slots"},
    {"ddp.bucket_kib", "size of an all-reduce; 0: a whole unit", Kind::integer, 0, kMany, "25600"},
    {"network.latency_us", "added to every collective", Kind::number, 0, 1e7, "0"},
    {"network.bandwidth_gbs", "of a rank's link in GB/s; 0: no limit", Kind::number, 0, 1e6, "0"},
    {"network.absent_rank", "a rank that stays away from one collective; -1: none", Kind::integer, -1, 4095, "-1"},
    {"network.absent_at", "which collective that is, counted from 0", Kind::integer, 0, 1e12, "0"},
    {"run.ranks", "processes; 0: as the launcher or --ranks says", Kind::integer, 0, 4096, "0"},
    {"run.device", "auto, cpu, cuda:0, hip:0, opencl:0, sim:h200", Kind::text, 0, 0, "auto"},
    {"run.scale", "what the workload decides where the file does not", Kind::text, 0, 0, {}, {}, "tiny small full"},
    {"run.streams", "4: one of each kind", Kind::integer, 4, 16, "4"},
    {"run.placement",
     "of commands on streams",
     Kind::text,
     0,
     0,
     "natural",
     {},
     "natural serial round_robin critical_path"},
    {"run.submit", "inline, threads, graph, channel", Kind::text, 0, 0, "inline"},
    {"run.hw_queues", "hardware queues; 0: as the device has them", Kind::integer, 0, 128, "0"},
    {"run.iterations", "measured steps", Kind::integer, 1, 1e6, "20"},
    {"run.traced", "steps that timelines hold", Kind::integer, 2, 10000, "10"},
    {"run.warmup", "steps before measuring", Kind::integer, 0, 1e6, "3"},
    {"run.check", "compare one step's output with the CPU reference", Kind::boolean, 0, 1, "1"},
    {"run.hang_timeout", "seconds without a finished command; 0: wait for ever", Kind::number, 0, 86400, "60"},
};

// Settings of a run, other than the workload's parameters, under which errors name these keys.
constexpr std::pair<std::string_view, std::string_view> kKeysOfSettings[] = {
    {"streams", "run.streams"},          {"submit", "run.submit"},
    {"placement", "run.placement"},      {"scale", "run.scale"},
    {"iterations", "run.iterations"},    {"warmup", "run.warmup"},
    {"precision", "training.precision"}, {"schedule", "run.submit"},
    {"in_flight", "run.submit"}};

const OverlapKey* find_key(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const auto& key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Returns the value as it is stored: booleans become 0 and 1.
std::string checked(const OverlapKey& key, const std::string& value, const std::string& where) {
  const auto refuse = [&](const std::string& wanted) {
    reject(fmt::format("{}: {} cannot be '{}'", where, key.name, shown(value)), wanted);
  };
  const auto range = [&] { return fmt::format("Use {} to {} ({}).", key.lowest, key.highest, key.help); };
  switch (key.kind) {
    case Kind::integer: {
      const auto number = parse_integer(value);
      const bool is_minus_one = value == "-1" && key.lowest < 0;
      if (is_minus_one) return value;
      if (!number || static_cast<double>(*number) < key.lowest || static_cast<double>(*number) > key.highest)
        refuse(range());
      return value;
    }
    case Kind::number: {
      const auto number = parse_number(value);
      if (!number || *number < key.lowest || *number > key.highest) refuse(range());
      return value;
    }
    case Kind::boolean:
      if (value == "true" || value == "1") return "1";
      if (value == "false" || value == "0") return "0";
      refuse("Use true or false.");
      break;
    case Kind::text:
      break;
  }
  const std::vector<std::string> choices = words_of(key.choices);
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
    refuse(suggestion(value, choices));
  if (value.empty()) refuse(fmt::format("It is {}.", key.help));
  return value;
}

void read_section(const YamlNode& section, OverlapConfig& config) {
  for (const YamlNode& item : section.map("keys with values")) {
    const std::string key = fmt::format("{}.{}", section.key, item.key);
    config.set(key, item.scalar("one value"), item.place.text());
  }
}

void read_sweeps(const YamlNode& sweep, OverlapConfig& config) {
  for (const YamlNode& item : sweep.map("keys with lists of values")) {
    std::vector<std::string> values;
    OverlapConfig trial;
    if (item.key == "run.ranks")
      item.place.refuse("all points run in one job, on the same ranks", "Run them one by one with --ranks.");
    for (const YamlNode& value : item.list("a list of values")) {
      trial.set(item.key, value.scalar("one value"), value.place.text());
      // Each point has its own folder, named after its value.
      if (std::find(values.begin(), values.end(), trial.value(item.key)) != values.end())
        value.place.refuse(fmt::format("{} is swept already", trial.value(item.key)));
      values.push_back(trial.value(item.key));
    }
    if (values.empty()) item.place.refuse("an empty list: nothing would run");
    config.sweeps.emplace_back(item.key, std::move(values));
  }
}

}  // namespace

std::span<const OverlapKey> overlap_keys() { return kKeys; }

void OverlapConfig::set(const std::string& key, const std::string& value, const std::string& where) {
  const OverlapKey* const known = find_key(key);
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const OverlapKey& each : kKeys) names.emplace_back(each.name);
    // The most common mistake is a right name in the wrong section.
    const std::string last = key.substr(key.rfind('.') + 1);
    for (const std::string& name : names)
      if (name.ends_with("." + last))
        reject(fmt::format("{}: unknown key '{}'", where, shown(key)), fmt::format("Did you mean '{}'?", name));
    const auto close = nearest(key, names);
    reject(fmt::format("{}: unknown key '{}'", where, shown(key)),
           close ? fmt::format("Did you mean '{}'?", *close) : "`weir overlap --list` lists all of them.");
  }
  values_[key] = checked(*known, value, where);
}

void OverlapConfig::assign(const std::string& text, const std::string& where) {
  const auto [key, value] = parse_assignment(where, text);
  set(key, value, fmt::format("{} {}", where, text));
  std::erase_if(sweeps, [&, swept = std::string_view(key)](const auto& sweep) { return sweep.first == swept; });
}

std::string OverlapConfig::value(std::string_view key) const {
  const auto found = values_.find(key);
  return found != values_.end() ? found->second : std::string(find_key(key)->initial);
}

std::int64_t OverlapConfig::integer(std::string_view key) const {
  const std::string text = value(key);
  return text == "-1" ? -1 : parse_integer(text).value_or(0);
}

double OverlapConfig::number(std::string_view key) const { return parse_number(value(key)).value_or(0); }

RunRequest OverlapConfig::request() const {
  RunRequest request;
  request.workload = kOverlapWorkload;
  request.streams = static_cast<int>(integer("run.streams"));
  request.iterations = static_cast<int>(integer("run.iterations"));
  request.warmup = static_cast<int>(integer("run.warmup"));
  request.submit = parse_submit(value("run.submit"));
  request.placement = &placement_named(value("run.placement"));
  if (const std::string scale = value("run.scale"); !scale.empty()) request.scale = scale_named(scale);
  request.precision = precision_named(value("training.precision"));
  request.seed = static_cast<std::uint64_t>(integer("training.seed"));
  for (const OverlapKey& key : kKeys)
    if (const std::string text = value(key.name); !key.param.empty() && !text.empty())
      request.params.emplace_back(key.param, text);
  request.params.emplace_back("bucket_kib", value(is_ddp() ? "ddp.bucket_kib" : "fsdp.bucket_kib"));
  return request;
}

Network OverlapConfig::network() const {
  return {.latency_us = number("network.latency_us"),
          .bandwidth_gbs = number("network.bandwidth_gbs"),
          .absent_rank = static_cast<int>(integer("network.absent_rank")),
          .absent_at = static_cast<std::uint64_t>(integer("network.absent_at"))};
}

std::string OverlapConfig::in_keys(std::string message) const {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = message.find(from); at != std::string::npos; at = message.find(from, at)) {
      const char before = at == 0 ? ' ' : message[at - 1];
      const bool is_word = std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_' && before != '.';
      if (is_word) message.replace(at, from.size(), to);
      at += is_word ? to.size() : from.size();
    }
  };
  replace("--param ", "");
  for (const OverlapKey& key : kKeys)
    if (!key.param.empty()) replace(fmt::format("{}=", key.param), fmt::format("{}=", key.name));
  replace("bucket_kib=", is_ddp() ? "ddp.bucket_kib=" : "fsdp.bucket_kib=");
  for (const auto& [setting, key] : kKeysOfSettings) replace(fmt::format("--{} ", setting), fmt::format("{} ", key));
  return message;
}

Error OverlapConfig::in_keys(const Error& error) const {
  std::string what = error.what();
  if (error.setting == "param") what.erase(0, error.setting.size() + 1);
  for (const auto& [setting, key] : kKeysOfSettings)
    if (error.setting == setting) what.replace(0, setting.size(), key);
  return Error(error.fault, in_keys(what), in_keys(error.hint), error.where);
}

std::vector<std::string> OverlapConfig::idle_keys() const {
  std::vector<std::string> idle;
  for (const auto& [key, text] : values_) {
    if (key.starts_with(is_ddp() ? "fsdp." : "ddp."))
      idle.push_back(fmt::format("{} does nothing with parallel.mode {}", key, value("parallel.mode")));
    if (key == "fsdp.prefetch" && !is_ddp() && value("fsdp.reshard_after_forward") == "0")
      idle.emplace_back("fsdp.prefetch does nothing with fsdp.reshard_after_forward false: every unit has a buffer");
  }
  return idle;
}

OverlapConfig parse_overlap_config(std::string_view text, const std::string& file, int ranks) {
  const YamlNode root = parse_yaml(text, file, {});
  OverlapConfig config;
  if (is_aorta_config(root)) {
    config = from_aorta(root, ranks);
  } else {
    for (const YamlNode& section : root.map("sections: model, training, fsdp, network, run, ...")) {
      if (section.key == "sweep") {
        read_sweeps(section, config);
      } else if (section.key == "env") {
        read_overlap_variables(section, config);
      } else if (section.key == "description") {
        config.notes.push_back(section.scalar("a text"));
      } else if (section.kind == YamlNode::Kind::map) {
        read_section(section, config);
      } else if (section.kind != YamlNode::Kind::null) {
        // Dotted keys may appear at the top level: "fsdp.prefetch: 2".
        config.set(section.key, section.scalar("one value"), section.place.text());
      }
    }
  }
  config.name = std::filesystem::path(file).stem().string();
  return config;
}

std::vector<OverlapPoint> overlap_points(const OverlapConfig& config) {
  std::vector<OverlapPoint> points = {{config, {}}};
  points[0].config.sweeps.clear();
  for (const auto& [key, values] : config.sweeps) {
    std::vector<OverlapPoint> next;
    for (const OverlapPoint& point : points)
      for (const std::string& value : values) {
        OverlapPoint& made = next.emplace_back(point);
        made.config.set(key, value, "sweep");
        made.assignments.push_back(fmt::format("{}={}", key, value));
      }
    points = std::move(next);
    if (points.size() > kMaxPoints)
      reject(fmt::format("sweep: more than {} combinations", kMaxPoints), "Sweep fewer keys, or fewer values.");
  }
  if (config.variables.empty()) return points;
  std::vector<OverlapPoint> each;
  const std::vector<VariableSetting> settings = variable_settings(config.variables, points.size());
  for (const OverlapPoint& point : points)
    for (const VariableSetting& setting : settings) each.emplace_back(point).variables = setting;
  return each;
}

}  // namespace weir
