// A report's document, weir.report/2, during construction: what was read, from which environment, what it shows and
// what stands out. Sections add items (list.cpp); this file owns ids, environments and the order of findings, and knows
// no document but its own.
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
  double weight = 0;  // within a tone the largest comes first; for example, the share of time that it costs
  std::string text;
  std::string advice;    // empty: none
  std::string anchor;    // id of an item; empty: none
  std::string about;     // the file; put before the text where the page has several
  bool leads = false;    // comes before all others, whatever their tone: what was asked for
  bool sums_up = false;  // says how many the others are, so the headline does not
};

class Page {
 public:
  Page(std::string title, std::string created, std::vector<std::string> command_line);

  // Registers a file that was read; returns the index that items refer to. Takes created, status, command line and the
  // environment (fields "device" and "environment", of the document or of its first result) from the document, where
  // present.
  std::size_t add_source(const std::string& path, const std::string& schema, const Json& document);
  void refuse(const std::string& path, const std::string& reason);

  // The index of the environment that these two objects describe: the same for the same machine, device, driver and
  // variables. Either may be null; empty where both are.
  std::optional<std::size_t> environment(const Json& device, const Json& environment);
  std::optional<std::size_t> environment_of(std::size_t source) const;
  std::string label_of(std::optional<std::size_t> environment) const;

  static constexpr std::size_t kNoSource = static_cast<std::size_t>(-1);  // for an item that is not from a single file

  // An item with the fields that all items begin with (web/src/document.ts). `list` is the document's field: "scaling",
  // "timelines", ... The id consists of the list and a number.
  Json item(std::string_view list, const std::string& title, std::size_t source,
            std::optional<std::size_t> environment);
  // Adds it to the document; returns its id, for findings.
  std::string add(std::string_view list, Json item);

  void find(Finding finding);

  // The number of items, without which there is no report; and the files that were refused.
  std::size_t item_count() const;
  const std::vector<Json>& refused() const { return refused_; }

  // The complete document, with findings sorted and the headline chosen.
  Json document() &&;

 private:
  Json verdict() const;

  std::map<std::string, std::vector<Json>, std::less<>> lists_;
  std::map<std::string, std::size_t, std::less<>> numbers_;       // of the last item of each list
  std::map<std::string, std::size_t, std::less<>> fingerprints_;  // environments by everything that distinguishes them
  std::size_t refused_beyond_ = 0;                                // those left out because of kMaxRefused
  std::vector<Json> sources_, refused_, environments_;
  std::vector<Finding> findings_;
  std::string title_, created_;
  std::vector<std::string> command_line_;
};

// Adds the items of a document. Files are hostile: fields may be missing or have the wrong type.
using Section = void(Page& page, std::size_t source, const Json& document);

// The section that shows documents of this schema (list.h), or null.
Section* section_for(std::string_view schema);

}  // namespace weir::page
