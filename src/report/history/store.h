// A history as its users see it: entries (one per add), points and their samples. Knows what the tables mean; judges
// nothing.
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
  std::string commit;        // of the program under test; empty: unknown
  std::string commit_basis;  // how it is known: "given", "git", "git, with changes"
};

struct Added {
  std::optional<std::int64_t> entry;  // empty where all points existed already
  std::size_t points = 0;
  std::size_t failed = 0;  // part of them
  std::size_t known = 0;   // existed already, and were not added again
  std::vector<std::int64_t> known_entries;
};

// An empty field matches everything.
struct EntryFilter {
  std::string tag, workload, machine;  // for a machine its id, or the beginning of it
};

struct Entry {
  std::int64_t id = 0;
  std::string added, tag, commit, commit_basis;
  std::string weir_version, weir_commit;
  std::size_t points = 0, failed = 0;
  std::vector<std::string> machines;  // ids
  std::vector<std::string> workloads;
};

// A metric of one point. Where there is no median, `reason` explains why.
struct Measure {
  std::string unit, reason;
  std::size_t count = 0;
  std::optional<double> median, low, high;  // 95 % interval of the median
};

struct Point {
  std::int64_t id = 0, entry = 0;
  std::string machine;   // id
  std::string measured;  // when; empty where the file has no date
  std::string at;        // the same, or else when it was added
  std::string tag, commit;
  std::string origin, weir_version, weir_commit;
  std::map<std::string, std::string> key;  // as in ResultPoint
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
  Store(const std::filesystem::path& path, DatabaseAccess access) : database_(path, access) {}

  // Adds everything in one transaction. A point whose content exists already is left out and counted.
  Added add(const Intake& intake, const AddOptions& options);
  // Returns false where there is no such entry.
  bool remove(std::int64_t entry);

  std::vector<Entry> entries(const EntryFilter& filter = {});
  std::vector<Point> points(const PointFilter& filter = {});  // in order of time
  // Rejects a prefix that matches no machine or several; empty stays empty.
  std::string resolve_machine(const std::string& begin);
  std::vector<Machine> machines();
  std::vector<std::string> workloads();
  // Device and environment as in the result.
  std::pair<Json, Json> conditions(std::int64_t id);
  // Empty where the point has no samples of this metric ("latency", "throughput"). Rejects damaged ones.
  std::vector<double> samples(std::int64_t point, const std::string& metric);

  const std::string& name() const noexcept { return database_.name(); }

 private:
  Database database_;
};

}  // namespace weir::history
