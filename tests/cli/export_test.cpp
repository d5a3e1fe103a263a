// `weir export`, and the flags --openmetrics and --csv of commands that make results, on real results of the binary.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "support/openmetrics_check.h"
#include "support/result_documents.h"
#include "support/text.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_on_h200(const std::string& command, std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {command, "hetero_kernels", "--device", "sim:h200", "--scale",
                                        "tiny",  "--iterations",   "20",       "--quiet"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(Export, a_run_and_a_sweep_write_what_export_writes) {
  const Folder folder;
  const Outcome run = weir(tiny_on_h200(
      "run", {"-o", folder / "run.json", "--openmetrics", folder / "run.prom", "--csv", folder / "run.csv"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Exposition read = check_openmetrics(content(folder / "run.prom"));
  const Json result = read_json(folder / "run.json");
  ASSERT_NE(read.find("weir_run_latency_seconds", {{"quantile", "0.5"}}), nullptr);
  EXPECT_DOUBLE_EQ(read.find("weir_run_latency_seconds", {{"quantile", "0.5"}})->value,
                   result["metrics"]["latency_ns"]["p50"].get<double>() / 1e9);
  EXPECT_EQ(read.find("weir_run_failed", {{"workload", "hetero_kernels"}, {"device", "sim:h200"}})->value, 0);
  EXPECT_EQ(weir({"export", folder / "run.json"}).out, content(folder / "run.prom"));
  EXPECT_EQ(weir({"export", folder / "run.json", "--format", "csv"}).out, content(folder / "run.csv"));

  const Outcome sweep = weir(tiny_on_h200("sweep", {"--streams", "2,4", "-o", folder / "sweep.json", "--openmetrics",
                                                    folder / "sweep.prom", "--csv", folder / "sweep.csv"}));
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  const Exposition swept = check_openmetrics(content(folder / "sweep.prom"));
  for (const char* streams : {"2", "4"})
    EXPECT_NE(swept.find("weir_run_latency_seconds", {{"streams", streams}}), nullptr);
  EXPECT_EQ(count(content(folder / "sweep.csv"), "\n"), 3U);
  EXPECT_EQ(count(weir({"export", folder / "sweep.json", "--format", "csv", "--samples"}).out, "\n"), 41U);
  const Outcome again = weir(tiny_on_h200("sweep", {"-o", folder / "s2.json", "--csv", folder / "sweep.csv"}));
  EXPECT_EQ(again.code, 2) << "it exists";
  EXPECT_FALSE(std::filesystem::exists(folder / "s2.json")) << "said before anything ran";
}

TEST(Export, folders_are_read_whole_and_other_documents_passed_over) {
  const Folder folder;
  write_file(folder / "a.json", to_text(result_document()), false);
  write_file(folder / "b.json", to_text(bench_document()), false);
  write_file(folder / "c.json", R"({"schema": "weir.analysis/2"})", false);
  const Outcome outcome = weir({"export", folder.path().string(), "-o", folder / "all.prom"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "c.json was skipped")) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "3 points written to")) << outcome.out;
  const Exposition read = check_openmetrics(content(folder / "all.prom"));
  EXPECT_NE(read.find("weir_run_latency_seconds"), nullptr);
  EXPECT_NE(read.find("weir_bench_latency_seconds"), nullptr);
  EXPECT_EQ(weir({"export", folder.path().string(), "-o", folder / "all.prom"}).code, 2) << "it exists";
  EXPECT_EQ(weir({"export", folder.path().string(), "-o", folder / "all.prom", "--force", "-q"}).err, "");
}

TEST(Export, a_failed_run_is_exported_as_failed) {
  const Folder folder;
  Json failed = result_document();
  failed["status"] = "failed";
  failed["failure"] = "the device vanished";
  write_file(folder / "f.json", to_text(failed), false);
  EXPECT_EQ(check_openmetrics(weir({"export", folder / "f.json"}).out).find("weir_run_failed")->value, 1);
  EXPECT_TRUE(has(weir({"export", folder / "f.json", "--format", "csv"}).out, "failed,the device vanished"));
}

TEST(Export, bad_input_is_named) {
  const Folder folder;
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& part) {
    const Outcome outcome = weir(arguments);
    EXPECT_EQ(outcome.code, 2) << part;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  };
  std::ofstream(folder / "cut.json") << R"({"schema": "weir.res)";
  std::ofstream(folder / "newer.json") << R"({"schema": "weir.result/9"})";
  std::ofstream(folder / "foreign.json") << R"({"hello": "world"})";
  std::filesystem::create_directory(folder.path() / "empty");
  expect({"export", folder / "none.json"}, "none.json");
  expect({"export", folder / "cut.json"}, "cut.json");
  expect({"export", folder / "newer.json"}, "weir.result/9");
  expect({"export", folder / "foreign.json"}, "no schema");
  expect({"export", folder / "empty"}, "holds no results");
  expect({"export", folder / "newer.json", "--samples"}, "--samples");
  expect({"export", folder / "newer.json", "--format", "xml"}, "xml");
  expect({"run", "hetero_kernels", "--device", "sim:h200", "--dry-run", "--csv", folder / "x.csv"}, "--csv");
}

// The first block of that language in a page of the docs.
std::string code_block(const std::string& page, const std::string& language) {
  const std::string text = content(WEIR_SOURCE_DIR "/docs/" + page), fence = "```" + language + "\n";
  const std::size_t begin = text.find(fence);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + fence.size();
  return text.substr(from, text.find("```", from) - from);
}

TEST(Export, the_loader_of_the_docs_reads_real_results) {
  if (run_program({"python3", "-c", ""}).code != 0) GTEST_SKIP() << "python3 is not installed";
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "results");
  ASSERT_EQ(weir(tiny_on_h200("run", {"-o", folder / "results/a.json"})).code, 0);
  ASSERT_EQ(weir(tiny_on_h200("sweep", {"--streams", "2,4", "-o", folder / "results/b.json"})).code, 0);
  const std::string snippet = code_block("export.md", "python");
  ASSERT_TRUE(has(snippet, "def rows(")) << snippet;
  const std::size_t pandas = snippet.find("import pandas");
  ASSERT_NE(pandas, std::string::npos);
  // All but the last lines need the standard library only.
  std::ofstream(folder / "plain.py") << snippet.substr(0, pandas)
                                     << "found = list(rows('results'))\n"
                                        "assert len(found) == 60, len(found)\n"
                                        "assert {row['streams'] for row in found} >= {2, 4}\n"
                                        "assert all(row['latency_ns'] > 0 for row in found)\n"
                                        "print(sorted(found[0]))\n";
  const Outcome plain = run_program({"python3", "plain.py"}, folder.path());
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(has(plain.out, "'latency_ns'")) << plain.out;
  if (run_program({"python3", "-c", "import pandas"}).code != 0) return;  // rows() was run, and is most of it
  std::ofstream(folder / "whole.py") << snippet;
  const Outcome whole = run_program({"python3", "whole.py"}, folder.path());
  EXPECT_EQ(whole.code, 0) << whole.err;
}

TEST(Export, prometheus_own_parser_reads_it) {
  if (run_program({"python3", "-c", "import prometheus_client.openmetrics.parser"}).code != 0)
    GTEST_SKIP() << "python3-prometheus-client is not installed";
  const Folder folder;
  ASSERT_EQ(
      weir(tiny_on_h200("sweep", {"--streams", "2,4", "-o", folder / "s.json", "--openmetrics", folder / "s.prom"}))
          .code,
      0);
  std::ofstream(folder / "read.py")
      << "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families\n"
         "names = {f.name for f in text_string_to_metric_families(open(sys.argv[1]).read())}\n"
         "assert 'weir_run_latency_seconds' in names, names\n";
  const Outcome outcome = run_program({"python3", folder / "read.py", folder / "s.prom"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace weir::testing
