// A report's document, weir.report/1, while it is put together: what was read, from which environment, what there is to
// see of it and what stands out. Sections add items (list.cpp); this file owns ids, environments and the verdict's
// order, and knows no document but its own.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::page {

enum class Tone { good, neutral, warning, bad };

struct Finding {
  Tone tone = Tone::neutral;
  double weight = 0;  // of two with one tone, the larger comes first: the share of time that it costs, for one
  std::string text;
  std::string advice;  // empty: none
  std::string anchor;  // id of an item; empty: none
};

class Page {
 public:
  Page(std::string title, std::string created, std::vector<std::string> command_line);

  // Registers a file that was read; the index that items name. Takes created, status, command line and the environment
  // (fields "device" and "environment", of the document or of its first result) from the document, where it has them.
  std::size_t add_source(const std::string& path, const std::string& schema, const Json& document);
  void refuse(const std::string& path, const std::string& reason);

  // The index of the environment that these two objects describe: the same for the same machine, device, driver and
  // variables. Either may be null; nothing where both are.
  std::optional<std::size_t> environment(const Json& device, const Json& environment);
  std::optional<std::size_t> environment_of(std::size_t source) const;
  std::string label_of(std::optional<std::size_t> environment) const;

  static constexpr std::size_t kNoSource = static_cast<std::size_t>(-1);  // an item that is not of one file

  // An item with the fields that all items begin with (web/src/document.ts). `list` is the document's field:
  // "scaling", "timelines", ... Its id is made of the list and a number.
  Json item(std::string_view list, const std::string& title, std::size_t source,
            std::optional<std::size_t> environment);
  // Puts it into the document; returns its id, for findings.
  std::string add(std::string_view list, Json item);

  void find(Finding finding);

  // Files that were read, and what they had to show: of nothing there is no report.
  std::size_t item_count() const;
  const std::vector<Json>& refused() const { return refused_; }

  // The whole document, findings in order, the headline chosen.
  Json document() &&;

 private:
  Json verdict() const;

  std::map<std::string, std::vector<Json>, std::less<>> lists_;
  std::map<std::string, std::size_t, std::less<>> numbers_;       // of the last item of each list
  std::map<std::string, std::size_t, std::less<>> fingerprints_;  // environments by all that makes them differ
  std::size_t refused_beyond_ = 0;                                // that kMostRefused left out
  std::vector<Json> sources_, refused_, environments_;
  std::vector<Finding> findings_;
  std::string title_, created_;
  std::vector<std::string> command_line_;
};

// Adds what a document of this schema has to show. Files are hostile: fields may be missing or of a wrong type.
struct Section {
  std::string_view schema;  // "weir.sweep/1"
  void (*add)(Page& page, std::size_t source, const Json& document);
};

// One file for each kind of document: bench.cpp, comparison.cpp, overlap.cpp, ...
std::vector<Section> sections();

}  // namespace weir::page
