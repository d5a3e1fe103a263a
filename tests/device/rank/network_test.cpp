#include "device/rank/network.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/clock.h"
#include "device/rank/alone.h"

namespace weir {
namespace {

TEST(AloneCommunicator, copies_what_it_is_given) {
  AloneCommunicator alone;
  const std::vector<float> in = {1, 2, 3};
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce,
                                CollectiveOp::all_to_all, CollectiveOp::shift}) {
    std::vector<float> out(3, 0);
    EXPECT_TRUE(alone.test(alone.start(0, op, ElementType::f32, in.data(), out.data(), 3)));
    EXPECT_EQ(out, in);
  }
  EXPECT_TRUE(alone.ranks().has_collectives());
  EXPECT_EQ(alone.gather("x"), std::vector<std::string>{"x"});
  EXPECT_TRUE(alone.any(true));
  EXPECT_FALSE(alone.any(false));
}

std::int64_t wait_for(NetworkCommunicator& network, Communicator::Request request) {
  while (!network.test(request)) {
  }
  return now_ns();
}

TEST(NetworkCommunicator, a_collective_takes_at_least_its_latency) {
  AloneCommunicator alone;
  NetworkCommunicator network(alone, {.latency_us = 2000});
  float in = 1, out = 0;
  const std::int64_t begun = now_ns();
  const auto request = network.start(0, CollectiveOp::all_reduce, ElementType::f32, &in, &out, 1);
  EXPECT_GE(wait_for(network, request) - begun, 2'000'000);
  EXPECT_EQ(out, 1);
}

TEST(NetworkCommunicator, collectives_share_the_link) {
  AloneCommunicator alone;
  NetworkCommunicator network(alone, {.bandwidth_gbs = 0.1});
  std::vector<float> in(100'000), out(100'000);  // 400 kB: an all-gather with one other rank takes 4 ms at 0.1 GB/s
  const std::int64_t begun = now_ns();
  const auto first = network.start(0, CollectiveOp::all_gather, ElementType::f32, in.data(), out.data(), in.size());
  const auto second = network.start(1, CollectiveOp::all_gather, ElementType::f32, in.data(), out.data(), in.size());
  EXPECT_GE(wait_for(network, first) - begun, 4'000'000);
  EXPECT_GE(wait_for(network, second) - begun, 8'000'000);
}

TEST(NetworkCommunicator, an_absent_rank_never_joins) {
  AloneCommunicator alone;
  NetworkCommunicator network(alone, {.absent_rank = 0, .absent_at = 1});
  float in = 1, out = 0;
  const auto start = [&] { return network.start(0, CollectiveOp::all_reduce, ElementType::f32, &in, &out, 1); };
  EXPECT_TRUE(network.test(start()));
  out = 0;
  const auto absent = start();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(network.test(absent));
  EXPECT_EQ(out, 0);
  EXPECT_TRUE(network.test(start()));
}

TEST(LinkBytes, are_those_of_ring_algorithms) {
  EXPECT_DOUBLE_EQ(link_bytes(CollectiveOp::all_gather, ElementType::f32, 100, 4), 1200);
  EXPECT_DOUBLE_EQ(link_bytes(CollectiveOp::reduce_scatter, ElementType::f32, 400, 4), 1200);
  EXPECT_DOUBLE_EQ(link_bytes(CollectiveOp::all_reduce, ElementType::bf16, 400, 4), 1200);
  EXPECT_DOUBLE_EQ(link_bytes(CollectiveOp::shift, ElementType::f32, 100, 4), 400);
}

}  // namespace
}  // namespace weir
