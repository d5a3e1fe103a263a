#include "lab/kernels/package/dependency.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/package_tree.h"

namespace weir::package {
namespace {

using testing::PackageTree;
using Words = std::vector<std::string>;

// "OpenMP of kernel.cpp"
Words needs(const Package& package) {
  Words all;
  for (const Dependency& each : dependencies_of(package)) all.push_back(each.name + " of " + each.needed_by);
  return all;
}

TEST(Dependency, sources_show_compilers_and_headers) {
  const PackageTree tree;
  Package package;
  package.parts = {{Form::host_source, tree.put("kernel.cpp",
                                                "#include <vector>\n  #  include <omp.h>\n#include \"cblas.h\"\n"
                                                "#include <omp.h>\n// #include <mpi.h>\n")},
                   {Form::cuda_source, tree.put("kernel.cu", "#include <cuda_fp16.h>\n")},
                   {Form::opencl_source, tree.put("kernel.cl")}};
  EXPECT_EQ(needs(package), (Words{"a C++ compiler of kernel.cpp", "OpenMP of kernel.cpp", "BLAS of kernel.cpp",
                                   "NVRTC of kernel.cu", "CUDA of kernel.cu", "OpenCL of kernel.cl"}));
}

TEST(Dependency, a_header_counts_only_where_a_line_includes_it) {
  const PackageTree tree;
  Package package;
  const auto of = [&](const std::string& text) {
    package.parts = {{Form::host_source, tree.put("kernel.cpp", text)}};
    return needs(package).size() - 1;  // without the compiler
  };
  EXPECT_EQ(of("#include <omp.h>"), 1U);
  EXPECT_EQ(of("\t #include <omp.h>"), 1U);
  EXPECT_EQ(of("\n\n # \t include\t<omp.h>"), 1U);
  EXPECT_EQ(of("// #include <omp.h>"), 0U);
  EXPECT_EQ(of("x#include <omp.h>"), 0U);
  EXPECT_EQ(of("#include omp.h"), 0U);
  EXPECT_EQ(of("#"), 0U);
  EXPECT_EQ(of(std::string(16'000, '#') + " include"), 0U);
}

TEST(Dependency, the_compiler_key_decides_between_compilers) {
  const PackageTree tree;
  Package package;
  package.parts = {{Form::cuda_source, tree.put("kernel.cu")}};
  package.config.compiler = Compiler::runtime;
  EXPECT_EQ(needs(package), (Words{"NVRTC of kernel.cu", "a C++ compiler of kernel.cu"}));
  package.config.compiler = Compiler::ahead;
  EXPECT_EQ(needs(package), Words{"nvcc of kernel.cu"});
  package.parts[0].form = Form::hip_source;
  EXPECT_EQ(needs(package), Words{"hipcc of kernel.cu"});
}

TEST(Dependency, executables_show_their_interpreter) {
  const PackageTree tree;
  EXPECT_EQ(interpreter_of(tree.put("a", "#!/usr/bin/env python3\n")), "python3");
  EXPECT_EQ(interpreter_of(tree.put("b", "#!/usr/bin/env -S A=1 python3 -u\n")), "python3");
  EXPECT_EQ(interpreter_of(tree.put("c", "#! /bin/sh -e\n")), "sh");
  EXPECT_EQ(interpreter_of(tree.put("d", "#!/opt/julia")), "julia");
  EXPECT_EQ(interpreter_of(tree.put("e",
                                    "\x7f"
                                    "ELF\x02\x01")),
            "");
  EXPECT_THROW(interpreter_of(tree.put("f", "print(1)")), Error);
  EXPECT_THROW(interpreter_of(tree.put("g", "")), Error);
  EXPECT_THROW(interpreter_of(tree.put("h", "#!\n/bin/sh")), Error);
  EXPECT_THROW(interpreter_of(tree.put("i", "#!/usr/bin/env\n")), Error);
  EXPECT_EQ(interpreter_of(tree.put("j", "#!/bin/\x1b[2J\n")).find('\x1b'), std::string::npos);
  Package package;
  package.parts = {{Form::executable, tree.path() / "a"}};
  EXPECT_EQ(needs(package), Words{"python3 of a"});
}

TEST(Dependency, what_bench_yaml_names_comes_first_and_once) {
  const PackageTree tree;
  Package package;
  package.parts = {{Form::executable, tree.put("kernel.py", "#!/usr/bin/env python3\n")}};
  package.config.dependencies = {"python3", "libfoo.so.1"};
  EXPECT_EQ(needs(package), (Words{"python3 of bench.yaml", "libfoo.so.1 of bench.yaml"}));
}

TEST(Dependency, flags_show_libraries) {
  Package package;
  package.config.compile_flags = {"-O3", "-lopenblas", "-fopenmp"};
  EXPECT_EQ(needs(package), (Words{"libopenblas of compile_flags", "OpenMP of compile_flags"}));
}

TEST(Dependency, only_the_beginning_of_a_source_is_read) {
  const PackageTree tree;
  Package package;
  package.parts = {{Form::host_source, tree.put("kernel.cpp", std::string(20'000, '\n') + "#include <omp.h>\n")}};
  EXPECT_EQ(needs(package), Words{"a C++ compiler of kernel.cpp"});
  EXPECT_EQ(file_beginning(tree.put("x", "12345"), 3), "123");
}

TEST(Dependency, programs_are_looked_for_in_the_path) {
  const PackageTree tree;
  tree.put("bin/tool", "", true);
  tree.put("bin/text");
  const std::string path = "/nowhere::" + (tree.path() / "bin").string();
  Config config;
  config.dependencies = {"tool", "text", "absent"};
  EXPECT_EQ(missing_dependencies(config, path, ""), (Words{"text", "absent"}));
  EXPECT_EQ(missing_dependencies(config, "", ""), (Words{"tool", "text", "absent"}));
}

TEST(Dependency, libraries_are_looked_for_where_the_loader_does) {
  const PackageTree tree;
  tree.put("lib/libmine.so.2");
  Config config;
  config.dependencies = {"libmine.so.2", "libnobody-has-this.so.9"};
  EXPECT_EQ(missing_dependencies(config, "", (tree.path() / "lib").string()), Words{"libnobody-has-this.so.9"});
  EXPECT_EQ(missing_dependencies(config, "", "").size(), 2U);
  config.dependencies = {"libc.so.6"};
  if (!std::filesystem::exists("/etc/ld.so.cache")) GTEST_SKIP() << "this system has no loader cache";
  EXPECT_TRUE(missing_dependencies(config, "", "").empty());
}

}  // namespace
}  // namespace weir::package
