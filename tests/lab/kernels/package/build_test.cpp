// Compilers as child processes, what they say, and the cache of what they built.
#include "lab/kernels/package/build.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "lab/kernels/package/build_cache.h"
#include "packages.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTiny = "#include \"weir/kernel.h\"\nconst WeirKernel* weir_kernel(void) { return nullptr; }\n";

fs::path build(const PackageFolder& folder, const package::Package& package) {
  return build_host_part(package, package.parts[0], folder.options());
}

// A compiler that leaves a line for each start and then is the real one.
std::string counting_compiler(const PackageFolder& folder) {
  const fs::path script = folder.path() / ".." / "counted_cxx";
  std::ofstream(script) << "#!/bin/sh\necho \"$1\" >> '" << (folder.path() / ".." / "starts").string()
                        << "'\nexec c++ \"$@\"\n";
  fs::permissions(script, fs::perms::owner_all);
  return fs::canonical(script).string();
}
int builds(const PackageFolder& folder) {
  std::ifstream starts(folder.path() / ".." / "starts");
  int count = 0;
  for (std::string line; std::getline(starts, line);) count += line != "--version" ? 1 : 0;
  return count;
}

TEST(Build, the_first_error_is_named_by_file_and_line) {
  const PackageFolder folder;
  folder.write("kernel.cpp", "#include \"weir/kernel.h\"\nint a;\nint b = nothing_like_it;\nint c = nor_this;\n");
  const package::Package package = folder.package("kernel.cpp");
  try {
    build(folder, package);
    FAIL() << "it compiled";
  } catch (const package::BuildError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("scale: kernel.cpp:3:")) << error.what();
    EXPECT_NE(std::string(error.what()).find("nothing_like_it"), std::string::npos);
    EXPECT_NE(error.output.find("nor_this"), std::string::npos);
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_NE(error.hint.find(".log"), std::string::npos);
  }
  ASSERT_EQ(folder.cached(".log").size(), 1U);
  EXPECT_TRUE(folder.cached(".so").empty());
  EXPECT_TRUE(folder.cached(".tmp").empty());
}

TEST(Build, escapes_in_a_source_do_not_reach_the_terminal) {
  const PackageFolder folder;
  folder.write("kernel.cpp", "#error \033[2Jgone\n");
  const package::Package package = folder.package("kernel.cpp");
  const std::string words = words_of([&] { build(folder, package); });
  EXPECT_NE(words.find("gone"), std::string::npos) << words;
  EXPECT_EQ(words.find('\033'), std::string::npos);
}

TEST(Build, what_was_built_is_built_once) {
  const PackageFolder folder;
  folder.write("kernel.cpp", kTiny);
  folder.write("part.h", "// one\n");
  const package::Package package = folder.package("kernel.cpp");
  package::OpenOptions options = folder.options();
  options.compiler = counting_compiler(folder);
  const auto build_now = [&](const package::Package& wanted) {
    return build_host_part(wanted, wanted.parts[0], options);
  };
  const fs::path first = build_now(package);
  EXPECT_EQ(build_now(package), first);
  EXPECT_EQ(builds(folder), 1);
  // Any source of the folder, and any flag, makes it another one.
  folder.write("part.h", "// two\n");
  EXPECT_NE(build_now(package), first);
  EXPECT_EQ(builds(folder), 2);
  folder.write("part.h", "// one\n");
  EXPECT_EQ(build_now(package), first);
  EXPECT_EQ(builds(folder), 2);
  EXPECT_NE(build_now(folder.package("kernel.cpp", {"-DA=1"})), first);
  EXPECT_EQ(builds(folder), 3);
  EXPECT_TRUE(folder.cached(".tmp").empty());
}

TEST(Build, a_header_outside_of_the_folder_counts_too) {
  const PackageFolder folder;
  std::ofstream(folder.path() / ".." / "shared one.h") << "// one\n";
  folder.write("kernel.cpp", std::string("#include \"../shared one.h\"\n") + kTiny);
  const package::Package package = folder.package("kernel.cpp");
  package::OpenOptions options = folder.options();
  options.compiler = counting_compiler(folder);
  for (int i = 0; i < 2; ++i) build_host_part(package, package.parts[0], options);
  EXPECT_EQ(builds(folder), 1);
  std::ofstream(folder.path() / ".." / "shared one.h") << "// two\n";
  for (int i = 0; i < 2; ++i) build_host_part(package, package.parts[0], options);
  EXPECT_EQ(builds(folder), 2);
}

// A folder behind a link, and an ending that no list has.
TEST(Build, whatever_a_source_includes_counts) {
  const PackageFolder folder;
  const fs::path shared = folder.path() / ".." / "shared";
  fs::create_directory(shared);
  fs::create_directory_symlink(shared, folder.path() / "linked");
  std::ofstream(shared / "part.h") << "// one\n";
  folder.write("table.values", "// one\n");
  folder.write("kernel.cpp", std::string("#include \"linked/part.h\"\n#include \"table.values\"\n") + kTiny);
  const package::Package package = folder.package("kernel.cpp");
  package::OpenOptions options = folder.options();
  options.compiler = counting_compiler(folder);
  const auto build_twice = [&] {
    for (int i = 0; i < 2; ++i) build_host_part(package, package.parts[0], options);
  };
  build_twice();
  EXPECT_EQ(builds(folder), 1);
  std::ofstream(shared / "part.h") << "// two\n";
  build_twice();
  EXPECT_EQ(builds(folder), 2);
  folder.write("table.values", "// two\n");
  build_twice();
  EXPECT_EQ(builds(folder), 3);
}

TEST(Build, sources_that_change_meanwhile_are_not_kept_under_their_old_text) {
  const PackageFolder folder;
  folder.write("kernel.cpp", kTiny);
  const package::Package package = folder.package("kernel.cpp");
  const fs::path script = folder.write(
      "edits", "#!/bin/sh\n[ \"$1\" = --version ] || echo '// edited' >> kernel.cpp\nexec c++ \"$@\"\n", true);
  package::OpenOptions options = folder.options();
  options.compiler = script.string();
  EXPECT_NE(
      words_of([&] { build_host_part(package, package.parts[0], options); }).find("changed while they were built"),
      std::string::npos);
  EXPECT_TRUE(folder.cached(".so").empty());
  EXPECT_TRUE(folder.cached(".tmp").empty());
}

TEST(Build, sources_for_gpus_are_their_own_host_part) {
  const PackageFolder folder;
  for (const char* name : {"kernel.cu", "kernel.hip", "kernel.cl"}) {
    folder.write(name, std::string("#include \"weir/kernel.h\"\n#if WEIR_DEVICE_CODE\nthis is not for C++\n#endif\n"
                                   "#if WEIR_HOST_CODE\n") +
                           kTiny + "#endif\n");
    EXPECT_TRUE(fs::exists(build(folder, folder.package(name)))) << name;
  }
}

TEST(Build, a_missing_compiler_is_said_with_what_to_do) {
  const PackageFolder folder;
  folder.write("kernel.cpp", kTiny);
  const package::Package package = folder.package("kernel.cpp");
  package::OpenOptions options = folder.options();
  options.compiler = "no-such-compiler";
  const std::string words = words_of([&] { build_host_part(package, package.parts[0], options); });
  EXPECT_NE(words.find("cannot start no-such-compiler"), std::string::npos) << words;
  EXPECT_NE(words.find("set CXX"), std::string::npos);
}

TEST(Build, a_compiler_that_hangs_is_stopped) {
  const PackageFolder folder;
  folder.write("kernel.cpp", kTiny);
  const package::Package package = folder.package("kernel.cpp");
  const fs::path script = folder.write("slow", "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nsleep 100\n", true);
  package::OpenOptions options = folder.options();
  options.compiler = script.string();
  options.compile_limit_s = 0.5;
  EXPECT_NE(words_of([&] { build_host_part(package, package.parts[0], options); }).find("took longer than 0.5 s"),
            std::string::npos);
}

TEST(Build, the_packages_flags_win_over_ours) {
  const PackageFolder folder;
  folder.write("kernel.cpp", std::string("#if __cplusplus != 201703L || !defined(__OPTIMIZE_SIZE__)\n#error ours\n"
                                         "#endif\n") +
                                 kTiny);
  package::Package package = folder.package("kernel.cpp");
  package.config.compile_flags = {"-std=c++17", "-Os", "-lm", "-cl-fast-relaxed-math", "--use_fast_math"};
  EXPECT_TRUE(fs::exists(build(folder, package)));
}

// With nvcc's own <<<>>>; its -arch=native falls back to a default where there is no GPU.
TEST(Build, nvcc_builds_both_halves_at_once) {
  if (std::system("nvcc --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "nvcc is not in PATH";
  const PackageFolder folder;
  folder.write("kernel.cu", std::string("__global__ void set(float* x) { *x = 1; }\n"
                                        "void launch(float* x) { set<<<1, 1>>>(x); }\n") +
                                kTiny);
  package::Package package = folder.package("kernel.cu");
  package.config.compile_flags = {"-O1", "-std=c++17", "-ffast-math"};
  const fs::path library = build_ahead(package, package.parts[0], folder.options());
  EXPECT_TRUE(fs::exists(library));
  EXPECT_EQ(build_ahead(package, package.parts[0], folder.options()), library);
  package.config.compile_flags.push_back("--gpu-architecture=sm_90a");  // nvcc refuses it beside -arch=native
  EXPECT_NE(build_ahead(package, package.parts[0], folder.options()), library);
  folder.write("kernel.cu", "\n\nint a = nothing_like_it;\n");
  EXPECT_TRUE(words_of([&] {
                build_ahead(package, package.parts[0], folder.options());
              }).starts_with("scale: kernel.cu(3): error"));
}

TEST(Build, only_sources_for_gpus_are_compiled_ahead) {
  const PackageFolder folder;
  folder.write("kernel.cl", kTiny);
  const package::Package package = folder.package("kernel.cl");
  EXPECT_NE(
      words_of([&] { build_ahead(package, package.parts[0], folder.options()); }).find("cannot be compiled ahead"),
      std::string::npos);
}

TEST(BuildCache, a_folder_that_others_may_write_to_is_refused) {
  const PackageFolder folder;
  const fs::path cache = folder.path() / "cache";
  make_private(cache, true);
  struct stat found{};
  ASSERT_EQ(::stat(cache.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
  make_private(cache, true);
  ASSERT_EQ(::chmod(cache.c_str(), 0755), 0);
  EXPECT_NE(words_of([&] { make_private(cache, true); }).find("chmod 700"), std::string::npos);
  EXPECT_EQ(words_of([&] { make_private(cache, false); }), "");
  ASSERT_EQ(::chmod(cache.c_str(), 0775), 0);
  EXPECT_NE(words_of([&] { make_private(cache, false); }), "");
  fs::create_symlink(cache, folder.path() / "link");
  EXPECT_NE(words_of([&] { make_private(folder.path() / "link", true); }).find("but a link"),
            std::string::npos);
  folder.write("file", "");
  EXPECT_NE(words_of([&] { make_private(folder.path() / "file", true); }).find("is not a folder"),
            std::string::npos);
}

TEST(BuildCache, headers_are_written_as_they_were_compiled_in) {
  const PackageFolder folder;
  const fs::path include = folder.path() / "include";
  package::write_headers(include);
  std::ifstream file(include / "weir/kernel.h");
  std::string line;
  std::getline(file, line);
  EXPECT_NE(line.find("The C interface"), std::string::npos);
  std::ofstream(include / "weir/kernel.h") << "changed";
  package::write_headers(include);
  EXPECT_GT(fs::file_size(include / "weir/kernel.h"), 1000U);
}

TEST(ContentHash, tells_pieces_apart) {
  EXPECT_EQ(ContentHash().text(), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(ContentHash().add("a").text().size(), 32U);
  EXPECT_NE(ContentHash().add("ab").add("c").text(), ContentHash().add("a").add("bc").text());
  EXPECT_NE(ContentHash().add("").text(), ContentHash().text());
}

}  // namespace
}  // namespace weir::testing
