// What becomes of files and folders that somebody names: read, refused with a reason, or passed over.
#include "report/page/gather.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "report/page/fleet_documents.h"
#include "report/page/samples.h"

namespace weir::page {
namespace {

namespace fs = std::filesystem;
using testing::PageFolder;
using testing::report_on;
using testing::result_document;

// Why this file was refused; empty where it was not.
std::string reason(const Json& document, const std::string& file) {
  for (const Json& refused : document["refused"])
    if (refused["path"].get<std::string>().find(file) != std::string::npos) return refused["reason"].string();
  return {};
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Gather, refuses_each_bad_file_with_its_reason_and_keeps_the_rest) {
  PageFolder folder;
  folder.put("good.json", result_document());
  folder.put("empty.json", std::string());
  folder.put("cut.json", std::string("{\"schema\": \"weir.result/2\", \"status\":"));
  Json newer = result_document();
  newer["schema"] = "weir.result/3";
  folder.put("newer.json", newer);
  folder.put("sweep3.json", Json{{"schema", "weir.sweep/3"}});
  folder.put("unknown.json", Json{{"schema", "weir.nonsense/1"}});
  folder.put("other.json", Json{{"name", "package"}, {"version", "1.0.0"}});
  folder.put("no_points.json", testing::sweep_document({}));
  folder.put("hollow.json", Json{{"schema", "weir.comparison/2"}});
  folder.put("text.json", std::string("hello"));
  std::string deep(100'000, '[');
  folder.put("deep.json", deep);
  folder.put("notes.txt", std::string("nothing to see"));
  folder.put("picture.svg", std::string("<svg/>"));
  const Json document = report_on({folder.path()});

  EXPECT_EQ(document["scaling"].size(), 1u);
  EXPECT_TRUE(reason(document, "good.json").empty());
  EXPECT_TRUE(says(reason(document, "empty.json"), "the file is empty"));
  EXPECT_TRUE(says(reason(document, "cut.json"), "truncated"));
  EXPECT_TRUE(says(reason(document, "newer.json"), "newer Weir")) << reason(document, "newer.json");
  EXPECT_TRUE(says(reason(document, "sweep3.json"), "newer Weir"));
  EXPECT_TRUE(says(reason(document, "unknown.json"), "weir.nonsense/1"));
  EXPECT_TRUE(says(reason(document, "other.json"), "no \"schema\""));
  EXPECT_TRUE(says(reason(document, "no_points.json"), "no results"));
  EXPECT_TRUE(says(reason(document, "hollow.json"), "without anything to show"));
  EXPECT_TRUE(says(reason(document, "text.json"), "neither"));
  EXPECT_TRUE(says(reason(document, "deep.json"), "nested"));
  EXPECT_TRUE(reason(document, "notes.txt").empty());
  EXPECT_TRUE(reason(document, "picture.svg").empty());
}

TEST(Gather, shows_some_nodes_one_by_one_and_says_what_compares_many) {
  PageFolder folder;
  Json node = testing::probed_node_document();
  for (int i = 100; i < 170; ++i) {
    node["name"] = "node" + std::to_string(i);
    folder.put("node" + std::to_string(i) + ".json", node);
  }
  const Json document = report_on({folder.path()});
  EXPECT_EQ(document["fleet_nodes"].size(), 64u);
  ASSERT_EQ(document["refused"].size(), 1u) << "said once";
  EXPECT_TRUE(says(reason(document, "node164.json"), "`weir fleet report` compares any number"));
}

TEST(Gather, says_what_is_wrong_with_paths) {
  PageFolder folder;
  fs::create_directory(folder.path() / "hollow");
  const Json document =
      report_on({folder.path() / "absent.json", folder.path() / "hollow", folder.put("notes.txt", std::string("x"))});
  EXPECT_TRUE(says(reason(document, "absent.json"), "no such file"));
  EXPECT_TRUE(says(reason(document, "hollow"), "the folder is empty"));
  EXPECT_TRUE(says(reason(document, "notes.txt"), "neither a document of Weir nor a trace"));
}

TEST(Gather, keeps_a_sweeps_good_points_where_one_is_broken) {
  PageFolder folder;
  Json broken = result_document();
  broken["streams"] = -3;
  const Json document = report_on({folder.put("s.json", testing::sweep_document({result_document(), broken, 7}))});
  EXPECT_EQ(document["scaling"][0]["curves"][0]["points"].size(), 1u);
  EXPECT_TRUE(says(reason(document, "results[1]"), "stream count"));
  EXPECT_FALSE(reason(document, "results[2]").empty());
}

TEST(Gather, walks_folders_but_follows_no_link_out_of_them) {
  PageFolder folder, outside;
  folder.put("a/b/c/deep.json", result_document());
  const fs::path secret = outside.put("secret.json", result_document());
  fs::create_symlink(secret, folder.path() / "link.json");
  fs::create_directory_symlink(outside.path(), folder.path() / "link_folder");
  fs::create_directory_symlink(folder.path(), folder.path() / "circle");
  const Json document = report_on({folder.path()});
  ASSERT_EQ(document["sources"].size(), 1u);
  EXPECT_TRUE(says(document["sources"][0]["path"].get<std::string>(), "deep.json"));
  EXPECT_TRUE(says(reason(document, "link.json"), "link"));
  EXPECT_TRUE(says(reason(document, "circle"), "link"));
  // Named by the user it is read.
  EXPECT_EQ(report_on({folder.path() / "link.json"})["sources"].size(), 1u);
}

TEST(Gather, stops_where_folders_do_not_end) {
  PageFolder folder;
  std::string path = "x";
  for (int i = 0; i < 20; ++i) path += "/x";
  folder.put(path + "/r.json", result_document());
  const Json document = report_on({folder.path()});
  EXPECT_TRUE(document["sources"].empty());
  EXPECT_TRUE(says(reason(document, "x/x"), "folders deep"));
}

TEST(Gather, reads_a_file_once_however_often_it_is_named) {
  PageFolder folder;
  const fs::path file = folder.put("r.json", result_document());
  EXPECT_EQ(report_on({file, folder.path(), file})["sources"].size(), 1u);
}

TEST(Gather, does_not_wait_for_what_is_no_file) {
  const Json document = report_on({"/dev/zero", "/dev/null"});
  EXPECT_TRUE(says(reason(document, "/dev/zero"), "neither a file nor a folder"));
}

TEST(Gather, reads_aorta_results) {
  PageFolder folder;
  const Json result = {
      {"throughput", 12.5},
      {"throughput_unit", "ops/sec"},
      {"iteration_times_ms", {1.0, 1.1, 1.2}},
      {"stream_count", 4},
      {"workload_name", "moe"},
      {"metadata",
       {{"config", {{"sync_mode", "per_iteration"}, {"device", "cuda:0"}}}, {"device_info", {{"name", "MI300X"}}}}}};
  const Json document = report_on({folder.put("a.json", result)});
  ASSERT_EQ(document["scaling"].size(), 1u);
  EXPECT_EQ(document["scaling"][0]["title"], "moe");
  EXPECT_EQ(document["scaling"][0]["curves"][0]["points"][0]["throughput"], 12.5);
  EXPECT_NEAR(document["distributions"][0]["series"][0]["p50"].get<double>(), 1.1e6, 1);
  EXPECT_EQ(document["environments"][0]["label"], "MI300X · cuda:0");
  EXPECT_EQ(document["sources"][0]["schema"], "AORTA");
}

TEST(Gather, passes_over_parts_of_a_folder_and_explains_them_where_they_are_named) {
  PageFolder folder;
  folder.put("r.json", result_document());
  const fs::path part = folder.put("kernel.json", Json{{"schema", "weir.bench_kernel/2"}});
  folder.put("env.json", Json{{"schema", "weir.bench_environment/1"}});
  folder.put("kernel_manifest.json", Json{{"schema", "weir.kernel_manifest/1"}});
  EXPECT_TRUE(report_on({folder.path()})["refused"].empty());
  EXPECT_TRUE(says(reason(report_on({part}), "kernel.json"), "one kernel of a bench"));
}

}  // namespace
}  // namespace weir::page
