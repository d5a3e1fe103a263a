// Real NCCL, as far as one GPU goes: a communicator of one rank, every operation on a stream. Skipped where there is no
// GPU or no NCCL.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "device/gpu/comms.h"
#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "device/gpu/libraries.h"

namespace weir {
namespace {

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    api_ = cuda_api(&reason);
    if (api_ == nullptr) GTEST_SKIP() << reason;
    if (const auto found = find_gpus(*api_); found.names.empty()) GTEST_SKIP() << found.reason;
    nccl_ = open_nccl(&reason);
    if (nccl_ == nullptr) GTEST_SKIP() << reason;
    context_ = std::make_unique<PrimaryContext>(*api_, 0);
    context_->enter();
    stream_ = make_stream(*api_, 0);
    GpuCommId id{};
    ASSERT_EQ(nccl_->get_unique_id(&id), 0);
    const int result = nccl_->comm_init_rank(&comm_, 1, id, 0);
    ASSERT_EQ(result, 0) << nccl_->describe(result);
  }
  void TearDown() override {
    if (comm_ == nullptr) return;
    EXPECT_EQ(nccl_->comm_destroy(comm_), 0);
  }

  GpuMemoryOwner allocate(std::size_t bytes) {
    GpuPointer memory = 0;
    check(*api_, api_->memory_allocate(&memory, bytes), "allocating");
    return GpuMemoryOwner(memory, {api_});
  }

  const GpuApi* api_ = nullptr;
  const GpuCollectives* nccl_ = nullptr;
  std::unique_ptr<PrimaryContext> context_;
  GpuStreamOwner stream_;
  GpuComm comm_ = nullptr;
};

// With one rank every collective is a copy.
TEST_F(Nccl, one_rank_copies) {
  constexpr std::size_t kCount = 100'003;
  EXPECT_FALSE(nccl_->version.empty());
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32}) {
    const std::size_t bytes = kCount * size_of(type);
    std::vector<std::byte> in(bytes), out(bytes);
    Buffer contents{.type = type, .init = Init::uniform, .scale = 50, .seed = 3, .count = kCount};
    initialise(contents, in);
    const GpuMemoryOwner from = allocate(bytes), to = allocate(bytes);
    for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce,
                                  CollectiveOp::all_to_all, CollectiveOp::shift}) {
      GpuStream const stream = stream_.get();
      check(*api_, api_->copy_to_device(from.get(), in.data(), bytes, stream), "copying");
      check(*api_, api_->set_16(to.get(), 0x7e7e, bytes / 2, stream), "filling");
      const GpuCollective collective{.op = op,
                                     .type = type,
                                     .ranks = {0, 1},
                                     .from = reinterpret_cast<const std::byte*>(from.get()),
                                     .to = reinterpret_cast<std::byte*>(to.get()),
                                     .count = kCount};
      const int result = launch_collective(*nccl_, comm_, collective, stream);
      ASSERT_EQ(result, 0) << name_of(op) << ": " << nccl_->describe(result);
      std::fill(out.begin(), out.end(), std::byte{0});
      check(*api_, api_->copy_to_host(out.data(), to.get(), bytes, stream), "copying");
      check(*api_, api_->stream_synchronize(stream), "waiting");
      EXPECT_TRUE(out == in) << name_of(op) << ' ' << name_of(type);
    }
  }
}

TEST_F(Nccl, can_be_captured) {
  constexpr std::size_t kCount = 1000, kBytes = kCount * 4;
  std::vector<float> in(kCount), out(kCount);
  std::iota(in.begin(), in.end(), 1.0f);
  const GpuMemoryOwner from = allocate(kBytes), to = allocate(kBytes);
  GpuStream const stream = stream_.get();
  check(*api_, api_->copy_to_device(from.get(), in.data(), kBytes, stream), "copying");
  check(*api_, api_->stream_synchronize(stream), "waiting");
  check(*api_, api_->capture_begin(stream, kGpuCaptureRelaxed), "capturing");
  const GpuCollective collective{.op = CollectiveOp::all_reduce,
                                 .type = ElementType::f32,
                                 .ranks = {0, 1},
                                 .from = reinterpret_cast<const std::byte*>(from.get()),
                                 .to = reinterpret_cast<std::byte*>(to.get()),
                                 .count = kCount};
  EXPECT_EQ(launch_collective(*nccl_, comm_, collective, stream), 0);
  GpuGraph captured = nullptr;
  check(*api_, api_->capture_end(stream, &captured), "capturing");
  const GpuGraphOwner graph(captured, {api_});
  GpuGraphExec made = nullptr;
  check(*api_, api_->graph_instantiate(&made, captured, 0), "instantiating");
  const GpuGraphExecOwner exec(made, {api_});
  check(*api_, api_->graph_launch(made, stream), "launching");
  check(*api_, api_->copy_to_host(out.data(), to.get(), kBytes, stream), "copying");
  check(*api_, api_->stream_synchronize(stream), "waiting");
  EXPECT_EQ(out, in);
}

}  // namespace
}  // namespace weir
