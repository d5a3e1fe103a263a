// The configuration of `weir overlap`: keys of a YAML file and of --set, checked against one table. Knows what the keys
// mean to a run; runs nothing.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/yaml.h"
#include "device/rank/network.h"
#include "run/passes.h"
#include "run/runner.h"
#include "run/variable_axis.h"

namespace weir {

inline constexpr const char* kOverlapWorkload = "ranking_transformer";

struct OverlapKey {
  enum class Kind : std::uint8_t { integer, number, pair, boolean, text };  // pair: two numbers
  std::string_view name;                                                    // "fsdp.prefetch"
  std::string_view help;
  Kind kind = Kind::integer;
  double lowest = 0, highest = 0;
  std::string_view initial = {};  // empty: the workload chooses, by scale
  std::string_view param = {};    // the workload's parameter that this key sets, if any
  std::string_view choices = {};  // allowed values of a text: "fsdp ddp"; words that an integer may be, too
};

std::span<const OverlapKey> overlap_keys();
bool is_overlap_key(std::string_view name);

using OverlapSetting = std::pair<std::string, std::string>;           // one of our keys, and its value
using AortaValues = std::map<std::string, std::string, std::less<>>;  // by AORTA's keys
// What a key of AORTA's means here.
struct AortaMeaning {
  std::vector<OverlapSetting> settings;
  std::string reason;  // why there are none
};

class OverlapConfig {
 public:
  std::string name = "overlap";                                          // the file's name, without folder and
                                                                         // extension
  std::vector<std::pair<std::string, std::vector<std::string>>> sweeps;  // keys, and the values to try for each
  std::vector<std::string> notes;                                        // remarks about the file for the user
  std::vector<VariableAxis> variables;                                   // each value has processes of its own

  // Rejects unknown keys (with a suggestion) and invalid values. The message begins with `where`.
  void set(const std::string& key, const std::string& value, const std::string& where);
  // Takes "key=value". The key is no longer swept. Messages begin with `where` and the text. A key of AORTA's is taken
  // under its own name; rejects, with the reason, one that has no counterpart.
  void assign(const std::string& text, const std::string& where);
  // Takes a key of AORTA's and returns what it means here; nothing if AORTA has no such key.
  std::optional<AortaMeaning> take_aorta(const std::string& key, const std::string& value, const std::string& where);
  bool has_batch_per_rank() const { return aorta_.contains("training.batch_size"); }
  void set_ranks(int ranks) { ranks_ = ranks; }  // of the run: AORTA's batch is per rank

  // Whether there are several points.
  bool varies() const {
    return !sweeps.empty() ||
           std::any_of(variables.begin(), variables.end(), [](const auto& axis) { return axis.values.size() > 1; });
  }
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  // The value that was set, or the initial one; empty where the workload chooses.
  std::string value(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }

  // Ranks per host, for fsdp.shard_group: node. Unless set, all ranks are on one.
  void set_ranks_per_host(int ranks) { ranks_per_host_ = ranks; }
  bool shards_by_host() const { return value("fsdp.shard_group") == "node" && !is_ddp(); }

  RunRequest request() const;
  Network network() const;
  // What timelines hold. Rejects more steps than one can.
  TraceSchedule trace_schedule() const;
  bool is_ddp() const { return value("parallel.mode") == "ddp"; }
  // Rewrites an error about a setting or parameter of a run in terms of the config's key: "param batch=8: ..." becomes
  // "training.batch=8: ...", and so do flags in its text and hint.
  Error in_keys(const Error& error) const;
  // Describes the keys that were set but have no effect.
  std::vector<std::string> idle_keys() const;

 private:
  std::string in_keys(std::string message) const;

  std::map<std::string, std::string, std::less<>> values_;
  AortaValues aorta_;  // taken so far
  int ranks_ = 1, ranks_per_host_ = 0;
};

// Reads Weir's own files and AORTA's. AORTA's keys are translated where they have a meaning here, in files of either
// kind; notes list the others. `ranks` is the number of ranks of the run: AORTA's batch is per rank.
OverlapConfig parse_overlap_config(std::string_view text, const std::string& file, int ranks);

// All combinations of the swept values, or the config itself if nothing is swept, each with the assignments that
// distinguish it: "fsdp.prefetch=2".
struct OverlapPoint {
  OverlapConfig config;
  std::vector<std::string> assignments;
  VariableSetting variables = {};
  std::size_t number = 1;

  // The assignments, and the variables that differ between points: "NCCL_ALGO=Ring".
  std::vector<std::string> names() const;
  // The names as the name of a folder, cut if they are long and then followed by the point's number; empty for the
  // only point.
  std::string folder_name() const;
};
std::vector<OverlapPoint> overlap_points(const OverlapConfig& config);

// Variables of the environment: src/lab/overlap/overlap_variables.cpp.
void read_overlap_variables(const YamlNode& section, OverlapConfig& config);
// Rejects variables that run.hw_queues would set as well.
void check_queue_variables(const OverlapConfig& config);
// Drivers read their number of queues from these.
inline constexpr const char* kQueueVariables[] = {"CUDA_DEVICE_MAX_CONNECTIONS", "GPU_MAX_HW_QUEUES"};
// Adds `others`, in place of those with the same name.
void replace_variables(std::vector<VariableAxis>& axes, const std::vector<VariableAxis>& others);

// AORTA's names: src/lab/overlap/overlap_aorta.cpp.
// What one of AORTA's keys means here; nothing if AORTA has no such key. `given`: the values of its keys so far, this
// one's included, because some mean something only together.
std::optional<AortaMeaning> aorta_meaning(const std::string& key, const AortaValues& given, int ranks,
                                          const std::string& where);
std::vector<std::string_view> aorta_keys();
bool is_aorta_config(const YamlNode& root);
// Why an unknown key of a file of AORTA's is left out.
std::string_view why_aorta_leaves_out(std::string_view section);

}  // namespace weir
