#include "device/sim/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/yaml.h"

namespace weir::sim {
namespace {

constexpr std::string_view kMappings[] = {"round_robin", "least_referenced", "load_based", "rotating", "fixed"};
constexpr std::string_view kPriorities[] = {"ignored", "order", "blocks", "full"};
constexpr std::string_view kGraphQueues[] = {"none", "shared", "own"};
constexpr std::string_view kCopies[] = {"to_device", "to_host", "on_device"};
constexpr double kSecond = 1e9;
constexpr double kMaxRate = 1e18;
constexpr std::size_t kMaxDurations = 20'000;
constexpr double kMaxContention = 100;

// NAME is the C++ member, which is also the name that users write.
#define WEIR_WHOLE(NAME, LOWEST, HIGHEST, SUMMARY) \
  {#NAME, SUMMARY, LOWEST, HIGHEST, +[](SimProfile& profile) -> std::int64_t& { return profile.NAME; }, nullptr}
#define WEIR_REAL(NAME, LOWEST, HIGHEST, SUMMARY) \
  {#NAME, SUMMARY, LOWEST, HIGHEST, nullptr, +[](SimProfile& profile) -> double& { return profile.NAME; }}

template <std::size_t N>
std::optional<std::size_t> index_of(const std::string_view (&names)[N], std::string_view name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<std::size_t>(found - std::begin(names));
}

template <std::size_t N>
std::size_t choose(const std::string_view (&names)[N], std::string_view what, std::string_view name) {
  const auto index = index_of(names, name);
  const std::vector<std::string> all(std::begin(names), std::end(names));
  if (!index) reject(fmt::format("there is no {} '{}'", what, shown(name)), suggestion(shown(name), all));
  return *index;
}

void set(SimProfile& profile, const Setting& setting, std::string_view text) {
  const auto refuse = [&](const char* wanted) {
    reject(fmt::format("'{}' is not {}", shown(text), wanted),
           fmt::format("{} takes {:g} to {:g}.", setting.name, setting.lowest, setting.highest));
  };
  if (setting.whole != nullptr) {
    const auto value = parse_integer(text);
    if (!value) refuse("a whole number");
    if (static_cast<double>(*value) < setting.lowest || static_cast<double>(*value) > setting.highest)
      refuse("in its range");
    setting.whole(profile) = *value;
    return;
  }
  const auto value = parse_number(text);
  if (!value || !std::isfinite(*value)) refuse("a number");
  if (*value < setting.lowest || *value > setting.highest) refuse("in its range");
  setting.real(profile) = *value;
}

void set_map(SimProfile& profile, std::span<const std::string> items) {
  profile.map.clear();
  for (const std::string& item : items) {
    const auto queue = parse_integer(item);
    if (!queue || *queue < 0 || *queue >= kMaxStreams || profile.map.size() >= 4096)
      reject(fmt::format("'{}' is not a queue", shown(item)), "map takes queue numbers from 0, at most 4096 of them.");
    profile.map.push_back(*queue);
  }
}

void set_precisions(SimProfile& profile, std::span<const std::string> items) {
  profile.precisions.clear();
  for (const std::string& item : items) {
    const auto precision = precision_named(item);
    if (precision && is_fp8(*precision))
      reject(fmt::format("simulated devices have no {}", name_of(*precision)), "Use fp32, tf32, fp16 or bf16.");
    if (!precision) reject(fmt::format("there is no precision '{}'", shown(item)), "Use fp32, tf32, fp16 or bf16.");
    if (std::find(profile.precisions.begin(), profile.precisions.end(), *precision) == profile.precisions.end())
      profile.precisions.push_back(*precision);
  }
  if (profile.precisions.empty()) reject("a device needs a precision");
}

// Names and models appear in messages, tables and files.
std::string checked_text(std::string_view text) {
  if (text.empty() || text.size() > 80 || shown(text.substr(0, 40)) != text.substr(0, 40) ||
      std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\' || c == 127; }))
    reject(fmt::format("'{}' is no name", shown(text)), "Use 1 to 80 characters without quotes.");
  return std::string(text);
}

// Handles the settings that are words; false if the key is not one of them.
bool set_word(SimProfile& profile, std::string_view key, std::string_view value) {
  if (key == "name") {
    profile.name = checked_text(value);
  } else if (key == "model") {
    profile.model = checked_text(value);
  } else if (key == "mapping") {
    profile.mapping = static_cast<Mapping>(choose(kMappings, "mapping", value));
  } else if (key == "priorities") {
    profile.priorities = static_cast<Priorities>(choose(kPriorities, "kind of priorities", value));
  } else if (key == "graph_queues") {
    profile.graph_queues = static_cast<GraphQueues>(choose(kGraphQueues, "kind of graph queues", value));
  } else {
    return false;
  }
  return true;
}

const Setting* find_setting(std::string_view name) {
  static const std::map<std::string, const Setting*, std::less<>> kByName = [] {
    std::map<std::string, const Setting*, std::less<>> all;
    for (const Setting& setting : settings()) all.emplace(setting.name, &setting);
    return all;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? nullptr : found->second;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names = {"name",       "model",        "mapping",    "map",
                                    "priorities", "graph_queues", "precisions", "durations"};
  for (const Setting& setting : settings()) names.push_back(setting.name);
  return names;
}

double number_at(const YamlNode& node, double lowest, double highest) {
  const auto value = parse_number(node.scalar("a number"));
  if (!value || !(*value >= lowest && *value <= highest))
    node.place.refuse(fmt::format("'{}' is not in its range", shown(node.text)),
                      fmt::format("Use {:g} to {:g}.", lowest, highest));
  return *value;
}
std::int64_t whole_at(const YamlNode& node, std::int64_t lowest, std::int64_t highest) {
  const std::string& text = node.scalar("a whole number");
  const bool is_negative = !text.empty() && text[0] == '-';
  const auto value = parse_integer(is_negative ? std::string_view(text).substr(1) : std::string_view(text));
  if (!value || (is_negative ? -*value : *value) < lowest || (is_negative ? -*value : *value) > highest)
    node.place.refuse(fmt::format("'{}' is not in its range", shown(text)),
                      fmt::format("Use {} to {}.", lowest, highest));
  return is_negative ? -*value : *value;
}

// - {kernel: gemm, type: f32, precision: tf32, dims: [64, 64, 64, 256], ns: 4200, blocks: 4, blocks_per_multiprocessor:
// 1}
// - {host: gelu, type: f32, dims: [1024], ns: 900}
// - {copy: to_device, bytes: 4096, ns: 2000}
// - {collective: all_reduce, bytes: 4096, ns: 9000}
Duration read_duration(const YamlNode& node) {
  node.map("a duration like {kernel: fill, dims: [256], ns: 2000}");
  constexpr std::int64_t kMaxDim = std::int64_t{1} << 62;
  Duration duration;
  duration.ns = number_at(node.at("ns"), 0, 3600 * kSecond);
  const YamlNode* const kernel = node.find("kernel");
  const YamlNode* const host = node.find("host");
  if (kernel != nullptr || host != nullptr) {
    const YamlNode& named = kernel != nullptr ? *kernel : *host;
    if (kernel != nullptr) {
      node.allow({"kernel", "type", "precision", "dims", "ns", "held_ns", "blocks", "blocks_per_multiprocessor",
                  "contention"});
    } else {
      node.allow({"host", "type", "dims", "ns"});
      duration.of.kind = CommandKind::host;
    }
    duration.of.name = named.scalar("the name of a kernel");
    named.place.guard([&] { kernel_named(duration.of.name); });
    if (const YamlNode* const type = node.find("type")) {
      constexpr std::string_view kTypes[] = {"f32", "f16", "bf16", "i32"};
      duration.of.type =
          static_cast<ElementType>(type->place.guard([&] { return choose(kTypes, "type", type->scalar("a type")); }));
    }
    if (const YamlNode* const precision = node.find("precision")) {
      const auto value = precision_named(precision->scalar("a precision"));
      if (value && is_fp8(*value))
        precision->place.refuse("simulated devices have no fp8", "Use fp32, tf32, fp16 or bf16.");
      if (!value) precision->place.refuse("there is no such precision", "Use fp32, tf32, fp16 or bf16.");
      duration.of.precision = *value;
    }
    if (const YamlNode* const dims = node.find("dims")) {
      const auto items = dims->list("a list of sizes");
      if (items.size() > kMaxDims) dims->place.refuse(fmt::format("more than {} sizes", kMaxDims));
      for (std::size_t i = 0; i < items.size(); ++i) duration.of.dims[i] = whole_at(items[i], -kMaxDim, kMaxDim);
    }
    if (const YamlNode* const held = node.find("held_ns")) duration.held_ns = number_at(*held, 0, duration.ns);
    if (const YamlNode* const blocks = node.find("blocks")) duration.blocks = whole_at(*blocks, 1, INT32_MAX);
    if (const YamlNode* const most = node.find("blocks_per_multiprocessor"))
      duration.blocks_per_multiprocessor = whole_at(*most, 1, 1024);
    if (const YamlNode* const crowded = node.find("contention"))
      duration.contention = number_at(*crowded, 0, kMaxContention);
    return duration;
  }
  const YamlNode* const copy = node.find("copy");
  if (copy == nullptr && node.find("collective") == nullptr)
    node.place.refuse("what lasts so long?", "Name a kernel, a host function, a copy or a collective.");
  node.allow({copy != nullptr ? "copy" : "collective", "bytes", "ns"});
  duration.of.dims[0] = whole_at(node.at("bytes"), 0, kMaxDim);
  if (copy != nullptr) {
    duration.of.kind = CommandKind::copy;
    duration.of.name = copy->scalar("a direction");
    copy->place.guard([&] { choose(kCopies, "direction", duration.of.name); });
  } else {
    constexpr std::string_view kOps[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "shift"};
    const YamlNode& op = node.at("collective");
    duration.of.kind = CommandKind::collective;
    duration.of.name = op.scalar("a collective");
    op.place.guard([&] { choose(kOps, "collective", duration.of.name); });
  }
  return duration;
}

std::vector<std::string> words_of(const YamlNode& node) {
  std::vector<std::string> words;
  for (const YamlNode& item : node.list("a list")) words.push_back(item.scalar("a plain value"));
  return words;
}

void read_into(SimProfile& profile, const YamlNode& node, const std::string& prefix) {
  for (const YamlNode& item : node.map("a map of settings")) {
    const std::string key = prefix + item.key;
    if (item.kind == YamlNode::Kind::map && prefix.empty()) {
      read_into(profile, item, key + ".");
      continue;
    }
    item.place.guard([&] {
      if (key == "durations") {
        const auto items = item.list("a list of durations");
        if (items.size() > kMaxDurations) reject(fmt::format("more than {} durations", kMaxDurations));
        for (const YamlNode& entry : items) profile.durations.push_back(read_duration(entry));
      } else if (key == "map") {
        set_map(profile, words_of(item));
      } else if (key == "precisions") {
        set_precisions(profile, words_of(item));
      } else if (const Setting* const setting = find_setting(key)) {
        set(profile, *setting, item.scalar("a number"));
      } else if (!set_word(profile, key, item.kind == YamlNode::Kind::scalar ? item.text : std::string())) {
        reject(fmt::format("there is no setting '{}'", shown(key)), suggestion(shown(key), all_names()));
      }
    });
  }
}

std::string shown_real(double value) { return fmt::format("{}", value); }

}  // namespace

std::string_view name_of(Mapping mapping) { return kMappings[static_cast<std::size_t>(mapping)]; }
std::string_view name_of(Priorities priorities) { return kPriorities[static_cast<std::size_t>(priorities)]; }
std::string_view name_of(GraphQueues queues) { return kGraphQueues[static_cast<std::size_t>(queues)]; }

std::span<const Setting> settings() {
  constexpr double kCount = 65536;
  constexpr double kRate = 1e3;
  static const std::vector<Setting> kAll = {
      WEIR_WHOLE(queues, 1, kMaxStreams, "hardware queues"),
      WEIR_WHOLE(barrier, 0, 2,
                 "1: a queue's head also waits until all commands before it in the queue have ended; 2: only where its "
                 "own stream needs that"),
      WEIR_WHOLE(record_blocks, 0, 1, "1: recording an event holds its queue up until what its stream runs has ended"),
      WEIR_WHOLE(engine_queues, 0, kMaxStreams,
                 "queues for each kind of copies, for host functions and for collectives; 0: they use their stream's"),
      WEIR_WHOLE(host_in_queue, 0, 1, "1: host functions wait in their stream's queue all the same"),
      WEIR_WHOLE(queue_depth, 1, kCount, "packets pending in a queue before the host blocks"),
      WEIR_WHOLE(max_streams, 1, kCount, "streams that can exist at a time"),
      WEIR_WHOLE(multiprocessors, 1, kCount, "multiprocessors"),
      WEIR_WHOLE(slots_per_multiprocessor, 1, 1024, "parts into which a multiprocessor can be divided"),
      WEIR_WHOLE(resident_kernels, 1, kCount, "kernels that can be resident at a time; further launches wait"),
      WEIR_WHOLE(copy_engines.to_device, 1, 64, "engines for copies from the host"),
      WEIR_WHOLE(copy_engines.to_host, 1, 64, "engines for copies to the host"),
      WEIR_WHOLE(copy_engines.on_device, 1, 64, "engines for copies within the device"),
      WEIR_WHOLE(host_threads, 1, 1024, "threads that run host functions"),
      WEIR_WHOLE(priority_levels, 1, 64, "levels of priority: 0 to this less one"),
      WEIR_WHOLE(host.launch_ns, 0, kSecond, "host time to launch a kernel"),
      WEIR_WHOLE(host.copy_ns, 0, kSecond, "host time to submit a copy"),
      WEIR_WHOLE(host.host_function_ns, 0, kSecond, "host time to submit a host function"),
      WEIR_WHOLE(host.collective_ns, 0, kSecond, "host time to submit a collective"),
      WEIR_WHOLE(host.record_ns, 0, kSecond, "host time to record an event"),
      WEIR_WHOLE(host.wait_ns, 0, kSecond, "host time to make a stream wait for an event"),
      WEIR_WHOLE(host.graph_ns, 0, kSecond, "host time to launch a graph"),
      WEIR_WHOLE(host.finish_ns, 0, kSecond, "from the last end until the host knows of it"),
      WEIR_WHOLE(host.clock_ns, 0, kSecond, "host time to read the clock"),
      WEIR_WHOLE(device.doorbell_ns, 0, kSecond, "from submit to visible in the queue"),
      WEIR_WHOLE(device.launch_ns, 0, kSecond, "a queue's time per packet"),
      WEIR_WHOLE(device.stream_gap_ns, 0, kSecond, "from a command's end to the start of the next of its stream"),
      WEIR_WHOLE(device.event_gap_ns, 0, kSecond, "more than that where it waits for an event of its own queue"),
      WEIR_WHOLE(device.switch_ns, 0, kSecond, "more than stream_gap_ns where the event is another queue's"),
      WEIR_WHOLE(device.switch_per_doubling_ns, 0, kSecond, "more still for each doubling of the queues in use then"),
      WEIR_WHOLE(device.graph_gap_ns, 0, kSecond, "from a graph node's end to the start of its dependants"),
      WEIR_WHOLE(device.graph_node_ns, 0, kSecond, "a graph's time per node"),
      WEIR_WHOLE(device.copy_latency_ns, 0, kSecond, "of a copy, besides its bytes"),
      WEIR_WHOLE(device.host_function_latency_ns, 0, kSecond, "of a host function, besides its work"),
      WEIR_WHOLE(device.collective_latency_ns, 0, kSecond, "of a collective, besides its bytes"),
      WEIR_WHOLE(device.preempt_save_ns, 0, kSecond, "to set a running block aside (priorities: full)"),
      WEIR_WHOLE(device.preempt_restore_ns, 0, kSecond, "to bring it back"),
      WEIR_REAL(rates.fp32, kRate, kMaxRate, "FLOP/s outside matrix units, and of fp32 products"),
      WEIR_REAL(rates.tf32, kRate, kMaxRate, "FLOP/s of tf32 products"),
      WEIR_REAL(rates.fp16, kRate, kMaxRate, "FLOP/s of fp16 products"),
      WEIR_REAL(rates.bf16, kRate, kMaxRate, "FLOP/s of bf16 products"),
      WEIR_REAL(rates.memory_bytes, kRate, kMaxRate, "bytes/s of the device's memory"),
      WEIR_REAL(rates.to_device_bytes, kRate, kMaxRate, "bytes/s of an engine from the host"),
      WEIR_REAL(rates.to_host_bytes, kRate, kMaxRate, "bytes/s of an engine to the host"),
      WEIR_REAL(rates.on_device_bytes, kRate, kMaxRate, "bytes copied per second within the device"),
      WEIR_REAL(rates.link_bytes, kRate, kMaxRate, "bytes/s between ranks"),
      WEIR_REAL(rates.host_flop, kRate, kMaxRate, "FLOP/s of a host thread"),
      WEIR_REAL(rates.host_bytes, kRate, kMaxRate, "bytes/s of a host thread"),
      WEIR_REAL(efficiency.flop, 0.001, 1, "share of the FLOP/s that kernels reach"),
      WEIR_REAL(efficiency.memory, 0.001, 1, "share of the memory's bytes/s that kernels reach"),
      WEIR_WHOLE(kernel_ns, 0, kSecond, "the least that a kernel lasts"),
      WEIR_REAL(scale, 0.001, 1000, "factor of all kernels but spin, stamp, hold and toil"),
      WEIR_REAL(contention, 0, kMaxContention,
                "how much longer a block lasts beside others that fill the rest of the device"),
      WEIR_REAL(room, 0.0001, 1, "share of a kernel's blocks that take room; the others leave at once"),
      WEIR_REAL(jitter, 0, 2, "relative standard deviation of durations"),
      WEIR_WHOLE(seed, 0, 9e15, "of jitter and foreign load"),
      WEIR_WHOLE(timer_ns, 1, kSecond, "granularity of the moments that probe kernels write"),
      WEIR_REAL(foreign_load, 0, 0.95, "share of the time that somebody else's kernels take"),
      WEIR_WHOLE(foreign_slice_ns, 1000, kSecond, "how long they take the device, on average"),
      WEIR_WHOLE(memory_bytes, 1, 9e15, "the device's memory"),
  };
  return kAll;
}

#undef WEIR_WHOLE
#undef WEIR_REAL

void check(const SimProfile& profile) {
  if (profile.mapping != Mapping::fixed) return;
  if (profile.map.empty())
    reject("the mapping 'fixed' needs a map", "Give the queues in order of creation, like map: [0, 1, 1, 0].");
  for (const std::int64_t queue : profile.map)
    if (queue >= profile.queues)
      reject(fmt::format("map: there is no queue {}", queue),
             fmt::format("The device has queues 0 to {}.", profile.queues - 1));
}

void apply(SimProfile& profile, const std::string& key, const std::string& value) {
  try {
    if (key == "map") {
      set_map(profile, parse_names("map", value));
    } else if (key == "precisions") {
      set_precisions(profile, parse_names("precisions", value));
    } else if (const Setting* const setting = find_setting(key)) {
      set(profile, *setting, value);
    } else if (key == "durations") {
      reject("durations cannot be given here", "Write them in a profile: --device sim:my.yaml.");
    } else if (!set_word(profile, key, value)) {
      reject(fmt::format("there is no setting '{}'", shown(key)), suggestion(shown(key), all_names()));
    }
  } catch (const Error& error) {
    reject_setting("sim", fmt::format("{}={}", shown(key), shown(value)), error.what(), error.hint);
  }
  profile.overrides.emplace_back(key, value);
}

SimProfile load_profile(std::string_view text, const std::string& name) {
  const YamlNode root = parse_yaml(text, name, {});
  SimProfile profile;
  read_into(profile, root, "");
  root.place.guard([&] { check(profile); });
  return profile;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const EmbeddedProfile& profile : embedded_profiles()) names.emplace_back(profile.name);
  return names;
}

SimProfile profile_named(const std::string& name) {
  for (const EmbeddedProfile& profile : embedded_profiles())
    if (name == profile.name) return load_profile(profile.text, fmt::format("config/devices/{}.yaml", name));
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
  if (!is_file) {
    std::vector<std::string> names;
    for (const std::string& known : profile_names()) names.push_back("sim:" + known);
    // h100 is rather an h200 than an a100.
    std::stable_partition(names.begin(), names.end(),
                          [&](const std::string& known) { return !name.empty() && known[4] == name[0]; });
    reject_setting("device", "sim:" + name, "there is no such profile",
                   suggestion("sim:" + name, names) + " Or name a file: sim:./my.yaml.");
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error)) reject_setting("device", "sim:" + name, "there is no such file");
  return load_profile(read_file(name, YamlBounds{}.file_bytes), name);
}

std::string to_yaml(const SimProfile& from) {
  SimProfile profile = from;  // settings are accessed by reference
  std::string text =
      fmt::format("name: \"{}\"\nmodel: \"{}\"\nmapping: {}\n", profile.name, profile.model, name_of(profile.mapping));
  if (!profile.map.empty()) text += fmt::format("map: [{}]\n", fmt::join(profile.map, ", "));
  text += fmt::format("priorities: {}\ngraph_queues: {}\n", name_of(profile.priorities), name_of(profile.graph_queues));
  std::vector<std::string_view> precisions;
  for (const Precision precision : profile.precisions) precisions.push_back(weir::name_of(precision));
  text += fmt::format("precisions: [{}]\n", fmt::join(precisions, ", "));
  std::string group;
  for (const Setting& setting : settings()) {
    const std::size_t dot = setting.name.find('.');
    const std::string own = dot == std::string::npos ? "" : setting.name.substr(0, dot);
    if (own != group && !own.empty()) text += own + ":\n";
    group = own;
    text += fmt::format(
        "{}{}: {}\n", own.empty() ? "" : "  ", own.empty() ? setting.name : setting.name.substr(dot + 1),
        setting.whole != nullptr ? fmt::format("{}", setting.whole(profile)) : shown_real(setting.real(profile)));
  }
  if (!profile.durations.empty()) text += "durations:\n";
  for (const Duration& duration : profile.durations) {
    const Signature& of = duration.of;
    if (of.kind == CommandKind::copy || of.kind == CommandKind::collective) {
      text += fmt::format("  - {{{}: {}, bytes: {}, ns: {}}}\n", of.kind == CommandKind::copy ? "copy" : "collective",
                          of.name, of.dims[0], shown_real(duration.ns));
      continue;
    }
    const bool is_host = of.kind == CommandKind::host;
    text += fmt::format("  - {{{}: {}, type: {}", is_host ? "host" : "kernel", of.name, weir::name_of(of.type));
    if (!is_host) text += fmt::format(", precision: {}", weir::name_of(of.precision));
    text += fmt::format(", dims: [{}], ns: {}", fmt::join(of.dims, ", "), shown_real(duration.ns));
    if (duration.held_ns != 0) text += fmt::format(", held_ns: {}", shown_real(duration.held_ns));
    if (duration.blocks != 0) text += fmt::format(", blocks: {}", duration.blocks);
    if (duration.blocks_per_multiprocessor != 0)
      text += fmt::format(", blocks_per_multiprocessor: {}", duration.blocks_per_multiprocessor);
    if (duration.contention) text += fmt::format(", contention: {}", shown_real(*duration.contention));
    text += "}\n";
  }
  return text;
}

}  // namespace weir::sim
