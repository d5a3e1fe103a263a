// Possible values of flags and arguments: names from the program's own lists. Opens no driver.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "channel/channel.h"
#include "cli/manual/completion_words.h"
#include "cli/manual/topics.h"
#include "cli/ready_files.h"
#include "device/sim/profile.h"
#include "lab/channels/loops/benchmark.h"
#include "lab/kernels/package/package.h"
#include "lab/overlap/overlap_config.h"
#include "lab/preempt/experiment.h"
#include "lab/watch/columns.h"
#include "step/workload/workload.h"
#include "step/workload/yaml.h"
#include "submit/placement.h"
#include "submit/sched/mechanism/list.h"
#include "submit/sched/policy.h"
#include "trace/import/list.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

using Candidates = std::vector<Candidate>;

Candidates words(std::initializer_list<const char*> names) {
  Candidates list;
  for (const char* name : names) list.push_back({name, ""});
  return list;
}

// Anything with a name and a summary.
Candidates described(const auto& entries) {
  Candidates list;
  for (const auto& entry : entries) list.push_back({std::string(entry.name), std::string(entry.summary)});
  return list;
}

Values plain(Candidates list) { return {std::move(list)}; }
Values several(Candidates list) { return {std::move(list), PathKind::none, true}; }
Values paths(PathKind kind) { return {{}, kind}; }

Values workload_names(const Typed&) { return plain(described(workloads())); }

Values devices(const Typed&) {
  Candidates list = {{"auto", "the first GPU, else cpu"}, {"cpu", "software GPU"}, {"null", "runs nothing: the floor"}};
  for (const std::string& gpu : gpus_seen()) list.push_back({gpu, "GPU"});
  for (const std::string& name : sim::profile_names()) list.push_back({"sim:" + name, "GPU in virtual time"});
  return plain(list);
}

Values with_ready(const std::vector<std::string>& names) {
  Values values = paths(PathKind::yaml_files);
  for (const std::string& name : names) values.candidates.push_back({name, "comes with weir"});
  return values;
}
Values workload_files(const Typed&) { return with_ready(ready_names().workloads); }
Values scenarios(const Typed&) { return with_ready(ready_names().scenarios); }
Values packages(const Typed&) {
  Values values = paths(PathKind::folders);
  for (const std::string& name : ready_names().packages) values.candidates.push_back({name, "comes with weir"});
  return values;
}

// "name=", or "name=choice" once the name is complete.
struct Assignable {
  std::string name, help;
  std::vector<std::string> choices;
};
Values assignments(const std::vector<Assignable>& keys, const Typed& typed) {
  const auto sign = typed.value.find('=');
  Values values;
  for (const Assignable& key : keys) {
    if (sign == std::string::npos) {
      values.candidates.push_back({key.name + "=", key.help});
      values.has_more = true;
    } else if (typed.value.compare(0, sign, key.name) == 0) {
      for (const std::string& choice : key.choices) values.candidates.push_back({key.name + "=" + choice, ""});
    }
  }
  return values;
}

Values parameters(const Typed& typed) {
  std::vector<Workload> loaded;
  const Workload* workload = nullptr;
  for (const Workload& each : workloads())
    if (each.name == typed.workload) workload = &each;
  if (workload == nullptr && !typed.file.empty()) {
    try {
      loaded.push_back(load_workload(config_file(typed.file)));
      workload = &loaded.back();
    } catch (const Error&) {
      // An incomplete name, or a file that is being written: there is nothing to offer yet.
    }
  }
  if (workload == nullptr) return {};
  std::vector<Assignable> keys;
  for (const ParamSpec& param : workload->params) keys.push_back({param.name, param.help, param.choices});
  return assignments(keys, typed);
}

Values overlap_settings(const Typed& typed) {
  std::vector<Assignable> keys;
  for (const OverlapKey& key : overlap_keys()) {
    std::vector<std::string> choices;
    for (std::string_view rest = key.choices; !rest.empty();) {
      const auto blank = std::min(rest.find(' '), rest.size());
      choices.emplace_back(rest.substr(0, blank));
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
    if (key.kind == OverlapKey::Kind::boolean) choices = {"true", "false"};
    keys.push_back({std::string(key.name), std::string(key.help), choices});
  }
  return assignments(keys, typed);
}

Values sim_settings(const Typed& typed) {
  std::vector<Assignable> keys;
  for (const sim::Setting& setting : sim::settings()) keys.push_back({std::string(setting.name), "", {}});
  return assignments(keys, typed);
}

Values submit_ways(const Typed&) {
  Candidates list = {{"inline", "one host thread"},
                     {"threads", "several, each with its own streams"},
                     {"graph", "one launch per segment of the step"},
                     {"channel", "producers and a thread that submits"}};
  for (const std::string_view name : channel_names())
    if (name != "broadcast") list.push_back({"channel:" + std::string(name), ""});
  return several(list);
}

Values placements(const Typed&) { return plain(described(placement_policies())); }
Values policies(const Typed&) { return plain(described(scheduler::policies())); }
Values mechanisms_of_sched(const Typed&) { return plain(described(scheduler::mechanisms())); }
Values some_policies(const Typed&) { return several(described(scheduler::policies())); }
Values mechanisms(const Typed&) {
  Candidates list = described(preempt::mechanisms());
  list.insert(list.begin(), {"all", ""});
  return several(list);
}
Values channel_groups(const Typed&) { return plain(described(channel_bench::groups())); }
Values contestants(const Typed&) {
  Candidates list;
  for (const std::string_view name : channel_names()) list.push_back({std::string(name), ""});
  return several(list);
}
Values trace_formats(const Typed&) { return plain(described(importers())); }
Values categories(const Typed&) {
  Candidates list;
  for (const Workload& workload : workloads())
    if (std::none_of(list.begin(), list.end(), [&](const Candidate& each) { return each.text == workload.category; }))
      list.push_back({workload.category, ""});
  return plain(list);
}
Values backends(const Typed&) {
  Candidates list;
  for (const package::Backend backend : package::kBackends) list.push_back({std::string(name_of(backend)), ""});
  return several(list);
}
Values bench_precisions(const Typed&) {
  return several(words({"fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"}));
}
Values precisions(const Typed&) { return plain(words({"fp32", "tf32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"})); }
Values scales(const Typed&) { return several(words({"tiny", "small", "full"})); }
Values sync_modes(const Typed&) { return plain(words({"per_iteration", "end_only", "none"})); }
Values watch_columns(const Typed&) {
  Candidates list;
  for (const watch::ColumnType& column : watch::columns()) list.push_back({std::string(column.name), ""});
  return plain(list);
}
Values shells(const Typed&) { return plain(words({"bash", "zsh", "fish"})); }
Values any_file(const Typed&) { return paths(PathKind::files); }
Values any_folder(const Typed&) { return paths(PathKind::folders); }
Values topic_names(const Typed&) { return plain(described(topics())); }

struct Entry {
  std::string_view command;  // empty: any
  std::string_view flag;     // or an argument's name
  Values (*values)(const Typed&);
};

// Entries for one command come before those for any command.
constexpr Entry kEntries[] = {
    {"run", "workload",
     [](const Typed&) {
       Candidates list = described(workloads());
       for (const char* name : {"P0", "P1", "P2", "P3", "all"}) list.push_back({name, "a class of workloads"});
       return plain(list);
     }},
    {"overlap", "config", scenarios},
    {"overlap tune", "config", scenarios},
    {"overlap", "--output", any_folder},
    {"channel", "groups", channel_groups},
    {"channel", "--channel", contestants},
    {"channel", "--baseline-dir", any_folder},
    {"help", "words", topic_names},
    {"completion", "shell", shells},
    {"record", "--output", any_folder},
    {"record dump", "--trace-format", [](const Typed&) { return plain(words({"kineto", "csv"})); }},
    {"profile", "--trace-format", [](const Typed&) { return plain(words({"kineto", "csv"})); }},
    {"profile", "--profiler",
     [](const Typed&) { return plain(words({"auto", "events", "cupti", "rocprofv3", "rocprofiler-sdk"})); }},
    {"advise", "--input-format", trace_formats},
    {"analyze", "--input-format", trace_formats},
    {"bench", "--path", packages},
    {"bench", "--device", backends},
    {"bench", "--precision", bench_precisions},
    {"bench", "--baseline", any_file},
    {"overlap sweep", "--collective",
     [](const Typed&) {
       return several(words({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "shift"}));
     }},
    {"preempt", "--mechanisms", mechanisms},
    {"preempt", "--victims", [](const Typed&) { return several(words({"waves", "persistent", "memory"})); }},
    {"sched start", "--policy", policies},
    {"sched start", "--mechanism", mechanisms_of_sched},
    {"sched start", "--mps", [](const Typed&) { return plain(words({"own", "theirs", "none"})); }},
    {"sched run", "--priority", [](const Typed&) { return plain(words({"high", "normal", "low"})); }},
    {"queues fairness", "--priorities", [](const Typed&) { return plain(words({"same", "mixed"})); }},
    {"watch", "--source", [](const Typed&) { return plain(words({"auto", "kfd", "device"})); }},
    {"watch", "--sort", watch_columns},
    {"amd capture", "--output", any_folder},
    {"amd capture", "--keep", [](const Typed&) { return plain(words({"first", "last"})); }},
    {"amd join", "--snapshot", any_folder},
    {"try", "--output", any_folder},
    {"", "workload", workload_names},
    {"", "--workload", workload_names},
    {"", "--file", workload_files},
    {"", "--device", devices},
    {"", "--param", parameters},
    {"", "--sim", sim_settings},
    {"", "--set", overlap_settings},
    {"", "--submit", submit_ways},
    {"", "--schedule", some_policies},
    {"", "--placement", placements},
    {"", "--sync-mode", sync_modes},
    {"", "--scale", scales},
    {"", "--precision", precisions},
    {"", "--category", categories},
    {"bench", "--output", any_folder},
    {"", "--debugfs", any_folder},
    {"", "--sysfs", any_folder},
    {"", "--output", any_file},
    {"", "--summary", any_file},
    {"", "--dot", any_file},
    {"", "--openmetrics", any_file},
    {"", "--save-profile", any_file},
};

// For values without an entry: by the type shown in the help.
PathKind paths_of(const std::string& type) {
  if (type.find("FILE") != std::string::npos || type.find("PATH") != std::string::npos) return PathKind::files;
  return type.find("DIR") != std::string::npos || type.find("FOLDER") != std::string::npos ? PathKind::folders
                                                                                           : PathKind::none;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// simd_count 304: a GPU; CPUs are nodes as well, with 0.
int kfd_gpus(const fs::path& nodes) {
  int count = 0;
  std::error_code ignored;
  for (const auto& node : fs::directory_iterator(nodes, ignored)) {
    std::istringstream properties(read_kernel_file(node.path() / "properties"));
    std::string name;
    for (long long value = 0; properties >> name >> value;)
      if (name == "simd_count" && value > 0) ++count;
  }
  return count;
}

}  // namespace

std::vector<std::string> gpus_seen(const std::string& root) {
  constexpr int kMaxOffered = 16;
  std::vector<std::string> names;
  const fs::path top = root;
  int nvidia = 0;
  while (nvidia < kMaxOffered && is_there(top / ("dev/nvidia" + std::to_string(nvidia)))) ++nvidia;
  if (nvidia == 0 && is_there(top / "dev/dxg")) nvidia = 1;  // under Windows all GPUs are behind one file
  for (int i = 0; i < nvidia; ++i) names.push_back("cuda:" + std::to_string(i));
  const int amd =
      std::min(kMaxOffered, is_there(top / "dev/kfd") ? kfd_gpus(top / "sys/class/kfd/kfd/topology/nodes") : 0);
  for (int i = 0; i < amd; ++i) names.push_back("hip:" + std::to_string(i));
  std::error_code ignored;
  if (fs::directory_iterator(top / "etc/OpenCL/vendors", ignored) != fs::directory_iterator())
    names.emplace_back("opencl:0");
  return names;
}

Values values_of(const FlagFacts& flag, const Typed& typed) {
  for (const Entry& entry : kEntries) {
    const bool is_this = flag.is_argument() ? entry.flag == flag.value : flag.is_named(entry.flag);
    if (is_this && (entry.command.empty() || entry.command == typed.command)) return entry.values(typed);
  }
  Values values = paths(paths_of(flag.type));
  for (const std::string& choice : flag.choices) values.candidates.push_back({choice, ""});
  return values;
}

}  // namespace weir::cli
