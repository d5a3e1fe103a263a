// The command lines that need CUDA, for good: here a refusal is a failure. Pages without such a line are in tests_docs.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "docs/page.h"
#include "docs/pages.h"

namespace weir::testing {
namespace {

std::vector<std::string> pages_that_need_cuda() {
  std::vector<std::string> pages;
  for (const std::string& page : user_pages()) {
    const std::vector<CommandLine> commands = read_page(page_text(page)).commands;
    if (std::any_of(commands.begin(), commands.end(), [](const CommandLine& line) { return line.need == "cuda"; }))
      pages.push_back(page);
  }
  return pages;
}

class DocsGpu : public ::testing::TestWithParam<std::string> {};

TEST_P(DocsGpu, command_lines_do_what_the_page_says) {
  std::string reason;
  const GpuApi* const api = cuda_api(&reason);
  if (api == nullptr) GTEST_SKIP() << reason;
  if (const auto found = find_gpus(*api); found.names.empty()) GTEST_SKIP() << found.reason;
  try_page(GetParam(), "cuda");
}

INSTANTIATE_TEST_SUITE_P(Pages, DocsGpu, ::testing::ValuesIn(pages_that_need_cuda()), page_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DocsGpu);

}  // namespace
}  // namespace weir::testing
