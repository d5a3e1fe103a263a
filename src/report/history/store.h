// A history as its users see it: entries (one per add), points and their samples. Knows what the tables mean; judges
// nothing.
#pragma once

#include <cstdint>
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
  std::size_t failed = 0;     // part of them
  std::size_t known = 0;      // existed already, and were not added again
  std::size_t documents = 0;  // kept whole, beside their points
  std::vector<std::int64_t> known_entries;
};

// An empty field matches everything.
struct EntryFilter {
  std::string tag, workload, machine;  // for a machine its id, the beginning of it, or its serial number
  std::optional<std::int64_t> id;
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

struct PruneOptions {
  std::string before;             // a time; what was measured earlier goes
  bool is_keeping_daily = false;  // but the last of each series and day, and of each node and day
};

struct Pruned {
  std::size_t points = 0, documents = 0, entries = 0;  // entries of which nothing is left
};

struct KeptDocument {
  std::string subject, measured;
  std::string packed;  // by pack_text()
};

class Store {
 public:
  // A file, or the address of a PostgreSQL database.
  Store(const std::string& where, DatabaseAccess access) : database_(where, access) {}

  // Adds everything in one transaction. A point whose content exists already is left out and counted. Tried again where
  // the connection breaks: once it returns, all of it is kept, once.
  Added add(const Intake& intake, const AddOptions& options);
  // Returns false where there is no such entry.
  bool remove(std::int64_t entry);
  Pruned prune(const PruneOptions& options);
  // What prune() would remove.
  Pruned would_prune(const PruneOptions& options);

  std::vector<Entry> entries(const EntryFilter& filter = {});
  std::vector<Point> points(const PointFilter& filter = {});  // in order of time
  // Id of the machine with this serial number, or whose id begins like this. Rejects what matches no machine or
  // several; empty stays empty.
  std::string resolve_machine(const std::string& begin);
  std::vector<Machine> machines(const std::string& id = {});
  std::vector<std::string> workloads();
  // Device and environment as in the result.
  std::pair<Json, Json> conditions(std::int64_t id);
  // Empty where the point has no samples of this metric ("latency", "throughput"). Rejects damaged ones.
  std::vector<double> samples(std::int64_t point, const std::string& metric);

  // Of each subject the newest document of this kind that was measured at `since` or later, by subject.
  std::vector<KeptDocument> newest_documents(const std::string& kind, const std::string& since);

  const std::string& name() const noexcept { return database_.name(); }
  std::uint64_t size_bytes() { return database_.size_bytes(); }
  Database& database() noexcept { return database_; }

 private:
  Database database_;
};

}  // namespace weir::history
