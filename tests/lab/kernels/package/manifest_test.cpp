// kernel_manifest.json.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "lab/kernels/package/discovery.h"
#include "support/package_tree.h"

namespace weir::package {
namespace {

using testing::PackageTree;

// One of everything, and two troubles.
Discovery some_packages(const PackageTree& tree) {
  tree.put("softmax/kernel.cpp", "#include <omp.h>\n");
  tree.put("softmax/kernel.cu");
  tree.put("softmax/bench.yaml", R"(
problem_size: {rows: [256, 1024], grid: [[64, 64, 64]], tolerance: 1.0e-5}
precisions: [fp32]
backends: [cpu, cuda, hip]
tolerances: {rmse: 1.0e-3, fp32: {relative_error: 0.5}}
skip_conditions: [{backend: cuda, reason: no CUDA, check: not cuda.is_present}, {reason: always}]
iterations: 50
seed: 18
time_limit: 500ms
dependencies: [nvcc]
compile_flags: [-O3]
compiler: ahead
)");
  tree.put("plain/kernel.py", "#!/usr/bin/env python3\n", true);
  tree.put("lonely/bench.yaml", "seed: 1");
  return discover(std::array{tree.path()});
}
const Json& kernel(const Json& manifest, std::string_view name) {
  for (const Json& each : manifest.at("kernels"))
    if (each.at("name") == name) return each;
  throw std::runtime_error("no kernel " + std::string(name));
}

TEST(Manifest, says_what_was_found_and_what_it_needs) {
  const PackageTree tree;
  const Json manifest = manifest_document(some_packages(tree), {});
  EXPECT_EQ(manifest.at("schema"), "weir.kernel_manifest/1");
  ASSERT_EQ(manifest.at("kernels").size(), 3U);
  const Json& softmax = kernel(manifest, "softmax");
  EXPECT_EQ(softmax.at("path"), (tree.path() / "softmax").string());
  EXPECT_EQ(softmax.at("backend"), Json({"cpu", "cuda"}));
  EXPECT_EQ(softmax.at("parts"), Json::parse(R"([{"form": "host_source", "file": "kernel.cpp"},
                                                 {"form": "cuda_source", "file": "kernel.cu"}])"));
  EXPECT_EQ(softmax.at("dependencies"), Json::parse(R"([{"name": "nvcc", "needed_by": "bench.yaml"},
                                                       {"name": "a C++ compiler", "needed_by": "kernel.cpp"},
                                                       {"name": "OpenMP", "needed_by": "kernel.cpp"}])"));
  EXPECT_EQ(kernel(manifest, "plain").at("backend").size(), 4U);
  EXPECT_EQ(kernel(manifest, "plain").at("skipped").size(), 0U);
}

TEST(Manifest, holds_every_value_of_the_config) {
  const PackageTree tree;
  const Json manifest = manifest_document(some_packages(tree), {});
  EXPECT_EQ(kernel(manifest, "softmax").at("config"), Json::parse(R"({
    "problem_size": {"rows": [256, 1024], "grid": [[64, 64, 64]], "tolerance": [1e-5]},
    "precisions": ["fp32"], "backends": ["cpu", "cuda", "hip"],
    "tolerances": {"rmse": 0.001, "relative_error": null, "fp32": {"rmse": null, "relative_error": 0.5}},
    "skip_conditions": [{"backend": "cuda", "reason": "no CUDA", "check": "not cuda.is_present"},
                        {"backend": null, "reason": "always", "check": null}],
    "iterations": 50, "warmup": null, "seed": 18, "time_limit_s": 0.5, "dependencies": ["nvcc"],
    "compile_flags": ["-O3"], "compiler": "ahead", "arguments": [], "function_name": null})"));
  EXPECT_FALSE(kernel(manifest, "plain").at("has_config").get<bool>());
}

TEST(Manifest, a_package_that_cannot_be_used_is_there_with_its_reason) {
  const PackageTree tree;
  const Json manifest = manifest_document(some_packages(tree), {});
  const Json& lonely = kernel(manifest, "lonely");
  EXPECT_TRUE(lonely.at("config").is_null());
  ASSERT_EQ(lonely.at("skipped").size(), 1U);
  EXPECT_TRUE(lonely.at("skipped")[0].at("backend").is_null());
  EXPECT_EQ(lonely.at("skipped")[0].at("reason"), "no kernel: the folder has nothing that can run");
}

TEST(Manifest, a_backend_that_nothing_serves_is_skipped_with_its_reason) {
  const PackageTree tree;
  const Json manifest = manifest_document(some_packages(tree), {});
  const Json& skipped = kernel(manifest, "softmax").at("skipped");
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].at("backend"), "hip");
  EXPECT_EQ(skipped[0].at("reason"), "bench.yaml names hip, and no file of the package serves it");
}

TEST(Manifest, what_was_skipped_later_is_added_once) {
  const PackageTree tree;
  const Discovery discovery = some_packages(tree);
  const std::array skipped = {Skipped{"softmax", "hip", "", "", "not there", ""},
                              Skipped{"softmax", "cuda", "fp16", "rows=8", "no CUDA", "Install it."}};
  const Json manifest = manifest_document(discovery, skipped);
  EXPECT_EQ(kernel(manifest, "softmax").at("skipped"), Json::parse(R"([
    {"backend": "hip", "precision": null, "problem": null, "reason": "not there", "hint": null},
    {"backend": "cuda", "precision": "fp16", "problem": "rows=8", "reason": "no CUDA", "hint": "Install it."}])"));
}

TEST(Manifest, notes_of_the_search_are_kept) {
  const PackageTree tree;
  std::filesystem::create_directory_symlink(".", tree.path() / "loop");
  const Json manifest = manifest_document(discover(std::array{tree.path()}), {});
  EXPECT_EQ(manifest.at("notes").size(), 1U);
  EXPECT_TRUE(manifest.at("kernels").is_array());
}

// By an independent implementation of JSON Schema.
TEST(Manifest, keeps_to_its_schema) {
  if (std::system("python3 -c 'import jsonschema' 2> /dev/null") != 0)
    GTEST_SKIP() << "python3-jsonschema is not installed";
  const PackageTree tree;
  const std::array skipped = {Skipped{"softmax", "cuda", "", "", "no CUDA", ""}};
  const auto file = tree.put("manifest.json", to_text(manifest_document(some_packages(tree), skipped)));
  const auto script = tree.put("check.py",
                               "import json,sys,jsonschema\n"
                               "s=json.load(open(sys.argv[2]))\n"
                               "jsonschema.Draft7Validator.check_schema(s)\n"
                               "jsonschema.validate(json.load(open(sys.argv[1])), s)\n");
  const std::string schema = std::string(WEIR_SOURCE_DIR) + "/docs/schema/weir.kernel_manifest.1.json";
  EXPECT_EQ(std::system(("python3 " + script.string() + " " + file.string() + " " + schema).c_str()), 0);
}

}  // namespace
}  // namespace weir::package
