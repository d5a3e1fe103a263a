#include "trace/import/import.h"

#include "trace/archive_testing.h"
#include "trace/importer_testing.h"

namespace weir {
namespace {

std::string kineto(const char* name) {
  return std::string("{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"") + name +
         "\", \"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 2, \"args\": {\"device\": 0, \"stream\": 7}}]}";
}

const std::string kKernels = "Kind,Agent_Id,Queue_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp\n";
const std::string kCalls = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n";

ImportedTrace only(const ScratchFolder& folder, const char* name, const std::string& text,
                   const ImportOptions& options = {}) {
  auto traces = import_traces({folder.write(name, text)}, options);
  EXPECT_EQ(traces.size(), 1U);
  return std::move(traces.at(0));
}

std::string rejection(const ScratchFolder& folder, const char* name, const std::string& text,
                      const ImportOptions& options = {}) {
  try {
    import_traces({folder.write(name, text)}, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return std::string(error.what()) + "\n" + error.hint;
  }
  return "not rejected";
}

TEST(Import, kernels_that_communicate_are_known_by_name) {
  const std::pair<const char*, CollectiveKind> names[] = {
      {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*)", CollectiveKind::all_reduce},
      {"_ZN5aiter26cross_device_reduce_2stageIDF16bLi8ELb0EEEv", CollectiveKind::all_reduce},
      {"void one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>", CollectiveKind::all_reduce},
      {"void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**)",
       CollectiveKind::all_reduce},
      {"multimem_all_reduce_kernel", CollectiveKind::all_reduce},
      {"void tensorrt_llm::kernels::oneShotAllReduceKernel<half>", CollectiveKind::all_reduce},
      {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(P)1, half>(Params)",
       CollectiveKind::all_reduce},
      {"deep_ep::intranode::dispatch<8, 768, 8192>", CollectiveKind::all_to_all},
      {"_ZN7deep_ep12internode_ll7combineILb0EEEvPv", CollectiveKind::all_to_all},
      {"nvshmemi_transfer", CollectiveKind::unknown},
      {"void pplx::combineKernel", CollectiveKind::all_to_all},
      {"mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)", CollectiveKind::unknown},
      {"ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_f32", CollectiveKind::all_reduce},
      {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind::reduce_scatter},
  };
  for (const auto& [name, kind] : names) {
    const Timeline timeline = import_as("kineto", kineto(name));
    ASSERT_EQ(timeline.spans.size(), 1U) << name;
    EXPECT_EQ(timeline.spans[0].kind, SpanKind::collective) << name;
    ASSERT_EQ(timeline.collectives.size(), 1U) << name;
    EXPECT_EQ(timeline.collectives[0].kind, kind) << name;
    EXPECT_TRUE(timeline.notes.empty()) << name;
  }
}

TEST(Import, the_documentation_lists_all_names) {
  std::ifstream file(std::filesystem::path(WEIR_SOURCE_DIR) / "docs" / "traces.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const CollectiveName& name : collective_names())
    EXPECT_NE(text.find("| `" + std::string(name.part) + "` | " + std::string(name.source)), std::string::npos)
        << name.part;
}

TEST(Import, arguments_of_a_kernel_do_not_make_it_communicate) {
  for (const char* name : {"void at::native::elementwise_kernel<4, ncclOp>(ncclComm*)",
                           "deep_ep::layout::get_dispatch_layout<8>", "void moe::combine<float>(nvshmem_team)",
                           "moeA2ASanitizeExpertIds", "gemm", "void each<decltype(a->b), ncclOp>(int)"}) {
    const Timeline timeline = import_as("kineto", kineto(name));
    EXPECT_EQ(timeline.spans.at(0).kind, SpanKind::kernel) << name;
    EXPECT_TRUE(timeline.notes.empty()) << name;
  }
}

TEST(Import, a_name_that_merely_looks_like_communication_is_noted) {
  const Timeline timeline = import_as("kineto", kineto("triton_poi_fused_add_all_reduce_0"));
  EXPECT_EQ(timeline.spans.at(0).kind, SpanKind::kernel);
  ASSERT_EQ(timeline.notes.size(), 1U);
  EXPECT_NE(timeline.notes[0].find("triton_poi_fused_add_all_reduce_0"), std::string::npos);
  EXPECT_NE(timeline.notes[0].find("--collective"), std::string::npos);
}

TEST(Import, users_say_which_kernels_communicate) {
  ImportOptions options;
  options.format = "kineto";
  options.collectives = {"comm::*push"};
  const auto kind_of = [&](const char* name) {
    return import_memory(kineto(name), "test", options).timeline.spans.at(0).kind;
  };
  EXPECT_EQ(kind_of("void my::comm::ring::push<8>(int*)"), SpanKind::collective);
  EXPECT_EQ(kind_of("void my::comm::ring::pull<8>(int*)"), SpanKind::kernel);
  const Timeline missed = import_memory(kineto("gemm"), "test", options).timeline;
  ASSERT_EQ(missed.notes.size(), 1U);
  EXPECT_EQ(missed.notes[0], "--collective comm::*push: no command has such a name.");
}

TEST(Import, patterns_have_parts_in_order) {
  EXPECT_TRUE(matches_pattern("b", "abc"));
  EXPECT_TRUE(matches_pattern("a*c", "abc"));
  EXPECT_TRUE(matches_pattern("*c", "abc"));
  EXPECT_TRUE(matches_pattern("a*", "abc"));
  EXPECT_FALSE(matches_pattern("c*a", "abc"));
  EXPECT_FALSE(matches_pattern("abcd", "abc"));
}

TEST(Import, packed_members_of_an_archive_are_unpacked) {
  ScratchFolder folder;
  const ImportedTrace trace =
      only(folder, "ranks.tar",
           tar_member("rank0.json.gz", gzip(kineto("a"))) + tar_member("rank1.json", kineto("b")) +
               tar_member("README", "no trace") + std::string(1024, '\0'));
  EXPECT_EQ(trace.timeline.spans.size(), 2U);
  EXPECT_EQ(trace.files.size(), 2U);
  EXPECT_EQ(dropped(trace.timeline, "not a trace"), 1U);
}

TEST(Import, a_file_damaged_at_its_beginning_is_not_called_empty) {
  ScratchFolder folder;
  std::string packed = gzip(kineto("a"));
  packed.resize(12);
  EXPECT_NE(rejection(folder, "cut.json.gz", packed).find("ends in the middle"), std::string::npos);
}

TEST(Import, captures_in_an_archive_stay_apart) {
  ScratchFolder folder;
  const ImportedTrace trace = only(
      folder, "out.tar",
      tar_member("1_kernel_trace.csv", kKernels + "KERNEL_DISPATCH,4,1,k,1,100,200\n") +
          tar_member("1_hip_api_trace.csv", kCalls + "HIP,hipLaunchKernel,1,1,1,50,60\n") +
          tar_member("2_kernel_trace.csv", kKernels + "KERNEL_DISPATCH,4,1,k,1,100,200\n") +
          tar_member("2_hip_api_trace.csv", kCalls + "HIP,hipLaunchKernel,1,1,1,70,80\n") + std::string(1024, '\0'));
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.processes.size(), 2U);
  ASSERT_EQ(timeline.spans.size(), 2U);
  // Both use correlation 1, each for its own.
  EXPECT_NE(timeline.spans[0].submitted_ns, timeline.spans[1].submitted_ns);
}

TEST(Import, an_archive_that_ends_early_says_so) {
  ScratchFolder folder;
  const std::string archive = tar_member("a.json", kineto("a")) + tar_member("b.txt", std::string(5000, 'x'));
  const ImportedTrace trace = only(folder, "cut.tar", archive.substr(0, 3000));
  EXPECT_EQ(trace.timeline.spans.size(), 1U);
  EXPECT_EQ(dropped(trace.timeline, "archive ends in the middle"), 1U);
  EXPECT_NE(rejection(folder, "none.tar", tar_member("a.txt", "text")).find("no trace in it (1 other"),
            std::string::npos);
}

// A million members that are no traces cost neither memory nor much time.
TEST(Import, strangers_in_an_archive_are_not_kept) {
  ScratchFolder folder;
  std::string archive = tar_member("a.json", kineto("a"));
  const std::string stranger = tar_member("x", "");
  for (int i = 0; i < 100'000; ++i) archive += stranger;
  ImportOptions options;
  options.limits.memory_bytes = 1 << 20;
  const ImportedTrace trace = only(folder, "many.tar.gz", gzip(archive), options);
  EXPECT_EQ(dropped(trace.timeline, "not a trace"), 100'000U);
}

TEST(Import, the_limit_is_on_all_traces_together) {
  ScratchFolder folder;
  std::string rows = kKernels;
  for (int i = 0; i < 2000; ++i) rows += "KERNEL_DISPATCH,4,1,k,1,100,200\n";
  std::vector<std::filesystem::path> paths;
  for (const char* name : {"a_kernel_trace.csv", "b_kernel_trace.csv", "c_kernel_trace.csv"})
    paths.push_back(folder.write(name, rows));
  ImportOptions options;
  options.limits.memory_bytes = 1'000'000;  // one takes about half of it
  EXPECT_EQ(import_traces({paths[0]}, options).size(), 1U);
  EXPECT_THROW(import_traces(paths, options), Error);
}

#if WEIR_HAVE_SQLITE
TEST(Import, a_database_that_unpacks_without_end_is_refused_with_the_figure) {
  ScratchFolder folder;
  std::string bomb("SQLite format 3\0", 16);
  bomb.resize(std::size_t{64} << 20);
  ImportOptions options;
  options.limits.memory_bytes = 16 << 20;
  EXPECT_NE(rejection(folder, "bomb.sqlite.gz", gzip(bomb), options).find("16.0 MiB"), std::string::npos);
}
#endif

}  // namespace
}  // namespace weir
