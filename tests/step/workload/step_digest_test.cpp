// Every compiler builds the same step: the same commands on the same buffers, which begin with the same data. Arguments
// whose evaluation numbers buffers or draws seeds would differ, because compilers choose their order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "step/workload/workload.h"

namespace weir {
namespace {

// Of a workload that was changed on purpose: take the number that the test prints.
const std::map<std::string, std::uint64_t> kDigests = {
    {"activation_ckpt", 0x5e5edcd6e1590e16},
    {"async_dataload", 0x4e334cdf59ebead1},
    {"case_a_cnn", 0xef420358af3b4cd9},
    {"case_b_transformer", 0x8980009994b87e9b},
    {"continuous_batch", 0xcabc13d722e9565b},
    {"disaggregated_serving", 0x0b69b4c681e0623c},
    {"fsdp_tp", 0x7a18708014420079},
    {"grad_accum", 0x285ae4e4d69f726e},
    {"graph_subgraphs", 0x292e63e8aa7343d4},
    {"hetero_kernels", 0xa2fc7a8629cc679d},
    {"large_gemm_only", 0x772e145fb8984385},
    {"moe", 0x946380eb47673571},
    {"rag_pipeline", 0x6cd2791e9d0e72bc},
    {"ranking_transformer", 0x6b12511c8e1d9986},
    {"speculative_decode", 0xa442b9970bb5884b},
    {"tiny_kernel_stress", 0xedaab09a44be0765},
    {"torch_compile", 0xc42cec4ab92ab33a},
    {"zero_offload", 0xdcac051d9a23e8b0},
};

// Numbers of shapes have four digits here: square roots and powers may differ in the last bit from machine to machine.
std::string text_of(const Step& step) {
  std::string text;
  for (const Buffer& buffer : step.buffers())
    text += fmt::format("buffer {} {} {} {:.3e} {:.3e} {} {} {} {} {}\n", static_cast<int>(buffer.type),
                        static_cast<int>(buffer.place), static_cast<int>(buffer.init), buffer.scale, buffer.offset,
                        buffer.seed, buffer.count, buffer.slice.first, buffer.slice.run, buffer.slice.stride);
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    const bool has_kernel = command.kind == CommandKind::kernel || command.kind == CommandKind::host;
    text += fmt::format("command {} {} stream {} role {} priority {} type {}", static_cast<int>(command.kind),
                        has_kernel ? kernel(command.kernel).name : name_of(command.collective), command.stream,
                        command.role, command.priority, static_cast<int>(command.shape.type));
    for (const std::int64_t dim : command.shape.dims) text += fmt::format(" {}", dim);
    for (const float scalar : command.shape.scalars) text += fmt::format(" {:.3e}", scalar);
    for (const Access& access : step.accesses(id))
      text += fmt::format(" ({} {} {} {})", access.buffer, access.offset_bytes, access.size_bytes,
                          (access.reads ? 1 : 0) + (access.writes ? 2 : 0));
    for (const CommandId earlier : step.predecessors(id)) text += fmt::format(" <{}", earlier);
    text += '\n';
  }
  return text;
}

std::uint64_t fnv(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

TEST(StepDigest, is_the_same_from_every_compiler_and_on_every_machine) {
  for (const Workload& workload : workloads()) {
    std::string text;
    for (const Ranks ranks : {Ranks{0, 1}, Ranks{1, 2}}) {
      Params params(workload.params, Scale::tiny, {});
      params.ranks = ranks;
      text += text_of(workload.build(params, workload.streams.recommended));
    }
    const auto expected = kDigests.find(workload.name);
    EXPECT_EQ(fmt::format("{:#018x}", fnv(text)),
              fmt::format("{:#018x}", expected == kDigests.end() ? 0 : expected->second))
        << workload.name;
  }
}

}  // namespace
}  // namespace weir
