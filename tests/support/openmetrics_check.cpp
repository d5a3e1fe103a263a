#include "support/openmetrics_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>

namespace weir::testing {
namespace {

[[noreturn]] void wrong(const std::string& line, const std::string& why) {
  throw std::runtime_error(why + ": " + line);
}

bool is_name(const std::string& text) {
  const auto is_first = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == ':'; };
  return !text.empty() && is_first(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_first(c) || (c >= '0' && c <= '9'); });
}

// name{label="value",...} number
MetricPoint read_point(const std::string& line) {
  MetricPoint point;
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string::npos) wrong(line, "no value");
  point.name = line.substr(0, at);
  if (!is_name(point.name)) wrong(line, "not a name");
  if (line[at] == '{') {
    do {
      ++at;
      const std::size_t equals = line.find('=', at);
      if (equals == std::string::npos || line[equals + 1] != '"') wrong(line, "not a label");
      const std::string name = line.substr(at, equals - at);
      if (!is_name(name) || name.find(':') != std::string::npos) wrong(line, "not a label's name");
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] != '\\') {
          value += line[at];
          continue;
        }
        ++at;
        if (line[at] != '\\' && line[at] != '"' && line[at] != 'n') wrong(line, "not an escape");
        value += line[at] == 'n' ? '\n' : line[at];
      }
      if (at++ >= line.size()) wrong(line, "a label without an end");
      if (!point.labels.emplace(name, value).second) wrong(line, "a label twice");
    } while (line[at] == ',');
    if (line[at++] != '}') wrong(line, "labels without an end");
  }
  if (line[at++] != ' ') wrong(line, "no blank before the value");
  std::size_t used = 0;
  point.value = std::stod(line.substr(at), &used);
  if (at + used != line.size()) wrong(line, "something behind the value");
  return point;
}

}  // namespace

const MetricPoint* Exposition::find(const std::string& name, const std::map<std::string, std::string>& labels) const {
  for (const MetricPoint& point : points)
    if (point.name == name && std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
          const auto found = point.labels.find(label.first);
          return found != point.labels.end() && found->second == label.second;
        }))
      return &point;
  return nullptr;
}

Exposition check_openmetrics(const std::string& text) {
  Exposition read;
  std::string family;
  std::set<std::string> done;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  if (!text.ends_with("# EOF\n")) throw std::runtime_error("no EOF");
  std::istringstream lines(text.substr(0, text.size() - 6));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) wrong(line, "an empty line");
    if (line[0] == '#') {
      std::istringstream words(line);
      std::string mark, what, name, rest;
      words >> mark >> what >> name;
      std::getline(words, rest);
      if (mark != "#" || !is_name(name) || rest.empty() || rest[0] != ' ') wrong(line, "not a comment of the format");
      rest.erase(0, 1);
      if (what == "TYPE") {
        if (!done.insert(name).second) wrong(line, "a family twice");
        family = name;
        if (rest != "gauge" && rest != "counter") wrong(line, "not a type");
        read.types[name] = rest;
      } else if (name != family) {
        wrong(line, "of another family");
      } else if (what == "UNIT") {
        if (!name.ends_with("_" + rest)) wrong(line, "the unit does not end the name");
        read.units[name] = rest;
      } else if (what == "HELP") {
        if (!read.helps.emplace(name, rest).second) wrong(line, "a second HELP");
      } else {
        wrong(line, "not TYPE, UNIT or HELP");
      }
      continue;
    }
    const MetricPoint point = read_point(line);
    const std::string& type = read.types[family];
    const std::string suffix = type == "counter" ? "_total" : "";
    if (point.name != family + suffix) wrong(line, "not of the family " + family);
    if (!std::isfinite(point.value)) wrong(line, "not a finite number");
    if (type == "counter" && !(point.value >= 0)) wrong(line, "a counter is not negative");
    if (!seen.emplace(point.name, point.labels).second) wrong(line, "a point twice");
    read.points.push_back(point);
  }
  return read;
}

}  // namespace weir::testing
