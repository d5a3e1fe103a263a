// The document of a sample: null with a reason, never 0.
#include "lab/watch/document.h"

#include <gtest/gtest.h>

#include "lab/watch/hand_made.h"

namespace weir::watch {
namespace {

TEST(WatchDocument, each_null_has_its_reason_and_each_bound_says_so) {
  const Json document = watch_document(testing::kfd_sample(), 500'000'000, "2026-01-31T12:00:00Z");
  EXPECT_EQ(document["schema"], "weir.watch/1");
  EXPECT_EQ(document["interval_ns"], 500'000'000);
  ASSERT_EQ(document["queues"].size(), 3u);
  for (const Json& queue : document["queues"]) {
    for (const char* name : {"backlog", "most_backlog", "priority", "streams", "kernels_per_s", "commands_per_s",
                             "packets_per_s", "busy", "active"})
      EXPECT_EQ(queue[name].is_null(), queue["unavailable"].contains(name)) << name;
  }
  EXPECT_EQ(document["queues"][0]["packets_per_s"], 317);
  EXPECT_TRUE(document["queues"][0]["at_least"].contains("packets_per_s"));
  EXPECT_FALSE(document["queues"][1]["at_least"].contains("packets_per_s"));
  EXPECT_TRUE(document["device"].is_null());
}

TEST(WatchDocument, bytes_that_are_no_text_do_not_end_it) {
  Sample sample = testing::kfd_sample();
  sample.rows[0].label = "\xff\x1b";
  EXPECT_NO_THROW(to_text(watch_document(sample, 1, "")));
}

}  // namespace
}  // namespace weir::watch
