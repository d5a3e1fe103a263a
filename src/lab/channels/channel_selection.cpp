#include "lab/channels/channel_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/options.h"

namespace weir {
namespace {

using channel_bench::Benchmark;
using channel_bench::Conditions;
using channel_bench::Group;

constexpr const char* kFloorGroup = "ping_pong";

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (!holds(names, name)) names.push_back(name);
}

// The part of a word before its first '/'.
std::string group_in(const std::string& word) { return word.substr(0, word.find('/')); }

bool names(const std::string& word, const Benchmark& benchmark) {
  const std::string id = benchmark.id();
  return id == word || (id.size() > word.size() && id.starts_with(word) && id[word.size()] == '/');
}
bool is_named(const std::vector<std::string>& words, const Benchmark& benchmark) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return names(word, benchmark); });
}

// Rejects words that name no group, or no benchmark of their group. `flag` is what they were given to.
void check_words(std::span<const Group> groups, const std::vector<std::string>& words, const Conditions& conditions,
                 const char* flag) {
  std::vector<std::string> known;
  for (const Group& group : groups) known.push_back(group.name);
  for (const std::string& word : words) {
    const std::string name = group_in(word);
    if (!holds(known, name))
      reject(fmt::format("{}unknown group '{}'", flag, name),
             suggestion(name, known) + " weir channel --list shows them.");
    if (name == word) continue;
    bool is_known = false;
    std::vector<std::string> ids;
    for (const Group& group : groups)
      if (group.name == name)
        for (const Benchmark& benchmark : group.benchmarks(conditions)) {
          is_known = is_known || names(word, benchmark);
          add_once(ids, name + "/" + benchmark.name);
          ids.push_back(benchmark.id());
        }
    if (!is_known)
      reject(fmt::format("{}unknown benchmark '{}'", flag, word),
             suggestion(word, ids) + " weir channel --list shows them.");
  }
}

void check_contestants(const std::vector<Benchmark>& benchmarks, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks) add_once(names, benchmark.contestant);
  for (const std::string& name : wanted)
    if (!holds(names, name))
      reject(fmt::format("--channel {}: no benchmark of these groups has it", name), suggestion(name, names));
}

// Third-party queues, floors and the mutex: what a channel is compared with.
bool is_reference(const Benchmark& benchmark) {
  return !benchmark.is_ours || benchmark.contestant.starts_with("mutex") || benchmark.contestant == "floor";
}

// The number in a file of /sys; -1 where there is none.
int number_in(const std::filesystem::path& file) {
  std::istringstream stream(read_kernel_file(file));
  int number = -1;
  stream >> number;
  return stream ? number : -1;
}

// What one group offers on this machine.
Json describe_group(const Group& group, const std::vector<Benchmark>& benchmarks) {
  std::vector<std::string> names, contestants;
  Json unavailable = Json::object(), targets = Json::array();
  for (const Benchmark& benchmark : benchmarks) {
    add_once(names, benchmark.name);
    add_once(contestants, benchmark.contestant);
    if (!benchmark.unavailable.empty())
      unavailable[benchmark.unavailable].push_back(benchmark.name + "/" + benchmark.contestant);
    if (benchmark.target && std::find(targets.begin(), targets.end(), benchmark.target->text) == targets.end())
      targets.push_back(benchmark.target->text);
  }
  return {{"group", group.name},
          {"summary", group.summary},
          {"seed", group.seed.empty() ? Json() : Json(group.seed)},
          {"benchmarks", names},
          {"contestants", contestants},
          {"targets", targets},
          {"unavailable", unavailable}};
}

}  // namespace

std::vector<Benchmark> choose_benchmarks(std::span<const Group> groups, const ChannelWords& words,
                                         const Conditions& conditions) {
  check_words(groups, words.wanted, conditions, "");
  check_words(groups, words.skipped, conditions, "--skip: ");
  std::vector<Benchmark> found, floors;
  for (const Group& group : groups) {
    const bool is_chosen =
        !holds(words.skipped, group.name) &&
        (words.wanted.empty() || std::any_of(words.wanted.begin(), words.wanted.end(),
                                             [&](const std::string& word) { return group_in(word) == group.name; }));
    if (!is_chosen && group.name != kFloorGroup) continue;
    std::vector<Benchmark> made = group.benchmarks(conditions);
    std::vector<Benchmark>& into = is_chosen ? found : floors;
    std::move(made.begin(), made.end(), std::back_inserter(into));
  }
  check_contestants(found, words.contestants);
  std::set<std::string> places;  // group/name of what was asked for
  const auto is_asked = [&](const Benchmark& benchmark) {
    return (words.contestants.empty() || holds(words.contestants, benchmark.contestant)) &&
           (words.wanted.empty() || is_named(words.wanted, benchmark));
  };
  for (const Benchmark& benchmark : found)
    if (is_asked(benchmark)) places.insert(benchmark.group + "/" + benchmark.name);
  std::erase_if(found, [&](const Benchmark& benchmark) {
    if (is_named(words.skipped, benchmark)) return true;
    if (is_asked(benchmark)) return false;
    return words.is_only || !is_reference(benchmark) || !places.contains(benchmark.group + "/" + benchmark.name);
  });
  if (found.empty()) reject("nothing is left to run", "Skip less. weir channel --list shows what there is.");
  if (words.is_only) return found;
  // round_trip/one_line is compared with ping_pong/one_line.
  std::erase_if(floors, [&](const Benchmark& floor) {
    return is_named(words.skipped, floor) || std::none_of(found.begin(), found.end(), [&](const Benchmark& benchmark) {
             return benchmark.group == "round_trip" && benchmark.name == floor.name;
           });
  });
  floors.insert(floors.end(), found.begin(), found.end());
  return floors;
}

Json describe_groups(const std::vector<Benchmark>& chosen) {
  Json all = Json::array();
  for (const Group& group : channel_bench::groups()) {
    std::vector<Benchmark> mine;
    for (const Benchmark& benchmark : chosen)
      if (benchmark.group == group.name) mine.push_back(benchmark);
    if (!mine.empty()) all.push_back(describe_group(group, mine));
  }
  return all;
}

ChannelResult result_for(const Benchmark& benchmark) {
  ChannelResult result;
  result.group = benchmark.group;
  result.name = benchmark.name;
  result.contestant = benchmark.contestant;
  result.is_ours = benchmark.is_ours;
  result.unit = benchmark.unit;
  result.what = benchmark.what;
  result.target = benchmark.target;
  result.unavailable = benchmark.unavailable;
  return result;
}

std::vector<int> ordered_cores(const std::vector<int>& usable, const std::filesystem::path& root) {
  struct Place {
    int turn, package, core, cpu;  // turn: index among the hardware threads of its core
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  std::map<std::pair<int, int>, int> taken;
  for (const int cpu : usable) {
    const auto topology = root / "sys/devices/system/cpu" / fmt::format("cpu{}", cpu) / "topology";
    const int package = number_in(topology / "physical_package_id"), core = number_in(topology / "core_id");
    // Without a topology, each CPU counts as a separate core.
    const int turn = core < 0 ? 0 : taken[{package, core}]++;
    places.push_back({turn, package, core < 0 ? cpu : core, cpu});
  }
  std::sort(places.begin(), places.end());
  std::vector<int> cores;
  for (const Place& place : places) cores.push_back(place.cpu);
  return cores;
}

std::vector<int> cores_named(const std::string& text, const std::vector<int>& usable,
                             const std::filesystem::path& root) {
  if (text == "none") return {};
  if (text == "auto") return ordered_cores(usable, root);
  std::vector<int> cores;
  for (const std::string& word : parse_names("--cores", text)) {
    const auto core = parse_integer(word);
    if (!core) reject(fmt::format("--cores {}: '{}' is not a core", text, word), "Use auto, none, or numbers: 0,1.");
    const auto found = std::find(usable.begin(), usable.end(), *core);
    if (found == usable.end()) {
      std::string names;
      for (const int one : usable) names += fmt::format("{}{}", names.empty() ? "" : ",", one);
      reject(fmt::format("--cores {}: this process may not use core {}", text, word),
             fmt::format("It may use {}.", names.size() > 60 ? names.substr(0, 57) + "..." : names));
    }
    if (std::find(cores.begin(), cores.end(), *found) != cores.end())
      reject(fmt::format("--cores {}: core {} is named twice", text, word), "To share a core, name only that one.");
    cores.push_back(*found);
  }
  return cores;
}

}  // namespace weir
