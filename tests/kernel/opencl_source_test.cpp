// The text of OpenCL bodies: carried in the program, one for every kernel that has a device body.
#include "kernel/opencl_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "kernel/region.h"

namespace weir {
namespace {

TEST(OpenclSource, text_is_that_of_the_file) {
  for (const EmbeddedSource& source : embedded_opencl_sources()) {
    std::ifstream file(std::string(WEIR_SOURCE_DIR "/src/kernel/") + std::string(source.name) + ".cl");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(source.text, text.str()) << source.name;
    EXPECT_EQ(opencl_source(source.name), source.text);
  }
}

TEST(OpenclSource, every_body_belongs_to_a_kernel_and_defines_its_entry) {
  for (const EmbeddedSource& source : embedded_opencl_sources()) {
    if (source.name == "prelude") continue;
    EXPECT_TRUE(std::ranges::any_of(kernels(), [&](const Kernel& each) { return each.name == source.name; }))
        << source.name;
    EXPECT_NE(source.text.find("WEIR_KERNEL(" + std::string(source.name) + ")"), std::string_view::npos) << source.name;
  }
}

TEST(OpenclSource, every_kernel_with_a_device_body_has_one) {
  for (const Kernel& each : kernels())
    EXPECT_EQ(opencl_source(each.name).empty(), each.is_host_only || is_region(each)) << each.name;
}

TEST(OpenclSource, unknown_names_have_no_text) {
  EXPECT_FALSE(opencl_source("prelude").empty());
  EXPECT_TRUE(opencl_source("").empty());
  EXPECT_TRUE(opencl_source("prelud").empty());
  EXPECT_TRUE(opencl_source("graph_break").empty());
}

}  // namespace
}  // namespace weir
