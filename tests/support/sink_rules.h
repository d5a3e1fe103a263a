// Text that is hostile to whatever shows it, and the rules of everything that shows text. The rules know nothing of the
// code that they judge: each is written down from the format's own definition.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::testing {

// One for each way that is known to harm a sink: escape sequences, formulas, markup, commands of CI systems, directions
// and invisible characters, NUL.
const std::vector<std::string>& hostile_texts();

// The document with a hostile text added to every string, before it or after it; the first is number `first`. Names of
// members stay, except below "params", "variables" and "key". Strings that decide what kind of document it is stay too.
Json poisoned(const Json& document, std::size_t first = 0);

// As a file: some of its strings are not UTF-8.
std::string file_text(const Json& document);

// What is wrong with the text as output for this sink; empty if nothing is.
using SinkRule = std::string (*)(const std::string& text);
std::string terminal_rule(const std::string& text);
std::string json_rule(const std::string& text);  // printed JSON
std::string csv_rule(const std::string& text);
std::string markdown_rule(const std::string& text);
std::string xml_rule(const std::string& text);  // SVG and JUnit
std::string openmetrics_rule(const std::string& text);
std::string dot_rule(const std::string& text);
std::string html_rule(const std::string& text);
// No line is a command for GitHub's runner; those that `weir compare --github` prints must be ones of ours.
std::string runner_rule(const std::string& text);

}  // namespace weir::testing
