#include "lab/kernels/package/discovery.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "support/package_tree.h"
#include "support/text.h"

namespace weir::package {
namespace {

namespace fs = std::filesystem;
using testing::PackageTree;

constexpr const char* kScript = "#!/usr/bin/env python3\n";

Discovery found(const PackageTree& tree) { return discover(std::array{tree.path()}); }
std::vector<std::string> names(const Discovery& discovery) {
  std::vector<std::string> all;
  for (const Package& package : discovery.packages) all.push_back(package.name);
  return all;
}
std::vector<std::string> parts(const Package& package) {
  std::vector<std::string> all;
  for (const Part& part : package.parts)
    all.push_back(std::string(name_of(part.form)) + ":" + part.file.filename().string());
  return all;
}
bool has_note(const Discovery& discovery, const std::string& words) {
  return std::any_of(discovery.notes.begin(), discovery.notes.end(),
                     [&](const auto& note) { return has(note, words); });
}
using Words = std::vector<std::string>;

TEST(Discovery, every_form_is_found) {
  const PackageTree tree;
  for (const char* const file : {"kernel.cpp", "kernel.cu", "kernel.hip", "kernel.cl", "kernel.so"})
    tree.put(std::string("all/") + file);
  tree.put("all/kernel.py", kScript, true);
  tree.put("all/kernel.h");
  tree.put("all/bench.yaml", "seed: 7");
  const Discovery discovery = found(tree);
  ASSERT_EQ(names(discovery), Words{"all"});
  const Package& package = discovery.packages[0];
  EXPECT_EQ(parts(package), (Words{"host_source:kernel.cpp", "cuda_source:kernel.cu", "hip_source:kernel.hip",
                                   "opencl_source:kernel.cl", "library:kernel.so", "executable:kernel.py"}));
  EXPECT_EQ(package.trouble, "");
  EXPECT_TRUE(package.has_config);
  EXPECT_EQ(package.config.seed, 7U);
  EXPECT_TRUE(package.folder.is_absolute());
  EXPECT_TRUE(discovery.notes.empty());
}

TEST(Discovery, packages_are_found_at_any_depth_and_a_root_may_be_one) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("group/sub/b/kernel.cu");
  tree.put("group/readme.md");
  EXPECT_EQ(names(found(tree)), (Words{"a", "b"}));
  EXPECT_EQ(names(discover(std::array{tree.path() / "a"})), Words{"a"});
  EXPECT_EQ(names(discover(std::array{fs::path(tree.path().string() + "/a/")})), Words{"a"});
}

TEST(Discovery, a_package_below_another_is_found_too) {
  const PackageTree tree;
  tree.put("outer/kernel.cpp");
  tree.put("outer/inner/kernel.cpp");
  tree.put("outer/lib/libdata.so");
  EXPECT_EQ(names(found(tree)), (Words{"inner", "outer"})) << "the library in outer/lib is outer's";
}

TEST(Discovery, roots_in_each_other_give_a_package_once) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  EXPECT_EQ(names(discover(std::array{tree.path(), tree.path() / "a", tree.path() / "." / "a"})), Words{"a"});
}

TEST(Discovery, hidden_and_generated_folders_are_left_out) {
  const PackageTree tree;
  for (const char* const folder : {".git", ".hidden", "node_modules", "build", "__pycache__"})
    tree.put(std::string(folder) + "/x/kernel.cpp");
  EXPECT_TRUE(found(tree).packages.empty());
  EXPECT_EQ(names(discover(std::array{tree.path() / "build"})), Words{"x"}) << "what was asked for is searched";
}

TEST(Discovery, one_library_of_any_name_is_a_package) {
  const PackageTree tree;
  tree.put("one/libfast.so");
  tree.put("two/a.so");
  tree.put("two/b.so");
  tree.put("three/bench.yaml", "seed: 1");
  tree.put("three/a.so");
  tree.put("three/b.so");
  const Discovery discovery = found(tree);
  ASSERT_EQ(names(discovery), (Words{"one", "three"}));
  EXPECT_EQ(parts(discovery.packages[0]), Words{"library:libfast.so"});
  EXPECT_EQ(discovery.packages[1].trouble, "2 libraries, and none is kernel.so");
  EXPECT_TRUE(has_note(discovery, "two: 2 libraries and none is kernel.so"));
}

TEST(Discovery, a_library_beside_a_source_is_what_it_links) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("a/libhelp.so");
  EXPECT_EQ(parts(found(tree).packages.at(0)), Words{"host_source:kernel.cpp"});
}

TEST(Discovery, a_config_without_a_kernel_stays_with_its_trouble) {
  const PackageTree tree;
  tree.put("lonely/bench.yaml", "seed: 1");
  const Package package = found(tree).packages.at(0);
  EXPECT_EQ(package.name, "lonely");
  EXPECT_TRUE(has(package.trouble, "no kernel")) << package.trouble;
  EXPECT_TRUE(has(package.hint, "kernel.cpp")) << package.hint;
}

TEST(Discovery, a_bad_config_does_not_make_its_package_vanish) {
  const PackageTree tree;
  tree.put("bad/kernel.cpp");
  tree.put("bad/bench.yaml", "seed: 1\niteration: 3\n");
  tree.put("good/kernel.cpp");
  const Discovery discovery = found(tree);
  ASSERT_EQ(names(discovery), (Words{"bad", "good"}));
  EXPECT_TRUE(has(discovery.packages[0].trouble, "bad/bench.yaml:2: iteration: unknown key"))
      << discovery.packages[0].trouble;
  EXPECT_EQ(discovery.packages[0].hint, "Did you mean 'iterations'?");
  EXPECT_EQ(discovery.packages[1].trouble, "");
}

TEST(Discovery, a_config_that_is_no_file_is_trouble_and_no_hang) {
  const PackageTree tree;
  tree.put("folder/kernel.cpp");
  fs::create_directory(tree.path() / "folder/bench.yaml");
  tree.put("pipe/kernel.cpp");
  ASSERT_EQ(::mkfifo((tree.path() / "pipe/bench.yaml").c_str(), 0600), 0);
  tree.put("link/kernel.cpp");
  fs::create_symlink("nowhere", tree.path() / "link/bench.yaml");
  tree.put("large/kernel.cpp");
  tree.put("large/bench.yaml", std::string(1 << 20, '#'));
  const Discovery discovery = found(tree);
  ASSERT_EQ(names(discovery), (Words{"folder", "large", "link", "pipe"}));
  EXPECT_TRUE(has(discovery.packages[0].trouble, "not a file")) << discovery.packages[0].trouble;
  EXPECT_TRUE(has(discovery.packages[1].trouble, "bytes")) << discovery.packages[1].trouble;
  EXPECT_TRUE(has(discovery.packages[2].trouble, "cannot be read")) << discovery.packages[2].trouble;
  EXPECT_TRUE(has(discovery.packages[3].trouble, "not a file")) << discovery.packages[3].trouble;
}

TEST(Discovery, a_config_by_another_name_is_not_ignored) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("a/bench.yml", "seed: 1");
  const Package package = found(tree).packages.at(0);
  EXPECT_EQ(package.trouble, "bench.yml is not read");
  EXPECT_EQ(package.hint, "Rename it to bench.yaml.");
}

TEST(Discovery, keys_without_effect_are_trouble) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("a/bench.yaml", "arguments: [x]");
  EXPECT_TRUE(has(found(tree).packages.at(0).trouble, "bench.yaml:1: arguments: the package has no executable"));
}

TEST(Discovery, a_script_without_its_bit_is_trouble_with_the_command) {
  const PackageTree tree;
  tree.put("a/kernel.py", kScript);
  const Package package = found(tree).packages.at(0);
  EXPECT_TRUE(has(package.trouble, "kernel.py is not executable")) << package.trouble;
  EXPECT_TRUE(has(package.hint, "chmod +x ")) << package.hint;
}

TEST(Discovery, a_script_without_its_bit_beside_a_source_is_noted) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("a/kernel.py", kScript);
  const Discovery discovery = found(tree);
  EXPECT_EQ(discovery.packages.at(0).trouble, "");
  EXPECT_TRUE(has_note(discovery, "kernel.py: it is not executable"));
}

TEST(Discovery, an_executable_that_cannot_start_is_trouble) {
  const PackageTree tree;
  tree.put("a/kernel.py", "print(1)\n", true);
  EXPECT_TRUE(has(found(tree).packages.at(0).trouble, "no #! line"));
}

constexpr const char* kModule = "import numpy\n\ndef run_benchmark(problem_size=1024, iterations=1):\n    return 1\n";

TEST(Discovery, a_python_module_is_a_package) {
  const PackageTree tree;
  tree.put("kernels/poisson/solver.py", kModule);
  tree.put("kernels/poisson/helper.py", "def run_benchmarks():\n    pass\n");
  tree.put("kernels/many/one.py", kModule);
  tree.put("kernels/many/two.py", "import torch\nrun_benchmark = print\n");
  tree.put("kernels/many/bench.yaml", "seed: 7\n");
  tree.put("kernels/loose.py", "from jax import numpy as jnp\n" + std::string(kModule));
  tree.put("kernels/kernel/kernel.py", kScript + std::string(kModule), true);
  // Neither tests nor modules that only speak of the function are kernels.
  tree.put("kernels/tests/test_poisson.py", kModule);
  tree.put("kernels/tests/__init__.py", kModule);
  tree.put("kernels/tests/caller.py", "from poisson import run_benchmark\n  # run_benchmark = 1\nrun_benchmark == 2\n");
  const Discovery discovery = found(tree);
  ASSERT_EQ(names(discovery), (Words{"kernel", "loose", "one", "poisson", "two"}));
  EXPECT_EQ(parts(discovery.packages[0]), Words{"python:kernel.py"});
  EXPECT_EQ(parts(discovery.packages[3]), Words{"python:solver.py"});
  EXPECT_EQ(discovery.packages[3].backends(), std::vector{Backend::cpu});
  EXPECT_EQ(discovery.packages[1].usual_backend, Backend::jax);
  EXPECT_EQ(discovery.packages[4].usual_backend, Backend::pytorch);
  EXPECT_EQ(discovery.packages[4].backends(),
            (std::vector{Backend::cpu, Backend::cuda, Backend::hip, Backend::pytorch}));
  EXPECT_EQ(discovery.packages[2].config.seed, 7U);
  EXPECT_EQ(discovery.packages[4].config.seed, 7U);
  EXPECT_TRUE(discovery.notes.empty());
}

TEST(Discovery, bench_yaml_may_name_the_function_of_a_module) {
  const PackageTree tree;
  tree.put("a/solver.py", "def solve (n=1):\n    return n\n");
  tree.put("a/other.py", kModule);
  tree.put("a/bench.yaml", "function_name: solve\n");
  tree.put("b/solver.py", kModule);
  tree.put("b/bench.yaml", "function_name: absent\n");
  tree.put("c/kernel.cpp");
  tree.put("c/bench.yaml", "function_name: run\n");
  const Discovery discovery = found(tree);
  ASSERT_EQ(names(discovery), (Words{"a", "b", "c"}));
  EXPECT_EQ(parts(discovery.packages[0]), Words{"python:solver.py"});
  EXPECT_EQ(discovery.packages[1].trouble, "no kernel: no Python module of the folder defines absent()");
  EXPECT_TRUE(has(discovery.packages[2].trouble, "the package has no Python module that would define it"));
}

TEST(Discovery, a_module_beside_another_form_is_noted) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("a/plot.py", kModule);
  const Discovery discovery = found(tree);
  EXPECT_EQ(parts(discovery.packages.at(0)), Words{"host_source:kernel.cpp"});
  EXPECT_TRUE(has_note(discovery, "plot.py: the folder has a kernel of another form"));
}

TEST(Discovery, two_executables_are_trouble) {
  const PackageTree tree;
  tree.put("a/kernel.py", kScript, true);
  tree.put("a/kernel", "#!/bin/sh\n", true);
  EXPECT_EQ(found(tree).packages.at(0).trouble, "2 executables: kernel, kernel.py");
}

TEST(Discovery, a_source_with_an_x_bit_is_a_source) {
  const PackageTree tree;
  tree.put("a/kernel.cpp", "int x;", true);
  tree.put("a/kernel.h", "int x;", true);
  EXPECT_EQ(parts(found(tree).packages.at(0)), Words{"host_source:kernel.cpp"});
}

TEST(Discovery, equal_names_carry_their_parents) {
  const PackageTree tree;
  tree.put("a/softmax/kernel.cpp");
  tree.put("b/softmax/kernel.cpp");
  tree.put("b/spmv/kernel.cpp");
  EXPECT_EQ(names(found(tree)), (Words{"a_softmax", "b_softmax", "spmv"}));
}

TEST(Discovery, names_are_safe_as_file_names_and_unique) {
  const PackageTree tree;
  tree.put("soft max/kernel.cpp");
  tree.put("soft:max/kernel.cpp");
  tree.put("-rf/kernel.cpp");
  tree.put("evil\x1b[2J/kernel.cpp");
  tree.put(std::string(200, 'n') + "/kernel.cpp");
  const Discovery discovery = found(tree);
  ASSERT_EQ(discovery.packages.size(), 5U);
  Words all = names(discovery);
  for (const std::string& name : all) {
    EXPECT_LE(name.size(), 110U);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"),
              std::string::npos)
        << name;
    EXPECT_NE(name[0], '-');
  }
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

TEST(Discovery, names_do_not_depend_on_the_order_of_roots) {
  const PackageTree tree;
  tree.put("a/x/kernel.cpp");
  tree.put("b/x/kernel.cpp");
  EXPECT_EQ(names(discover(std::array{tree.path() / "a", tree.path() / "b"})),
            names(discover(std::array{tree.path() / "b", tree.path() / "a"})));
}

// Enough for several threads to read them.
TEST(Discovery, many_packages_are_read_as_few_are) {
  const PackageTree tree;
  for (int i = 100; i < 300; ++i) {
    const std::string name = "k" + std::to_string(i);
    tree.put(name + "/kernel.cpp");
    tree.put(name + "/bench.yaml", i % 7 == 0 ? "sed: 1" : "seed: " + std::to_string(i));
  }
  const Discovery discovery = found(tree);
  ASSERT_EQ(discovery.packages.size(), 200U);
  for (int i = 100; i < 300; ++i) {
    const Package& package = discovery.packages[static_cast<std::size_t>(i - 100)];
    EXPECT_EQ(package.name, "k" + std::to_string(i));
    EXPECT_EQ(package.trouble.empty(), i % 7 != 0);
    EXPECT_EQ(package.config.seed.value_or(0), i % 7 != 0 ? static_cast<std::uint64_t>(i) : 0U);
  }
}

TEST(Discovery, loops_of_links_end) {
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  fs::create_directory_symlink(tree.path(), tree.path() / "a/up");
  fs::create_directory_symlink(".", tree.path() / "self");
  const Discovery discovery = found(tree);
  EXPECT_EQ(names(discovery), Words{"a"});
  EXPECT_TRUE(has_note(discovery, "a/up: a link to a folder is not followed"));
}

TEST(Discovery, a_root_may_be_a_link) {
  const PackageTree tree;
  tree.put("real/a/kernel.cpp");
  fs::create_directory_symlink("real", tree.path() / "link");
  EXPECT_EQ(names(discover(std::array{tree.path() / "link"})), Words{"a"});
}

TEST(Discovery, deep_trees_are_cut_with_a_note) {
  const PackageTree tree;
  std::string deep;
  for (int i = 0; i < 30; ++i) deep += "d/";
  tree.put(deep + "kernel.cpp");
  const Discovery discovery = found(tree);
  EXPECT_TRUE(discovery.packages.empty());
  EXPECT_TRUE(has_note(discovery, "too deep"));
}

TEST(Discovery, a_folder_that_cannot_be_read_is_noted) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const PackageTree tree;
  tree.put("a/kernel.cpp");
  tree.put("closed/kernel.cpp");
  fs::permissions(tree.path() / "closed", fs::perms::none);
  const Discovery discovery = found(tree);
  fs::permissions(tree.path() / "closed", fs::perms::owner_all);
  EXPECT_EQ(names(discovery), Words{"a"});
  EXPECT_TRUE(has_note(discovery, "closed: cannot be read"));
}

TEST(Discovery, notes_and_troubles_carry_no_control_characters) {
  const PackageTree tree;
  tree.put("e\x1b[2J/kernel.cpp");
  tree.put("e\x1b[2J/bench.yaml", "\"\\e[2J\": 1");
  tree.put("e\x1b[2J/kernel.p\x1by");
  fs::create_directory_symlink(".", tree.path() / "l\x1bk");
  const Discovery discovery = found(tree);
  for (const std::string& note : discovery.notes) EXPECT_FALSE(has(note, "\x1b")) << note;
  EXPECT_FALSE(has(discovery.packages.at(0).trouble, "\x1b"));
  EXPECT_FALSE(discovery.packages.at(0).trouble.empty());
  EXPECT_FALSE(discovery.notes.empty());
}

TEST(Discovery, a_root_that_is_no_folder_is_refused) {
  const PackageTree tree;
  const fs::path file = tree.put("a/kernel.cpp");
  EXPECT_THROW(discover(std::array{tree.path() / "missing"}), Error);
  EXPECT_THROW(discover(std::array{file}), Error);
  EXPECT_TRUE(discover({}).packages.empty());
}

}  // namespace
}  // namespace weir::package
