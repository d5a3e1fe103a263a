#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/text/documents.h"

namespace weir {
namespace {

Json document() {
  Json kernel{{"name", "void " + std::string(200, 'k') + "<float>(int)"},
              {"kind", "kernel"},
              {"baseline", {{"count", 12345}, {"total_ns", 1e9}, {"duration_ns", {{"p50", 13.4e6}}}}},
              {"test", {{"count", 12345}, {"total_ns", 1e9}, {"duration_ns", {{"p50", 14.4e6}}}}},
              {"ratio", 1.075},
              {"verdict", "ambiguous"},
              {"reason", "a difference is there, but it may lie on either side of the threshold"},
              {"interval", {1.071, 1.110}},
              {"p", 0.0001},
              {"adjusted_p", 0.0002}};
  Json small = kernel;
  small["name"] = "evil|name\x1b[31m\n`x`";
  small["verdict"] = small["reason"] = small["interval"] = small["adjusted_p"] = nullptr;
  return {{"schema", "weir.trace_comparison/2"},
          {"baseline", "before.sqlite"},
          {"test", "after.sqlite"},
          {"threshold", 0.05},
          {"significance", 0.05},
          {"confidence", 0.95},
          {"hypotheses", 2},
          {"verdicts", {{"slower", 0}, {"faster", 1}, {"same", 0}, {"ambiguous", 1}}},
          {"exit_code", 0},
          {"summary", {"slower: an iteration took 1.200x as long (95 % interval 1.10 to 1.30).", "A second sentence."}},
          {"totals",
           {{{"quantity", "span"}, {"unit", "ns"}, {"baseline", 299e6}, {"test", 299e6}, {"ratio", 1.0}},
            {{"quantity", "idle"}, {"unit", "ns"}, {"baseline", 28.7e6}, {"test", 52.2e6}, {"ratio", 1.818}},
            {{"quantity", "kernels"}, {"unit", nullptr}, {"baseline", 4010}, {"test", 3587}, {"ratio", 0.895}},
            {{"quantity", "copied_bytes"}, {"unit", "bytes"}, {"baseline", 1024}, {"test", 4096}, {"ratio", 4.0}}}},
          {"pace",
           {{"is_marked", true},
            {"kernel", nullptr},
            {"baseline", {{"count", 5}, {"commands", 3.0}, {"duration_ns", {{"p50", 16.7e6}}}}},
            {"test", {{"count", 6}, {"commands", 3.0}, {"duration_ns", {{"p50", 20.04e6}}}}},
            {"ratio", 1.2},
            {"verdict", "slower"},
            {"reason", nullptr},
            {"interval", {1.1, 1.3}},
            {"adjusted_p", 0.001}}},
          {"iterations", {{"baseline", 5}, {"test", 6}}},
          {"categories",
           {{{"category", "exposed_communication"},
             {"baseline_ns", 13.4e6},
             {"test_ns", 12.1e6},
             {"ratio", 0.903},
             {"verdict", "faster"},
             {"reason", nullptr},
             {"interval", {0.901, 0.911}},
             {"adjusted_p", 0.01}}}},
          {"kernels", {kernel, small}},
          {"baseline_only", {{{"name", "gone"}, {"kind", "kernel"}, {"count", 3}, {"total_ns", 4500}}}},
          {"test_only", Json::array()},
          {"kernels_left_out", 0},
          {"notes", {"a note"}}};
}

TEST(TraceComparisonReport, KeepsTo80Columns) {
  const std::string text = trace_comparison_text(document());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_NE(text.find("after.sqlite against baseline before.sqlite"), std::string::npos);
  EXPECT_NE(text.find("12345 x 13.4 ms -> 12345 x 14.4 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("<0.001 ambiguous"), std::string::npos) << text;
  EXPECT_NE(text.find("exposed communication  13.4 ms -> 12.1 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("1 faster, 1 ambiguous"), std::string::npos);
  EXPECT_NE(text.find("4.50 us in      3 x  gone"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(TraceComparisonReport, LeadsWithBusyIdleAndWorkDone) {
  const std::string text = trace_comparison_text(document());
  const auto place = [&](const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    return text.find(part);
  };
  EXPECT_LT(place("slower: an iteration took 1.200x as long"), place("idle                   28.7 ms"));
  EXPECT_LT(place("52.2 ms   +81.8 %"), place("Kernels in both"));
  place("4010      3587   -10.5 %");
  place("bytes copied          1.00 KiB  4.00 KiB 4.0 times");
  place("time per iteration     16.7 ms   20.0 ms   +20.0 % [1.100, 1.300] slower");
  Json unmarked = document();
  unmarked["pace"]["is_marked"] = false;
  unmarked["pace"]["kernel"] = "gemm";
  EXPECT_NE(trace_comparison_text(unmarked).find("A repetition lasts from one start of gemm to the next."),
            std::string::npos);
  EXPECT_NE(trace_comparison_markdown(document()).find("| idle | 28.7 ms | 52.2 ms | +81.8 % |"), std::string::npos);
}

TEST(TraceComparisonReport, MarkdownTablesHold) {
  const std::string text = trace_comparison_markdown(document());
  EXPECT_NE(text.find("evil\\|name?\\[31m \\`x\\`"), std::string::npos) << text;
  EXPECT_NE(text.find("| exposed communication | 13.4 ms | 12.1 ms | 0.903x | [0.901, 0.911] | 0.010 | **faster** |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("## Only in the baseline"), std::string::npos);
  EXPECT_EQ(text.find("## Only in the test"), std::string::npos);
}

TEST(TraceComparisonReport, TakesAnyDocument) {
  EXPECT_FALSE(trace_comparison_text(Json()).empty());
  EXPECT_FALSE(trace_comparison_markdown(Json{{"kernels", {1, nullptr, "x"}}, {"notes", {2}}}).empty());
}

TEST(ShortKernelName, DropsWhatTellsLeastFirst) {
  EXPECT_EQ(short_kernel_name("gemm", 10), "gemm");
  EXPECT_EQ(short_kernel_name("void add<float>(int, float const*, float*)", 20), "add<float>");
  EXPECT_EQ(short_kernel_name("void f<a::B<c::D<int>, x>, E>(F)", 20), "f<B<D<int>, x>, E>");
  EXPECT_EQ(short_kernel_name("void f<(int)128, a::B<c::D<int>, x>, E>(F)", 16), "f<128, B<..>, E>");
  EXPECT_EQ(short_kernel_name("(anonymous namespace)::kernel(int)", 30), "(anonymous namespace)::kernel");
  EXPECT_EQ(short_kernel_name("void (anonymous namespace)::kernel<long>(int)", 20), "kernel<long>");
  EXPECT_EQ(short_kernel_name("mutex: round trip < 25 us", 22), "mutex: round.. < 25 us") << "no template";
  // Kernels of one template are told apart by what they compute.
  const std::string copy =
      "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::"
      "{lambda()#3}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, "
      "unsigned int> >(int, float)";
  EXPECT_EQ(short_kernel_name(copy, 60), "unrolled_elementwise_kernel<direct_copy_kernel_cuda>");
  EXPECT_EQ(short_kernel_name(copy, 37), "unrolled_e..<direct_copy_kernel_cuda>");
  EXPECT_EQ(short_kernel_name("void at::reduce_kernel<128, 4, at::ReduceOp<c10::BFloat16, at::func_wrapper_t<float, "
                              "at::sum_functor<float> > > >(int)",
                              40),
            "reduce_kernel<sum_functor>");
  const std::string cut = short_kernel_name(std::string(50, 'a') + std::string(50, 'z'), 40);
  EXPECT_EQ(cut.size(), 40u);
  EXPECT_EQ(cut.substr(0, 3), "aaa");
  EXPECT_EQ(cut.substr(37), "zzz");
  EXPECT_NE(cut.find(".."), std::string::npos);
  EXPECT_EQ(short_kernel_name("abcdefghijk", 4), "abcd");
  // No half of a letter.
  std::string umlauts;
  for (int i = 0; i < 60; ++i) umlauts += "\xc3\xa4";
  for (std::size_t columns = 10; columns < 30; ++columns) {
    const std::string name = short_kernel_name(umlauts, columns);
    EXPECT_LE(name.size(), columns);
    EXPECT_EQ(std::count(name.begin(), name.end(), '\xc3'), std::count(name.begin(), name.end(), '\xa4'));
  }
}

}  // namespace
}  // namespace weir
