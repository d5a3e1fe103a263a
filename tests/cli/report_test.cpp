// weir report as a user meets it: one page of a folder, the verdict on the terminal, what it refuses and when it fails.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "lab/channels/channel_baseline.h"
#include "lab/kernels/regression_entries.h"
#include "support/text.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void sweep_into(const Folder& folder, const std::string& name) {
  const Outcome outcome = weir({"sweep", "hetero_kernels", "--device", "sim:h200", "--streams", "2,4,6,8",
                                "--iterations", "30", "-o", folder / name, "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

TEST(ReportCommand, writes_the_document_of_a_sweep) {
  Folder folder;
  sweep_into(folder, "sweep.json");
  const Outcome outcome = weir({"report", folder / "sweep.json", "-o", folder / "report.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "Written to")) << outcome.out;
  expect_narrow(outcome.out);
  expect_valid_as(folder / "report.json", "weir.report.2.json");
  const Json document = read_json(folder / "report.json");
  EXPECT_EQ(document["title"], "sweep.json");
  EXPECT_EQ(document["scaling"][0]["curves"][0]["points"].size(), 4u);
  EXPECT_EQ(document["distributions"][0]["series"].size(), 4u);
  EXPECT_TRUE(has(outcome.out, document["verdict"]["headline"].get<std::string>().substr(0, 20))) << outcome.out;
  // The same again is refused, and says how to do it.
  const Outcome again = weir({"report", folder / "sweep.json", "-o", folder / "report.json"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
  EXPECT_EQ(weir({"report", folder / "sweep.json", "-o", folder / "report.json", "--force", "--quiet"}).out, "");
}

TEST(ReportCommand, makes_one_page_that_holds_the_same_document) {
  if (!WEIR_HAVE_HTML) GTEST_SKIP() << "this program was built without the report's page";
  Folder folder;
  sweep_into(folder, "sweep.json");
  const Outcome outcome = weir({"report", folder / "sweep.json", "-o", folder / "r.html", "-o", folder / "r.json",
                                "--title", "Tuesday <b>&</b> </title>"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string html = read(folder / "r.html");
  EXPECT_TRUE(has(html, "<title>Tuesday &lt;b&gt;&amp;&lt;/b&gt; &lt;/title&gt;</title>"));
  const std::string mark = "id=\"weir-document\">";
  const std::size_t from = html.find(mark);
  ASSERT_NE(from, std::string::npos);
  const std::size_t begin = from + mark.size();
  EXPECT_EQ(Json::parse(html.substr(begin, html.find("</script>", begin) - begin)), read_json(folder / "r.json"));
  EXPECT_LT(html.size(), 2u << 20);
}

TEST(ReportCommand, is_called_report_html_where_nothing_is_said) {
  if (!WEIR_HAVE_HTML) GTEST_SKIP() << "this program was built without the report's page";
  Folder folder;
  sweep_into(folder, "sweep.json");
  EXPECT_EQ(weir({"report", "sweep.json"}, folder.path()).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "report.html"));
  EXPECT_EQ(weir({"report", "sweep.json"}, folder.path()).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "report-2.html"));
}

TEST(ReportCommand, says_what_to_do_where_it_was_built_without_a_page) {
  if (WEIR_HAVE_HTML) GTEST_SKIP() << "this program has the page";
  Folder folder;
  sweep_into(folder, "sweep.json");
  const Outcome outcome = weir({"report", folder / "sweep.json", "-o", folder / "r.html"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "npm") && has(outcome.err, "-o report.json")) << outcome.err;
}

TEST(ReportCommand, reports_on_the_rest_and_names_what_it_refused) {
  Folder folder;
  sweep_into(folder, "sweep.json");
  put_file(folder / "broken.json", "{\"schema\": \"weir.result/2\",");
  put_file(folder / "newer.json", "{\"schema\": \"weir.result/2\"}");
  const Outcome outcome = weir({"report", folder.path().string(), "-o", folder / "report.json", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "broken.json") && has(outcome.err, "newer.json")) << outcome.err;
  EXPECT_EQ(read_json(folder / "report.json")["refused"].size(), 2u);
}

// tests/data/v0.1 holds what version 0.1 wrote; only paths and names of machines were taken out.
TEST(Version01, its_documents_are_shown_exported_and_compared) {
  const std::filesystem::path old = std::filesystem::path(WEIR_SOURCE_DIR) / "tests/data/v0.1";
  const auto file = [&](const char* name) { return (old / name).string(); };
  Folder folder;
  const Outcome shown = weir({"report", old.string(), "-o", folder / "report.json", "--quiet"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const Json document = read_json(folder / "report.json");
  EXPECT_EQ(document["refused"].size(), 0u) << document["refused"].dump();
  EXPECT_EQ(document["sources"].size(), 15u);
  EXPECT_EQ(document["scaling"].size(), 3u);
  EXPECT_EQ(document["queue_maps"].size(), 3u);
  EXPECT_EQ(document["texts"].size(), 11u);
  EXPECT_EQ(document["overlaps"].size(), 1u);
  EXPECT_EQ(document["benches"].size(), 1u);

  const Outcome exported = weir({"export", file("result.json"), file("sweep.json"), file("bench.json"),
                                 file("overlap.json"), file("channel.json"), "--format", "csv"});
  EXPECT_EQ(exported.code, 0) << exported.err;
  const Outcome compared = weir({"compare", file("sweep.json"), file("sweep.json")});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_FALSE(parse_channel_run(read_json(file("channel.json")), "channel.json").results.empty());
  EXPECT_FALSE(bench::compared_summary(read_json(file("bench.json")), "bench.json").entries.empty());
}

// The first member of `old` that `now` lacks or has in another place, at any level; of lists the first element. New
// members may stand between the old ones.
std::string missing_in(const Json& now, const Json& old) {
  if (old.is_array() && !old.empty())
    return now.is_array() && !now.empty() ? missing_in(now[0], old[0]) : "[an element]";
  if (!old.is_object()) return "";
  std::vector<std::string> names;
  if (now.is_object())
    for (const auto& [name, value] : now.items()) names.push_back(name);
  std::size_t next = 0;
  for (const auto& [name, value] : old.items()) {
    while (next < names.size() && names[next] != name) ++next;
    if (next == names.size()) return name;
    if (name == "variables") continue;
    if (const std::string missing = missing_in(now[name], value); !missing.empty()) return name + "." + missing;
  }
  return "";
}

TEST(Version01, members_of_its_documents_are_still_written_in_the_same_order) {
  Folder folder;
  const auto expect_the_same = [&](const std::string& name, std::vector<std::string> arguments) {
    for (const std::string& word : {std::string("-o"), folder / name, std::string("--quiet")})
      arguments.push_back(word);
    const Outcome outcome = weir(arguments);
    ASSERT_EQ(outcome.code, 0) << name << ": " << outcome.err;
    const Json old = read_json(std::filesystem::path(WEIR_SOURCE_DIR) / "tests/data/v0.1" / name);
    EXPECT_EQ(missing_in(read_json(folder / name), old), "") << name;
  };
  const std::string h200 = "sim:h200", toy = "sim:toy", workload = "hetero_kernels";
  expect_the_same("result.json", {"run", workload, "--device", h200, "--scale", "tiny", "--iterations", "4"});
  expect_the_same("sweep.json",
                  {"sweep", workload, "--device", h200, "--scale", "tiny", "--iterations", "3", "--streams", "2,4"});
  expect_the_same("queues_map.json", {"queues", "map", "--device", toy});
  expect_the_same("queues_cost.json", {"queues", "cost", workload, "--device", toy, "--iterations", "3"});
  expect_the_same("queues_convoy.json", {"queues", "convoy", "--device", toy, "--iterations", "3"});
}

TEST(ReportCommand, fails_where_nothing_remains) {
  Folder folder;
  const Outcome empty = weir({"report", folder.path().string(), "-o", folder / "r.json"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_TRUE(has(empty.err, "empty")) << empty.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "r.json"));
  EXPECT_EQ(weir({"report", folder / "absent.json", "-o", folder / "r.json"}).code, 2);
  EXPECT_EQ(weir({"report", "-o", folder / "r.json"}).code, 2);
  EXPECT_EQ(weir({"report", folder.path().string(), "-o", folder / "r.json", "--max-spans", "-1"}).code, 2);
  const Outcome pattern = weir({"report", folder.path().string(), "-o", folder / "r.json", "--collective", ""});
  EXPECT_EQ(pattern.code, 2);
  EXPECT_TRUE(has(pattern.err, "--collective: the pattern is empty")) << pattern.err;
}

TEST(ReportCommand, compares_with_a_baseline_and_puts_that_first) {
  Folder folder;
  sweep_into(folder, "old.json");
  Json slower = read_json(folder / "old.json");
  for (Json& result : slower["results"])
    for (const char* samples : {"latency_ns", "interval_ns"})
      for (Json& sample : result["samples"][samples]) sample = sample.get<double>() * 1.5;
  put_file(folder / "new.json", slower.dump());
  const Outcome outcome =
      weir({"report", folder / "new.json", "--baseline", folder / "old.json", "-o", folder / "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = read_json(folder / "r.json");
  ASSERT_EQ(document["comparisons"].size(), 1u);
  EXPECT_EQ(document["comparisons"][0]["verdicts"]["slower"], 4);
  EXPECT_EQ(document["verdict"]["tone"], "bad");
  EXPECT_TRUE(has(outcome.out, "4 of 4 pairs are slower")) << outcome.out;
  expect_valid_as(folder / "r.json", "weir.report.2.json");
}

TEST(ReportCommand, a_named_file_that_cannot_be_used_is_a_failure) {
  Folder folder;
  sweep_into(folder, "good.json");
  const Outcome outcome = weir({"report", folder / "missing.json", folder / "good.json", "-o", folder / "r.json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "missing.json: no such file or folder")) << outcome.err;
  EXPECT_EQ(read_json(folder / "r.json")["sources"].size(), 1u);  // the page of the others is written
  EXPECT_TRUE(has(outcome.out, "Written to")) << outcome.out;
  // Found in a folder, it is passed over.
  std::filesystem::create_directories(folder.path() / "all");
  std::filesystem::rename(folder / "good.json", folder.path() / "all" / "good.json");
  put_file((folder.path() / "all" / "broken.json").string(), "{");
  const Outcome found = weir({"report", folder / "all", "-o", folder / "all.json"});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_TRUE(has(found.err, "broken.json")) << found.err;
  EXPECT_EQ(weir({"report", folder / "all", folder / "all/broken.json", "-o", folder / "b.json"}).code, 2);
}

TEST(ReportCommand, lets_no_name_reach_the_terminal_or_the_page_as_a_command) {
  Folder folder;
  sweep_into(folder, "sweep.json");
  Json evil = read_json(folder / "sweep.json");
  for (Json& result : evil["results"]) {
    result["workload"]["name"] = "</script><script>alert(1)</script>\x1b]0;owned\x07";
    result["status"] = "failed";
    result["failure"] = "\x1b[2J<img src=x onerror=alert(1)>";
  }
  put_file(folder / "evil.json", evil.dump());
  const Outcome outcome = weir({"report", folder / "evil.json", "-o", folder / "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  if (!WEIR_HAVE_HTML) return;
  ASSERT_EQ(weir({"report", folder / "evil.json", "-o", folder / "r.html", "--quiet"}).code, 0);
  EXPECT_EQ(read(folder / "r.html").find("<script>alert"), std::string::npos);
  EXPECT_EQ(read(folder / "r.html").find("<img src=x"), std::string::npos);
}

}  // namespace
}  // namespace weir::testing
