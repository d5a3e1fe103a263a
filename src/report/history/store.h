// A history as its users see it: entries (one for each add), points and their samples. Knows what the tables mean;
// judges nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/history/database.h"
#include "report/history/intake.h"

namespace weir::history {

inline constexpr const char* kDefaultFile = "weir_history.db";

struct AddOptions {
  std::string tag;           // empty: none
  std::string commit;        // of the program under test; empty: not known
  std::string commit_basis;  // what it rests on: "given", "git", "git, with changes"
};

struct Added {
  std::optional<std::int64_t> entry;  // nothing where all points were there already
  std::size_t points = 0;
  std::size_t failed = 0;  // of them
  std::size_t known = 0;   // that were there already, and were not added again
  std::vector<std::int64_t> known_entries;
};

// What is empty selects nothing away.
struct EntryFilter {
  std::string tag, workload, machine;  // of a machine its id, or how that begins
};

struct Entry {
  std::int64_t id = 0;
  std::string added, tag, commit, commit_basis;
  std::string weir_version, weir_commit;
  std::size_t points = 0, failed = 0;
  std::vector<std::string> machines;  // ids
  std::vector<std::string> workloads;
};

// A metric of one point. Where there is no median, `reason` says why.
struct Measure {
  std::string unit, reason;
  std::size_t count = 0;
  std::optional<double> median, low, high;  // 95 % interval of the median
};

struct Point {
  std::int64_t id = 0, entry = 0;
  std::string machine;   // id
  std::string measured;  // when; empty where the file did not say
  std::string at;        // the same, or when it was added
  std::string tag, commit;
  std::string origin, weir_version, weir_commit;
  std::map<std::string, std::string> key;  // as of ResultPoint
  std::string failure;
  Measure latency, throughput;
  std::int64_t conditions = 0;

  const std::string& workload() const;
};

struct PointFilter {
  std::optional<std::int64_t> entry;
  std::string workload, machine;
};

class Store {
 public:
  Store(const std::filesystem::path& path, Access access) : database_(path, access) {}

  // In one transaction. A point whose content is there already is left out and counted.
  Added add(const Intake& intake, const AddOptions& options);
  // False where there is no such entry.
  bool remove(std::int64_t entry);

  std::vector<Entry> entries(const EntryFilter& filter = {});
  std::vector<Point> points(const PointFilter& filter = {});  // in the order of time
  // Rejects a machine that no id begins with, or several; empty stays empty.
  std::string resolve_machine(const std::string& begin);
  std::vector<Machine> machines();
  std::vector<std::string> workloads();
  // Device and environment as the result had them.
  std::pair<Json, Json> conditions(std::int64_t id);
  // Nothing where the point has none of this metric ("latency", "throughput"). Rejects damaged ones.
  std::vector<double> samples(std::int64_t point, const std::string& metric);

  const std::string& name() const noexcept { return database_.name(); }

 private:
  Database database_;
};

}  // namespace weir::history
