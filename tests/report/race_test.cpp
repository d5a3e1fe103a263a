// The text of weir.race/1: where a wait can be put comes first.
#include <gtest/gtest.h>

#include "base/json.h"
#include "report/text/documents.h"

namespace weir {
namespace {

TEST(RaceReport, pythons_frames_come_before_those_of_libraries) {
  const Json race = {{"first", {{"command", "1.9"}, {"label", "copy"}, {"stream", "stream 13"}}},
                     {"second", nullptr},
                     {"missing", "wait for the copy first"},
                     {"first_stack",
                      {"[libcudart.so.13+0x42331]", "cudaMemcpyAsync [libcudart.so.13]", "_start [python3]",
                       "Stack (most recent call first):", "File \"train.py\", line 16 in step"}}};
  const Json document = {{"schema", "weir.race/1"}, {"races", {race}}, {"answer", "found"}};
  const std::string text = report_text(std::get<TextReport>(text_list::race(document)));
  const std::size_t python = text.find("File \"train.py\", line 16 in step"), call = text.find("cudaMemcpyAsync");
  ASSERT_NE(python, std::string::npos) << text;
  ASSERT_NE(call, std::string::npos) << text;
  EXPECT_LT(python, call);
  EXPECT_EQ(text.find("0x42331"), std::string::npos) << text;
  EXPECT_NE(text.find("and 2 more in the document"), std::string::npos) << text;
}

}  // namespace
}  // namespace weir
