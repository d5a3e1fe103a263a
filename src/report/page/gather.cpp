#include "report/page/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/options.h"
#include "base/schemas.h"
#include "report/page/baseline.h"
#include "report/page/trace.h"
#include "report/text/fields.h"

namespace weir::page {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;
constexpr std::size_t kMaxEntries = 50'000;                      // in one path, of any kind
constexpr std::size_t kMaxFiles = 5'000;                         // of all
constexpr std::size_t kMaxProbes = 64;                           // nodes that are shown one by one
constexpr std::uintmax_t kLargestSum = std::uintmax_t{1} << 30;  // of documents, which are parsed as a whole

struct FoundFile {
  fs::path path;
  bool is_named = false;  // given by the user, rather than found in a folder
};

struct Walk {
  std::vector<FoundFile> files;
  struct Left {
    std::string path, reason;
  };
  std::vector<Left> left;  // what was not followed or does not exist, and why
};

// Folders are walked to a limited depth and count; links to folders and links that lead out are not followed. A file
// that is reached twice is listed once.
class Walker {
 public:
  void start(const fs::path& path) {
    std::error_code status;
    const fs::file_status kind = fs::status(path, status);
    if (!fs::exists(kind)) {
      leave(path, "no such file or folder. Check the path: `ls` shows this folder.");
    } else if (fs::is_directory(kind)) {
      root_ = fs::weakly_canonical(path, status);
      entries_ = 0;
      const std::size_t before = walk.files.size() + walk.left.size();
      descend(path, 0);
      if (walk.files.size() + walk.left.size() == before)
        leave(path, "the folder is empty. Give the folder that `weir run -o`, `weir sweep -o` or `weir bench` wrote.");
    } else if (!fs::is_regular_file(kind)) {
      leave(path, "is neither a file nor a folder.");
    } else {
      keep(path, true);
    }
  }

  Walk walk;

 private:
  void leave(const fs::path& path, std::string reason) { walk.left.push_back({path.string(), std::move(reason)}); }

  void keep(const fs::path& path, bool is_named) {
    std::error_code status;
    if (!seen_.insert(fs::weakly_canonical(path, status)).second) return;
    if (walk.files.size() < kMaxFiles) {
      walk.files.push_back({path, is_named});
    } else if (!is_full_) {
      is_full_ = true;
      leave(path,
            fmt::format("this and all that follow: a report reads {} files at most. Give fewer of them.", kMaxFiles));
    }
  }

  // A link may lead anywhere; targets inside the folder are found without following it.
  bool leads_out(const fs::path& path) const {
    std::error_code status;
    const fs::path target = fs::weakly_canonical(path, status);
    return status || std::mismatch(root_.begin(), root_.end(), target.begin(), target.end()).first != root_.end();
  }

  void descend(const fs::path& folder, int depth) {
    if (depth > kDeepest) return leave(folder, fmt::format("lies more than {} folders deep.", kDeepest));
    std::error_code status;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator entry(folder, status); !status && entry != fs::directory_iterator();
         entry.increment(status)) {
      if (++entries_ > kMaxEntries) {
        if (entries_ == kMaxEntries + 1)
          leave(folder, fmt::format("has more than {} entries: the others were not looked at.", kMaxEntries));
        break;
      }
      entries.push_back(*entry);
    }
    if (status) leave(folder, fmt::format("cannot be read: {}.", status.message()));
    std::sort(entries.begin(), entries.end());
    for (const fs::directory_entry& entry : entries) {
      std::error_code ignored;
      if (entry.path().filename().string().starts_with(".")) continue;
      if (entry.is_symlink(ignored) && (entry.is_directory(ignored) || leads_out(entry.path()))) {
        leave(entry.path(), "is a link, which is not followed. Name its target.");
      } else if (entry.is_directory(ignored)) {
        descend(entry.path(), depth + 1);
      } else if (entry.is_regular_file(ignored)) {
        keep(entry.path(), false);
      } else {
        leave(entry.path(), "is neither a file nor a folder.");
      }
    }
  }

  fs::path root_;
  std::size_t entries_ = 0;
  std::set<fs::path> seen_;
  bool is_full_ = false;
};

// Documents that cannot be shown by themselves, and what to pass instead.
struct Part {
  std::string_view schema;
  const char* advice;
};
constexpr std::array kParts = {
    Part{schemas::bench_kernel, "is one kernel of a bench. Give the folder, or its summary.json."},
    Part{schemas::bench_environment, "says where a bench ran. Give the folder, or its summary.json."},
    Part{schemas::kernel_manifest, "lists the packages that a bench found. It holds no measurement."},
    Part{schemas::watch, "is one moment of `weir watch`. Use `weir profile` for what happens over time."},
    Part{schemas::report, "is the document of a report. Give the files that it was made of."},
};

// {"schema": "weir.result/2", ...: as Weir writes them; other tools may have reordered the keys.
bool begins_as_document(std::string_view start) {
  for (const std::string_view part : {"{", "\"schema\"", ":", "\"weir."}) {
    start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
    if (!start.starts_with(part)) return false;
    start.remove_prefix(part.size());
  }
  return true;
}

bool may_be_json(std::string_view start) {
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (start[first] == '{' || start[first] == '[');
}

// The reason without the file name, which is shown next to it.
std::string reason_of(const Error& error, const std::string& name) {
  std::string_view what = error.what();
  if (what.starts_with(name + ": ")) what.remove_prefix(name.size() + 2);
  return error.hint.empty() ? std::string(what) : fmt::format("{}. {}", what, error.hint);
}

std::string shown(const std::string& schema) { return schema.size() <= 80 ? schema : schema.substr(0, 80) + "..."; }

class Gatherer {
 public:
  Gatherer(Page& page, const GatherOptions& options) : page_(page), options_(options), spans_left_(options.max_spans) {}

  void take(const FoundFile& file) {
    const std::string name = file.path.string();
    if (options_.progress) options_.progress(name);
    std::error_code ignored;
    if (!options_.passed_over.empty() && fs::equivalent(file.path, options_.passed_over, ignored)) return;
    try {
      look_at(file, name);
    } catch (const Error& error) {
      page_.refuse(name, reason_of(error, name));
    } catch (const std::exception& error) {
      // A document may be invalid in unforeseen ways; the others still make a report.
      page_.refuse(name, fmt::format("its contents do not match its schema: {}", error.what()));
    }
  }

  // Shows the traces that were read and not shown yet.
  void show_job() {
    if (job_.paths.empty()) return;
    TraceJob job = std::exchange(job_, {});
    const fs::path path = job.paths.front();
    try {
      const BaselineTrace* const before = baseline_ ? &*baseline_ : nullptr;
      spans_left_ -= std::min(spans_left_, add_trace(page_, std::move(job), before, trace_options(path)));
      has_compared_ = before != nullptr;
    } catch (const Error& error) {
      page_.refuse(path.string(), reason_of(error, path.string()));
    }
  }

  // All traces among the files are ranks of the baseline, as those given to `weir analyze --ranks` are.
  bool take_baseline(const std::vector<FoundFile>& files) {
    TraceJob job;
    for (const FoundFile& file : files) {
      if (begins_as_document(start_of_file(file.path, 4096)) || !is_trace(file.path)) continue;
      ImportedTrace trace = read_trace(file.path, trace_options(file.path));
      if (!job.join(file.path, trace))
        reject(fmt::format("--baseline: {} and {} are two runs", job.paths.front().string(), file.path.string()),
               "Name one trace, or the folder of one job.");
    }
    if (job.paths.empty()) return false;
    baseline_ = baseline_trace(std::move(job));
    return true;
  }
  bool lacks_comparison() const { return baseline_ && !has_compared_; }

  std::vector<Measured> measured;

 private:
  void look_at(const FoundFile& file, const std::string& name) {
    std::error_code status;
    const std::uintmax_t size = fs::file_size(file.path, status);
    if (status) reject(fmt::format("cannot be read: {}", status.message()));
    const std::string start = start_of_file(file.path, 4096);
    if (start.empty()) {
      if (file.is_named || file.path.extension() == ".json")
        reject(size == 0 ? "the file is empty" : "cannot be read", "Was the run that should have written it killed?");
      return;
    }
    if (file.path.extension() == ".jsonl") {
      if (file.is_named)
        reject("is a list of documents, one in each line", "Give the folder, or the summary that lies beside it.");
      return;
    }
    if (start.starts_with("SQLite format 3") && take_history(file.path)) return;
    if (!begins_as_document(start)) {
      if (is_trace(file.path)) return take_trace(file.path);
      const bool is_meant = file.is_named || file.path.extension() == ".json";
      // Folders also hold other files: tables, pictures, logs.
      if (!is_meant) return;
      if (!may_be_json(start))
        reject("is neither a document of Weir nor a trace of a known format",
               "`weir analyze --help` names the formats of traces.");
    }
    if (size > kLargestDocument || (sum_ += size) > kLargestSum)
      reject(fmt::format("is too large for a report: documents may have {} MiB each and {} MiB together",
                         kLargestDocument >> 20, kLargestSum >> 20),
             "Give fewer files.");
    take_document(file, name, read_json(file.path));
  }

  // Traces may be SQLite files as well, so a file that is not a history is left to the importers.
  bool take_history(const fs::path& path) {
    try {
      add_history(page_, path);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  TraceOptions trace_options(const fs::path& path) const {
    TraceOptions options;
    options.max_spans = spans_left_;
    options.collectives = options_.collectives;
    options.window = options_.window;
    if (options_.progress) options.progress = [this, path] { options_.progress(path.string()); };
    return options;
  }

  // The next file may be another rank of the same job, so it is shown only when that is known.
  void take_trace(const fs::path& path) {
    if (spans_left_ == 0)
      reject(fmt::format("other traces have filled the {} spans that a report may have", options_.max_spans),
             "Raise --max-spans, or make a report of this trace alone.");
    ImportedTrace trace = read_trace(path, trace_options(path));
    if (job_.join(path, trace)) return;
    show_job();
    job_.join(path, trace);
  }

  void take_document(const FoundFile& file, const std::string& name, const Json& document) {
    if (is_aorta(document)) return take_results(name, "AORTA", document);
    const Json& value = fields::at(document, {"schema"});
    if (!value.is_string() || !value.string().starts_with("weir."))
      reject("is JSON, but neither a document of Weir (it has no \"schema\") nor a trace of a known format",
             "Give what `weir run`, `weir sweep`, `weir compare`, `weir bench` and others write with -o.");
    const std::string schema = value.get<std::string>();
    if (schema == schemas::result || schema == schemas::sweep) return take_results(name, schema, document);
    for (const Part& part : kParts)
      if (schemas::are_alike(schema, part.schema)) {
        if (file.is_named) page_.refuse(name, part.advice);
        return;
      }
    take_section(name, schema, document);
  }

  void take_results(const std::string& name, const std::string& schema, const Json& document) {
    std::vector<Measured> read = read_measured(page_, Page::kNoSource, name, document);
    if (read.empty()) {
      const Json& results = fields::at(document, {"results"});
      if (results.is_array() && results.empty())
        page_.refuse(name, "holds no results. Did the sweep finish a single point?");
      return;
    }
    const std::size_t source = page_.add_source(name, schema, document);
    for (Measured& each : read) {
      each.source = source;
      measured.push_back(std::move(each));
    }
  }

  void take_section(const std::string& name, const std::string& schema, const Json& document) {
    Section* const section = section_for(schema);
    if (section == nullptr) reject_schema(schema);
    if (schema == schemas::fleet_probe && ++probes_ > kMaxProbes) {
      if (probes_ == kMaxProbes + 1)
        page_.refuse(name, fmt::format("this node and all that follow: a report shows {} nodes one by one. "
                                       "`weir fleet report` compares any number of them.",
                                       kMaxProbes));
      return;
    }
    const std::size_t source = page_.add_source(name, schema, document);
    const std::size_t before = page_.item_count();
    section(page_, source, document);
    if (page_.item_count() == before)
      page_.refuse(name, fmt::format("{} without anything to show: its lists are empty or not what they should be. "
                                     "Measure it again.",
                                     schema));
  }

  // "weir.sweep/9" from a later Weir, or a schema that no version has written.
  [[noreturn]] void reject_schema(const std::string& schema) const {
    const std::string_view known = schemas::current(schema);
    const bool is_shown = known == schemas::result || known == schemas::sweep || section_for(known) != nullptr;
    if (is_shown && schemas::is_newer(schema))
      reject(fmt::format("'{}' was written by a newer Weir: this one reads version {}", shown(schema),
                         schemas::version_of(known)),
             "Update this program, or make the file again with it.");
    reject(fmt::format("'{}' is not a document that a report can show", shown(schema)));
  }

  Page& page_;
  const GatherOptions& options_;
  std::size_t spans_left_;
  TraceJob job_;  // read, not shown yet
  std::optional<BaselineTrace> baseline_;
  bool has_compared_ = false;
  std::uintmax_t sum_ = 0;
  std::size_t probes_ = 0;  // documents of nodes
};

}  // namespace

Gathered gather(Page& page, const std::vector<fs::path>& paths, const GatherOptions& options) {
  Walker walker;
  for (const fs::path& path : paths) walker.start(path);
  Gatherer gatherer(page, options);
  Gathered gathered;
  if (!options.baseline.empty()) {
    Walker before;
    before.start(options.baseline);
    gathered.is_baseline_trace = gatherer.take_baseline(before.walk.files);
  }
  for (const FoundFile& file : walker.walk.files) gatherer.take(file);
  gatherer.show_job();
  for (const Walk::Left& left : walker.walk.left) page.refuse(left.path, left.reason);
  if (gatherer.lacks_comparison())
    page.refuse(options.baseline.string(),
                "there is no trace to compare with this baseline. Name one: weir report TRACE --baseline TRACE.");
  gathered.measured = std::move(gatherer.measured);
  return gathered;
}

}  // namespace weir::page
