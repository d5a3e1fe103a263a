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
constexpr int kMaxTraced = kMaxTracedSteps + 1;  // steps that a trace has room for, with one to warm up

constexpr OverlapKey kKeys[] = {
    {"model.layers", "encoder layers", Kind::integer, 1, 1024, {}, "layers"},
    {"model.dim", "width of the model", Kind::integer, 2, 65536, {}, "dim"},
    {"model.heads", "attention heads", Kind::integer, 1, 1024, {}, "heads"},
    {"model.mlp", "width of the MLP", Kind::integer, 1, kMany, {}, "mlp"},
    {"model.vocab", "rows of the embedding table", Kind::integer, 1, kMany, {}, "vocab"},
    {"model.sparse", "sparse features of a sample: a token each", Kind::integer, 1, 65536, {}, "sparse"},
    {"model.dense", "dense features of a sample", Kind::integer, 1, kMany, {}, "dense"},
    {"model.scorer", "width of the scorer's hidden layer", Kind::integer, 1, kMany, {}, "scorer"},
    {"model.dropout", "share of activations that become 0 in training", Kind::number, 0, 0.99, {}, "dropout"},
    {"training.batch", "samples of a micro-batch, of all ranks together", Kind::integer, 1, kMany, {}, "batch"},
    {"training.accumulation", "micro-batches per step", Kind::integer, 1, 1024, {}, "accumulation"},
    {"training.precision", "of compute, gathers and reductions", Kind::text, 0, 0, "fp32", {}, "fp32 tf32 fp16 bf16"},
    {"training.clip", "largest norm of the gradient; 0: not clipped", Kind::number, 0, kMany, {}, "clip"},
    {"training.rate", "learning rate", Kind::number, 0, 1, {}, "rate"},
    {"training.decay", "weight decay", Kind::number, 0, 1, {}, "decay"},
    {"optimizer.betas", "AdamW's shares of the old mean and mean square", Kind::pair, 0, 0.999999, "0.9,0.999"},
    {"optimizer.eps", "added to the root of the mean square", Kind::number, 1e-30, 1, {}, "epsilon"},
    {"scheduler.warmup_steps",
     "steps in which the rate rises to the full one",
     Kind::integer,
     0,
     1 << 24,
     {},
     "warmup_steps"},
    {"scheduler.total_steps",
     "steps after which the rate has fallen; 0: it is constant",
     Kind::integer,
     0,
     1 << 24,
     {},
     "total_steps"},
    {"scheduler.decay", "how the rate falls", Kind::text, 0, 0, {}, "schedule", "linear cosine none"},
    {"scheduler.least_rate", "the rate at the end", Kind::number, 0, 1, {}, "least_rate"},
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
    {"fsdp.shard_group",
     "ranks that share one copy of the parameters; 0: all; node: those of a host",
     Kind::integer,
     0,
     4096,
     "0",
     {},
     "node"},
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
    {"run.traced", "steps that timelines hold", Kind::integer, 2, kMaxTracedSteps, "10"},
    {"profiling.wait", "traced pass: steps that each round lets go by", Kind::integer, 0, 10000, "0"},
    {"profiling.warmup", "then steps whose trace is thrown away", Kind::integer, 0, 10000, "1"},
    {"profiling.active", "then steps that timelines hold; as many as run.traced unless set", Kind::integer, 1, 10000},
    {"profiling.repeat", "rounds; 0: as many as run.iterations has room for", Kind::integer, 0, 10000, "1"},
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
      if (is_minus_one || (!key.choices.empty() && value == key.choices)) return value;
      if (!number || static_cast<double>(*number) < key.lowest || static_cast<double>(*number) > key.highest)
        refuse(range());
      return value;
    }
    case Kind::number: {
      const auto number = parse_number(value);
      if (!number || *number < key.lowest || *number > key.highest) refuse(range());
      return value;
    }
    case Kind::pair: {
      std::string text = value;
      if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
      std::vector<std::string> parts;
      if (!text.empty() && text.find_first_not_of(" ,") != std::string::npos) parts = parse_names(where, text);
      std::string stored;
      for (const std::string& part : parts) {
        const auto number = parse_number(part);
        if (!number || *number < key.lowest || *number > key.highest) refuse(range());
        stored += (stored.empty() ? "" : ",") + part;
      }
      if (parts.size() != 2) refuse(fmt::format("Use two numbers: {} ({}).", key.initial, key.help));
      return stored;
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

// The value of a key as text: one value, or a list with commas where the key takes one.
std::string value_text(const YamlNode& item, const std::string& key) {
  const OverlapKey* const known = find_key(key);
  if (known == nullptr || known->kind != Kind::pair || item.kind != YamlNode::Kind::list)
    return item.scalar("one value");
  std::string text;
  for (const YamlNode& each : item.items) text += (text.empty() ? "" : ",") + each.scalar("a number");
  return text;
}

// Sets a key of a file, of ours or of AORTA's. A file of AORTA's may hold any others, which are noted.
void read_key(const std::string& key, const YamlNode& item, bool is_aorta, OverlapConfig& config) {
  const std::string where = item.place.text();
  if (is_overlap_key(key)) {
    if (!is_aorta || item.kind != YamlNode::Kind::null) config.set(key, value_text(item, key), where);
    return;
  }
  const bool is_value = item.kind == YamlNode::Kind::scalar;
  if (const auto meaning = config.take_aorta(key, is_value ? item.text : "", where)) {
    if (meaning->settings.empty()) config.notes.push_back(fmt::format("not taken: {}: {}", key, meaning->reason));
  } else if (is_aorta) {
    config.notes.push_back(
        fmt::format("not taken: {}: {}", key, why_aorta_leaves_out(std::string_view(key).substr(0, key.find('.')))));
  } else {
    config.set(key, item.scalar("one value"), where);
  }
}

bool is_off(const YamlNode* switch_) {
  return switch_ != nullptr && switch_->kind == YamlNode::Kind::scalar &&
         (switch_->text == "false" || switch_->text == "False");
}

void read_sweeps(const YamlNode& sweep, OverlapConfig& config) {
  for (const YamlNode& item : sweep.map("keys with lists of values")) {
    std::vector<std::string> values;
    OverlapConfig trial;
    if (item.key == "run.ranks")
      item.place.refuse("all points run in one job, on the same ranks", "Run them one by one with --ranks.");
    for (const YamlNode& value : item.list("a list of values")) {
      trial.set(item.key, value_text(value, item.key), value.place.text());
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
bool is_overlap_key(std::string_view name) { return find_key(name) != nullptr; }

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
  const std::string place = fmt::format("{} {}", where, text);
  const auto meaning = is_overlap_key(key) ? std::nullopt : take_aorta(key, value, place);
  if (meaning && meaning->settings.empty())
    reject(fmt::format("{}: AORTA's key has no counterpart here: {}", place, meaning->reason),
           "Leave it out; `weir overlap --list` lists what there is.");
  if (!meaning) set(key, value, place);
  for (const auto& setting : meaning ? meaning->settings : std::vector<OverlapSetting>{{key, value}})
    std::erase_if(sweeps, [&](const auto& sweep) { return sweep.first == setting.first; });
}

std::optional<AortaMeaning> OverlapConfig::take_aorta(const std::string& key, const std::string& value,
                                                      const std::string& where) {
  AortaValues given = aorta_;
  given[key] = value;
  const int ranks = ranks_ > 1 ? ranks_ : std::max(1, static_cast<int>(integer("run.ranks")));
  auto meaning = aorta_meaning(key, given, ranks, where);
  if (!meaning) return meaning;
  for (const auto& [ours, text] : meaning->settings) set(ours, text, where);
  aorta_ = std::move(given);
  return meaning;
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
  const std::string betas = value("optimizer.betas");
  request.params.emplace_back("beta1", betas.substr(0, betas.find(',')));
  request.params.emplace_back("beta2", betas.substr(betas.find(',') + 1));
  request.params.emplace_back("shard_group", is_ddp()           ? "0"
                                             : shards_by_host() ? std::to_string(ranks_per_host_)
                                                                : value("fsdp.shard_group"));
  request.params.emplace_back("bucket_kib", value(is_ddp() ? "ddp.bucket_kib" : "fsdp.bucket_kib"));
  return request;
}

Network OverlapConfig::network() const {
  return {.latency_us = number("network.latency_us"),
          .bandwidth_gbs = number("network.bandwidth_gbs"),
          .absent_rank = static_cast<int>(integer("network.absent_rank")),
          .absent_at = static_cast<std::uint64_t>(integer("network.absent_at"))};
}

TraceSchedule OverlapConfig::trace_schedule() const {
  const auto count = [&](const char* key) { return static_cast<int>(integer(key)); };
  TraceSchedule schedule(has("profiling.active") ? count("profiling.active") : count("run.traced"));
  schedule.wait = count("profiling.wait");
  schedule.warmup = count("profiling.warmup");
  schedule.repeat = count("profiling.repeat");
  if (schedule.repeat == 0) schedule.repeat = std::max(1, count("run.iterations") / schedule.round());
  if (const std::int64_t steps = std::int64_t{schedule.round()} * schedule.repeat; steps > kMaxTraced)
    reject(fmt::format("profiling: {} rounds of {} steps are {}; a trace has room for {}", schedule.repeat,
                       schedule.round(), steps, kMaxTraced),
           "Use a smaller profiling.repeat, wait, warmup or active.");
  return schedule;
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
  replace("shard_group=", "fsdp.shard_group=");
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
    if (key.starts_with("scheduler.") && key != "scheduler.total_steps" && integer("scheduler.total_steps") == 0)
      idle.push_back(fmt::format("{} does nothing without scheduler.total_steps", key));
    if (key == "run.traced" && has("profiling.active"))
      idle.emplace_back("run.traced does nothing with profiling.active");
    if (key == "fsdp.prefetch" && !is_ddp() && value("fsdp.reshard_after_forward") == "0")
      idle.emplace_back("fsdp.prefetch does nothing with fsdp.reshard_after_forward false: every unit has a buffer");
  }
  return idle;
}

OverlapConfig parse_overlap_config(std::string_view text, const std::string& file, int ranks) {
  const YamlNode root = parse_yaml(text, file, {});
  OverlapConfig config;
  config.set_ranks(ranks);
  const bool is_aorta = is_aorta_config(root);
  if (is_aorta)
    config.notes.push_back(fmt::format("read as a config of AORTA's; its batch size is that of {}",
                                       ranks == 1 ? "the only rank" : fmt::format("each of {} ranks", ranks)));
  for (const YamlNode& section : root.map("sections: model, training, fsdp, network, run, ...")) {
    if (is_aorta && section.key == "profiling" && is_off(section.find("enabled"))) {
      config.notes.emplace_back("not taken: profiling: it is off in the file; run.traced steps are traced here");
    } else if (section.key == "sweep") {
      read_sweeps(section, config);
    } else if (section.key == "env") {
      read_overlap_variables(section, config);
    } else if (section.key == "description") {
      config.notes.push_back(section.scalar("a text"));
    } else if (section.kind == YamlNode::Kind::map) {
      // A key that counts only with another of its section is read after that, wherever it stands.
      for (const bool is_last : {false, true})
        for (const YamlNode& item : section.items)
          if ((item.key == "hybrid_shard_gpus_per_node") == is_last)
            read_key(fmt::format("{}.{}", section.key, item.key), item, is_aorta, config);
    } else if (section.kind != YamlNode::Kind::null) {
      // Dotted keys may appear at the top level: "fsdp.prefetch: 2".
      read_key(section.key, section, is_aorta, config);
    }
  }
  config.name = std::filesystem::path(file).stem().string();
  return config;
}

std::vector<OverlapPoint> overlap_points(const OverlapConfig& config) {
  check_queue_variables(config);
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
  std::vector<OverlapPoint> each;
  const std::vector<VariableSetting> settings = variable_settings(config.variables, points.size());
  for (const OverlapPoint& point : points)
    for (const VariableSetting& setting : settings) {
      OverlapPoint& made = each.emplace_back(point);
      made.variables = setting;
      made.number = each.size();
    }
  return each;
}

}  // namespace weir
