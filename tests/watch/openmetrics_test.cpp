// The metrics' text against the grammar of OpenMetrics 1.0, by a checker of our own that knows nothing of the writer.
#include "watch/openmetrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "watch/hand_made.h"

namespace weir::watch {
namespace {

struct Point {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Exposition {
  std::map<std::string, std::string> types, units;
  std::vector<Point> points;
  const Point* find(const std::string& name, const std::string& queue = "") const {
    for (const Point& point : points)
      if (point.name == name && (queue.empty() || point.labels.at("queue") == queue)) return &point;
    return nullptr;
  }
};

[[noreturn]] void wrong(const std::string& line, const std::string& why) {
  throw std::runtime_error(why + ": " + line);
}

bool is_name(const std::string& text) {
  const auto is_first = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == ':'; };
  return !text.empty() && is_first(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_first(c) || (c >= '0' && c <= '9'); });
}

// name{label="value",...} number
Point read_point(const std::string& line) {
  Point point;
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

// Throws what is wrong. Families may not be split, TYPE comes first and once, a unit ends the name, counters and infos
// end as they must, no point is there twice, and EOF is the last line.
Exposition check(const std::string& text) {
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
        if (rest != "gauge" && rest != "counter" && rest != "info") wrong(line, "not a type");
        read.types[name] = rest;
      } else if (name != family) {
        wrong(line, "of another family");
      } else if (what == "UNIT") {
        if (!name.ends_with("_" + rest)) wrong(line, "the unit does not end the name");
        read.units[name] = rest;
      } else if (what != "HELP") {
        wrong(line, "not TYPE, UNIT or HELP");
      }
      continue;
    }
    const Point point = read_point(line);
    const std::string& type = read.types[family];
    const std::string suffix = type == "counter" ? "_total" : type == "info" ? "_info" : "";
    if (point.name != family + suffix) wrong(line, "not of the family " + family);
    if (type == "info" && point.value != 1) wrong(line, "an info is 1");
    if (type == "counter" && !(point.value >= 0)) wrong(line, "a counter is not negative");
    if (!seen.emplace(point.name, point.labels).second) wrong(line, "a point twice");
    read.points.push_back(point);
  }
  return read;
}

TEST(OpenMetricsChecker, finds_what_is_wrong) {
  const std::string begin = "# TYPE a_b gauge\n";
  EXPECT_NO_THROW(check(begin + "a_b{x=\"1\\\"\\\\\\n\"} 2\n# EOF\n"));
  for (const char* bad :
       {"a_b 2\n", "a_b{x=\"1\"} 2\na_b{x=\"1\"} 3\n# EOF\n", "a_c 2\n# EOF\n", "a_b{x=\"\\q\"} 2\n# EOF\n",
        "a_b{x=\"1} 2\n# EOF\n", "a_b 2 \n# EOF\n", "# UNIT a_b bytes\na_b 2\n# EOF\n", "\na_b 2\n# EOF\n",
        "# TYPE a_b gauge\n# EOF\n", "a_b x\n# EOF\n", "a_b{1=\"2\"} 2\n# EOF\n"})
    EXPECT_ANY_THROW(check(begin + bad)) << bad;
  EXPECT_ANY_THROW(check("# TYPE c counter\nc 2\n# EOF\n"));
}

TEST(OpenMetrics, what_is_known_is_there_and_nothing_else) {
  const Exposition read = check(metrics_text(testing::kfd_sample()));
  const std::string busy = "f7bc/4000/compute/1000", saved = "f7bc/4000/compute/2000", dark = "f7bc/4001/compute/3000";
  ASSERT_NE(read.find("weir_watch_queue_backlog_packets", busy), nullptr);
  EXPECT_EQ(read.find("weir_watch_queue_backlog_packets", busy)->value, 12);
  EXPECT_EQ(read.find("weir_watch_queue_backlog_packets", busy)->labels.at("pid"), "4000");
  EXPECT_EQ(read.find("weir_watch_queue_backlog_packets", saved)->value, 0);
  EXPECT_EQ(read.find("weir_watch_queue_active", saved)->value, 0);
  EXPECT_EQ(read.find("weir_watch_queue_preempted", saved)->value, 1);
  EXPECT_EQ(read.find("weir_watch_queue_packets_total", busy)->value, 634);
  EXPECT_EQ(read.find("weir_watch_samples_total")->value, 7);
  for (const Point& point : read.points)
    if (point.labels.contains("queue")) {
      EXPECT_NE(point.labels.at("queue"), dark) << point.name;
    }
  EXPECT_FALSE(read.types.contains("weir_watch_queue_streams"));
  EXPECT_EQ(read.units.at("weir_watch_window_seconds"), "seconds");
}

TEST(OpenMetrics, facts_are_gauges_with_their_unit) {
  Sample sample = testing::many_rows(2);
  sample.facts = {{"power", "watts", "Of the whole device.", known(312.5)},
                  {"utilisation", "ratio", "Lately.", unknown("no sensor")}};
  const Exposition read = check(metrics_text(sample));
  EXPECT_EQ(read.find("weir_watch_device_power_watts")->value, 312.5);
  EXPECT_EQ(read.units.at("weir_watch_device_power_watts"), "watts");
  EXPECT_EQ(read.find("weir_watch_device_utilisation_ratio"), nullptr);
}

TEST(OpenMetrics, labels_are_escaped_and_come_back) {
  Sample sample = testing::many_rows(3);
  sample.rows[0].key = "a\"b\\c\nd";
  sample.rows[1].key = "\x1b[31m\t";
  sample.rows[2].key = "\xc3\xa4 \xff \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82";
  const Exposition read = check(metrics_text(sample));
  EXPECT_NE(read.find("weir_watch_queue_active", "a\"b\\c\nd"), nullptr);
  EXPECT_NE(read.find("weir_watch_queue_active", "?[31m?"), nullptr);
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_NE(read.find("weir_watch_queue_active",
                      "\xc3\xa4 " + mark + " " + mark + mark + mark + " \xf0\x9f\x98\x80 " + mark + mark),
            nullptr);
}

TEST(OpenMetrics, a_source_without_queues_says_0_and_one_that_cannot_see_says_nothing) {
  EXPECT_EQ(check(metrics_text(Sample{})).find("weir_watch_queues")->value, 0);
  Sample blind;
  blind.missing.push_back({"hqds", "/x", "permission denied", "Run as root."});
  EXPECT_EQ(check(metrics_text(blind)).find("weir_watch_queues"), nullptr);
}

TEST(OpenMetrics, begins_as_files_of_a_watch_do) { EXPECT_TRUE(metrics_text(Sample{}).starts_with(kMetricsBegin)); }

}  // namespace
}  // namespace weir::watch
