// What `weir overlap` is asked to do: keys of a YAML file and of --set, checked against one table. Knows what the keys
// mean to a run; runs nothing.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/yaml.h"
#include "device/rank/network.h"
#include "run/runner.h"

namespace weir {

inline constexpr const char* kOverlapWorkload = "ranking_transformer";

struct OverlapKey {
  enum class Kind : std::uint8_t { integer, number, boolean, text };
  std::string_view name;  // "fsdp.prefetch"
  std::string_view help;
  Kind kind = Kind::integer;
  double lowest = 0, highest = 0;
  std::string_view initial = {};  // empty: the workload decides, by scale
  std::string_view param = {};    // of the workload, where it is one
  std::string_view choices = {};  // of a text: "fsdp ddp"
};

std::span<const OverlapKey> overlap_keys();

class OverlapConfig {
 public:
  std::string name = "overlap";                                          // of the file, without folder and ending
  std::vector<std::pair<std::string, std::vector<std::string>>> sweeps;  // keys, and the values that each shall have
  std::vector<std::string> notes;                                        // what the reader should know about the file

  // Rejects unknown keys with a suggestion, and values that do not fit. `where` opens the message.
  void set(const std::string& key, const std::string& value, const std::string& where);
  // "key=value", as --set takes it. A key that is swept is no longer.
  void assign(const std::string& text);

  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  // As set, or as it is initially; empty where the workload decides.
  std::string value(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }

  RunRequest request() const;
  Network network() const;
  bool is_ddp() const { return value("parallel.mode") == "ddp"; }
  // A message about a flag or a parameter of `weir run`, about the key that stands for it here: "--param batch=8: ..."
  // becomes "training.batch=8: ...".
  std::string in_keys(std::string message) const;
  // What was set and does nothing, in words.
  std::vector<std::string> idle_keys() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// Reads our own files and AORTA's: of those, keys that have a meaning here are translated, and notes name the others.
// `ranks` as there will be: AORTA's batch is that of one rank.
OverlapConfig parse_overlap_config(std::string_view text, const std::string& file, int ranks);

// Every combination of the values that are swept; just the config itself where none is. With each the assignments that
// tell it from the others: "fsdp.prefetch=2".
struct OverlapPoint {
  OverlapConfig config;
  std::vector<std::string> assignments;
};
std::vector<OverlapPoint> overlap_points(const OverlapConfig& config);

// AORTA's files: src/lab/overlap/overlap_aorta.cpp.
bool is_aorta_config(const YamlNode& root);
OverlapConfig from_aorta(const YamlNode& root, int ranks);

}  // namespace weir
