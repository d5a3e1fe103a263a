#include "lab/overlap/overlap_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "step/workload/workload.h"

namespace weir {
namespace {

OverlapConfig parsed(const std::string& text, int ranks = 1) { return parse_overlap_config(text, "my.yaml", ranks); }

std::string refusal(const std::string& text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return "";
}

bool has_note(const OverlapConfig& config, std::string_view part) {
  return std::any_of(config.notes.begin(), config.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(OverlapConfig, reads_sections_and_dotted_keys) {
  const OverlapConfig config = parsed("fsdp:\n  prefetch: 3\n  reshard_after_forward: false\nrun.device: cpu\n");
  EXPECT_EQ(config.integer("fsdp.prefetch"), 3);
  EXPECT_EQ(config.value("fsdp.reshard_after_forward"), "0");
  EXPECT_EQ(config.value("run.device"), "cpu");
  EXPECT_EQ(config.value("run.submit"), "inline");
  EXPECT_EQ(config.name, "my");
}

TEST(OverlapConfig, unknown_keys_are_errors_that_name_line_and_key) {
  EXPECT_EQ(refusal("fsdp:\n  prefech: 3\n"),
            "my.yaml:2: fsdp.prefech: unknown key 'fsdp.prefech' | Did you mean 'fsdp.prefetch'?");
  // A right name in the wrong place.
  EXPECT_NE(refusal("training:\n  prefetch: 1\n").find("Did you mean 'fsdp.prefetch'?"), std::string::npos);
  EXPECT_NE(refusal("nonsense:\n  at: all\n").find("--list"), std::string::npos);
}

TEST(OverlapConfig, values_must_fit) {
  EXPECT_NE(refusal("fsdp:\n  prefetch: many\n").find("fsdp.prefetch cannot be 'many'"), std::string::npos);
  EXPECT_NE(refusal("fsdp:\n  prefetch: 65\n").find("Use 0 to 64"), std::string::npos);
  EXPECT_NE(refusal("parallel:\n  mode: fsdb\n").find("Did you mean 'fsdp'?"), std::string::npos);
  EXPECT_NE(refusal("fsdp:\n  reshard_after_forward: 7\n").find("Use true or false."), std::string::npos);
  EXPECT_NE(refusal("fsdp:\n  prefetch: [1, 2]\n"), "");
  EXPECT_NE(refusal("- a list\n"), "");
  EXPECT_NE(refusal("network:\n  absent_rank: -2\n"), "");
  EXPECT_EQ(parsed("network:\n  absent_rank: -1\n").network().absent_rank, -1);
}

TEST(OverlapConfig, assignments_replace_values_and_sweeps) {
  OverlapConfig config = parsed("sweep:\n  fsdp.prefetch: [0, 1]\n");
  EXPECT_EQ(overlap_points(config).size(), 2u);
  config.assign("fsdp.prefetch=2", "--set");
  ASSERT_EQ(overlap_points(config).size(), 1u);
  EXPECT_EQ(config.integer("fsdp.prefetch"), 2);
  EXPECT_THROW(config.assign("fsdp.prefetch", "--set"), Error);
  EXPECT_THROW(config.assign("fsdp.nothing=1", "--set"), Error);
}

TEST(OverlapConfig, sweeps_are_all_combinations) {
  const OverlapConfig config = parsed("sweep:\n  fsdp.prefetch: [0, 1, 2]\n  run.hw_queues: [1, 4]\n");
  const std::vector<OverlapPoint> points = overlap_points(config);
  ASSERT_EQ(points.size(), 6u);
  std::set<std::vector<std::string>> seen;
  for (const OverlapPoint& point : points) seen.insert(point.assignments);
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(points[5].config.integer("fsdp.prefetch"), 2);
  EXPECT_EQ(points[5].config.integer("run.hw_queues"), 4);
  EXPECT_NE(refusal("sweep:\n  fsdp.prefetch: []\n"), "");
  EXPECT_NE(refusal("sweep:\n  fsdp.prefetch: [1, x]\n"), "");
}

TEST(OverlapConfig, what_does_nothing_is_said) {
  EXPECT_TRUE(parsed("fsdp:\n  prefetch: 1\n").idle_keys().empty());
  EXPECT_EQ(parsed("parallel:\n  mode: ddp\nfsdp:\n  prefetch: 1\n").idle_keys().size(), 1u);
  EXPECT_EQ(parsed("ddp:\n  bucket_kib: 1\n").idle_keys().size(), 1u);
  EXPECT_EQ(parsed("fsdp:\n  prefetch: 1\n  reshard_after_forward: false\n").idle_keys().size(), 1u);
}

TEST(OverlapConfig, a_sweep_names_each_point_once_and_no_ranks) {
  EXPECT_NE(refusal("sweep:\n  fsdp.prefetch: [1, 2, 1]\n").find("1 is swept already"), std::string::npos);
  EXPECT_NE(refusal("sweep:\n  fsdp.reshard_after_forward: [true, 1]\n").find("swept already"), std::string::npos);
  EXPECT_NE(refusal("sweep:\n  run.ranks: [1, 2]\n").find("--ranks"), std::string::npos);
}

TEST(OverlapConfig, errors_about_settings_become_errors_about_keys) {
  const OverlapConfig fsdp, ddp = parsed("parallel:\n  mode: ddp\n");
  const auto what = [](const OverlapConfig& config, const std::string& message, const std::string& setting = {}) {
    Error error(Fault::input, message);
    error.setting = setting;
    return std::string(config.in_keys(error).what());
  };
  EXPECT_EQ(what(fsdp, "param batch=8: world size = 3 does not divide it", "param"),
            "training.batch=8: world size = 3 does not divide it");
  EXPECT_EQ(what(fsdp, "Use batch=6 or 9, or another world size."),
            "Use training.batch=6 or 9, or another world size.");
  EXPECT_EQ(what(fsdp, "param bucket_kib=-1: out of range", "param"), "fsdp.bucket_kib=-1: out of range");
  EXPECT_EQ(what(ddp, "param bucket_kib=-1: out of range", "param"), "ddp.bucket_kib=-1: out of range");
  EXPECT_EQ(what(fsdp, "submit pigeon: use --streams 8", "submit"), "run.submit pigeon: use run.streams 8");
  EXPECT_EQ(what(fsdp, "precision fp8: unknown", "precision"), "training.precision fp8: unknown");
  EXPECT_EQ(what(fsdp, "--param batch=8, --submit pigeon"), "training.batch=8, run.submit pigeon");
  // Parts of other words stay what they are.
  EXPECT_EQ(what(fsdp, "training.batch=8, minibatch=8 and big_batch=8"),
            "training.batch=8, minibatch=8 and big_batch=8");
  EXPECT_EQ(what(fsdp, ""), "");
  EXPECT_EQ(fsdp.in_keys(Error(Fault::input, "no", "Use batch=6.")).hint, "Use training.batch=6.");
}

TEST(OverlapConfig, thrown_errors_are_rewritten_with_their_hints) {
  const auto in_keys = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      const Error named = OverlapConfig().in_keys(error);
      return fmt::format("{} | {}", named.what(), named.hint);
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(in_keys([] { reject_param("batch", std::int64_t{8}, "too small", "Use batch=9, or fewer --streams 8."); }),
            "training.batch=8: too small | Use training.batch=9, or fewer run.streams 8.");
  EXPECT_EQ(in_keys([] { reject_setting("precision", "fp16", "no", ""); }), "training.precision fp16: no | ");
  EXPECT_EQ(in_keys([] { parse_submit("pigeon:1"); }).find("run.submit pigeon:1: there is no such way"), 0u);
  EXPECT_EQ(in_keys([] { reject("a batch of eggs"); }), "a batch of eggs | ");
}

TEST(OverlapConfig, every_parameter_is_one_of_the_workload) {
  const Workload& workload = workload_named(kOverlapWorkload);
  OverlapConfig config;
  std::set<std::string> reached;
  for (const auto& [name, value] : config.request().params) reached.insert(name);
  for (const OverlapKey& key : overlap_keys())
    if (!key.param.empty()) reached.emplace(key.param);
  std::set<std::string> known;
  for (const ParamSpec& spec : workload.params) known.insert(spec.name);
  EXPECT_EQ(reached, known);
}

// AORTA's config/default.yaml, shortened; keys and values as they are there.
constexpr const char* kAorta = R"(
logging:
  level: INFO
training:
  epochs: 1
  batch_size: 8
  gradient_accumulation: 4
  mixed_precision: bf16
  grad_clip_norm: 1.0
  max_steps: 200
  output_dir: artifacts
optimizer:
  lr: 0.0003
  weight_decay: 0.01
  betas: [0.9, 0.98]
dataset:
  sparse_features: 32
  seed: 42
model:
  vocab_size: 60000
  embedding_dim: 192
  model_dim: 768
  num_heads: 12
  num_layers: 8
  mlp_hidden_dim: 2048
fsdp:
  sharding_strategy: full_shard
  backward_prefetch: BACKWARD_PRE
  forward_prefetch: true
  param_init_device: cpu
distributed:
  mode: fsdp
  enable_overlap: true
)";

TEST(OverlapConfig, aorta_keys_with_a_meaning_are_translated) {
  const OverlapConfig config = parsed(kAorta, 4);
  EXPECT_EQ(config.integer("training.batch"), 32);  // 8 on each of 4 ranks
  EXPECT_EQ(config.value("training.precision"), "bf16");
  EXPECT_EQ(config.integer("model.layers"), 8);
  EXPECT_EQ(config.integer("model.dim"), 768);
  EXPECT_EQ(config.integer("model.sparse"), 32);
  EXPECT_EQ(config.integer("training.seed"), 42);
  EXPECT_EQ(config.integer("fsdp.prefetch"), 1);
  EXPECT_EQ(config.value("fsdp.reshard_after_forward"), "1");
  EXPECT_EQ(config.integer("run.iterations"), 200);
  EXPECT_EQ(config.value("optimizer.betas"), "0.9,0.98");
}

TEST(OverlapConfig, aorta_keys_without_one_are_named) {
  const OverlapConfig config = parsed(kAorta, 4);
  EXPECT_TRUE(has_note(config, "distributed.enable_overlap: AORTA never read it"));
  EXPECT_TRUE(has_note(config, "training.gradient_accumulation: AORTA read it and never used it"));
  EXPECT_TRUE(has_note(config, "fsdp.param_init_device: AORTA never read it"));
  EXPECT_TRUE(has_note(config, "model.embedding_dim"));
  EXPECT_EQ(config.value("training.accumulation"), "");
}

TEST(OverlapConfig, aorta_strategies) {
  const std::string head = "logging:\n  level: INFO\nfsdp:\n  sharding_strategy: ";
  EXPECT_EQ(parsed(head + "SHARD_GRAD_OP\n").value("fsdp.reshard_after_forward"), "0");
  EXPECT_TRUE(parsed(head + "no_shard\n").is_ddp());
  EXPECT_NE(refusal(head + "sideways\n").find("no counterpart"), std::string::npos);
  EXPECT_EQ(parsed(head + "HYBRID_SHARD\n").value("fsdp.shard_group"), "node");
  EXPECT_EQ(parsed(head + "hybrid_shard\n").value("fsdp.reshard_after_forward"), "1");
  const OverlapConfig zero2 = parsed(head + "_hybrid_shard_zero2\n  hybrid_shard_gpus_per_node: 2\n");
  EXPECT_EQ(zero2.value("fsdp.shard_group"), "2");
  EXPECT_EQ(zero2.value("fsdp.reshard_after_forward"), "0");
  EXPECT_NE(refusal("fsdp:\n  shard_group: host\n").find("fsdp.shard_group cannot be 'host'"), std::string::npos);
  // Whatever comes first in the file.
  const OverlapConfig group_first =
      parsed("logging:\n  level: INFO\nfsdp:\n  hybrid_shard_gpus_per_node: 2\n  sharding_strategy: hybrid_shard\n");
  EXPECT_EQ(group_first.value("fsdp.shard_group"), "2");
  EXPECT_FALSE(has_note(group_first, "not taken: fsdp.hybrid_shard_gpus_per_node"));
  EXPECT_TRUE(parsed(head + "no_shard\ndistributed:\n  mode: fsdp\n").is_ddp());
  EXPECT_TRUE(parsed("distributed:\n  mode: ddp\nfsdp:\n  sharding_strategy: full_shard\n").is_ddp());
}

TEST(OverlapConfig, profiler_schedules_are_those_of_pytorch) {
  EXPECT_EQ(parsed("run:\n  traced: 5\n").trace_schedule().iterations(), 6);
  const OverlapConfig config = parsed("profiling:\n  wait: 2\n  warmup: 1\n  active: 3\n  repeat: 2\n");
  const TraceSchedule schedule = config.trace_schedule();
  std::vector<int> kept;
  for (int i = 0; i < schedule.iterations(); ++i)
    if (schedule.keeps(i)) kept.push_back(i);
  EXPECT_EQ(kept, (std::vector<int>{3, 4, 5, 9, 10, 11}));
  // Without an end it goes on as long as there are steps.
  EXPECT_EQ(parsed("profiling:\n  active: 3\n  repeat: 0\nrun:\n  iterations: 13\n").trace_schedule().repeat, 3);
  EXPECT_EQ(parsed("profiling:\n  active: 30\n  repeat: 0\nrun:\n  iterations: 13\n").trace_schedule().repeat, 1);
  EXPECT_THROW(parsed("profiling:\n  wait: 9000\n  repeat: 2\n").trace_schedule(), Error);
  EXPECT_EQ(parsed("profiling:\n  active: 3\nrun:\n  traced: 4\n").idle_keys().size(), 1u);
  // A profiler that is off in AORTA's file says nothing about ours.
  const std::string theirs = "logging:\n  level: INFO\nprofiling:\n  active: 2\n  wait: 1\n  enabled: ";
  EXPECT_EQ(parsed(theirs + "true\n").trace_schedule().iterations(), 4);
  EXPECT_EQ(parsed(theirs + "false\n").trace_schedule().iterations(), 11);
  EXPECT_TRUE(has_note(parsed(theirs + "false\n"), "not taken: profiling: it is off"));
}

TEST(OverlapConfig, optimizer_and_schedule_have_their_keys) {
  const auto param = [](const OverlapConfig& config, std::string_view name) {
    for (const auto& [key, value] : config.request().params)
      if (key == name) return value;
    return std::string();
  };
  const OverlapConfig config =
      parsed("optimizer:\n  betas: [0.9, 0.95]\n  eps: 1e-6\nscheduler:\n  warmup_steps: 5\n  total_steps: 50\n");
  EXPECT_EQ(param(config, "beta1"), "0.9");
  EXPECT_EQ(param(config, "beta2"), "0.95");
  EXPECT_EQ(param(config, "epsilon"), "1e-6");
  EXPECT_EQ(param(config, "warmup_steps"), "5");
  EXPECT_EQ(param(config, "total_steps"), "50");
  EXPECT_TRUE(config.idle_keys().empty());
  EXPECT_EQ(parsed("scheduler:\n  warmup_steps: 5\n").idle_keys().size(), 1u);
  OverlapConfig changed = config;
  changed.assign("optimizer.betas=[0.8, 0.9]", "--set");
  EXPECT_EQ(changed.value("optimizer.betas"), "0.8,0.9");
  for (const char* bad : {"0.9", "0.9,1", "[0.9, 0.95, 0.99]", "[]", "0.9;0.95"})
    EXPECT_THROW(changed.assign(std::string("optimizer.betas=") + bad, "--set"), Error) << bad;
}

std::string refused_assignment(OverlapConfig config, const std::string& text) {
  try {
    config.assign(text, "--set");
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return "";
}

TEST(OverlapConfig, aorta_keys_can_be_assigned_under_their_own_names) {
  OverlapConfig theirs = parsed(kAorta, 4), ours = parsed("parallel:\n  mode: ddp\nfsdp:\n  prefetch: 2\n", 4);
  for (OverlapConfig* config : {&theirs, &ours})
    for (const char* text : {"training.max_steps=5", "fsdp.sharding_strategy=shard_grad_op", "optimizer.lr=1e-3",
                             "training.batch_size=2", "training.mixed_precision=none", "model.num_layers=3"})
      config->assign(text, "--set");
  for (const OverlapConfig& config : {theirs, ours}) {
    EXPECT_EQ(config.integer("run.iterations"), 5);
    EXPECT_EQ(config.value("parallel.mode"), "fsdp");
    EXPECT_EQ(config.value("fsdp.reshard_after_forward"), "0");
    EXPECT_DOUBLE_EQ(config.number("training.rate"), 1e-3);
    EXPECT_EQ(config.integer("training.batch"), 8) << "of all 4 ranks";
    EXPECT_EQ(config.value("training.precision"), "fp32");
    EXPECT_EQ(config.integer("model.layers"), 3);
  }
  // Both kinds of prefetch are one here: what the file says of the other still counts.
  EXPECT_EQ(ours.integer("fsdp.prefetch"), 2);
  theirs.assign("fsdp.forward_prefetch=false", "--set");
  EXPECT_EQ(theirs.integer("fsdp.prefetch"), 1);
  theirs.assign("fsdp.backward_prefetch=BACKWARD_POST", "--set");
  EXPECT_EQ(theirs.integer("fsdp.prefetch"), 0);
}

TEST(OverlapConfig, aorta_keys_without_a_counterpart_say_why) {
  const std::string refusal = refused_assignment({}, "model.embedding_dim=192");
  EXPECT_EQ(refusal.find("--set model.embedding_dim=192: AORTA's key has no counterpart here: embeddings are as wide"),
            0u)
      << refusal;
  EXPECT_NE(refused_assignment({}, "training.gradient_accumulation=4").find("training.accumulation"),
            std::string::npos);
  EXPECT_NE(refused_assignment({}, "training.batch_size=many").find("not a batch size"), std::string::npos);
  EXPECT_NE(refused_assignment({}, "training.mixed_precision=int8").find("training.precision cannot be"),
            std::string::npos);
  EXPECT_NE(refused_assignment({}, "distributed.mode=tp").find("Use fsdp or ddp"), std::string::npos);
}

TEST(OverlapConfig, aorta_values_may_be_null) {
  const OverlapConfig config = parsed(
      "logging:\n  level: INFO\ntraining:\n  grad_clip_norm: null\n"
      "  mixed_precision: bfloat16\nprecision:\n  param_dtype: null\n");
  EXPECT_TRUE(config.has("training.clip"));
  EXPECT_EQ(config.number("training.clip"), 0);
  EXPECT_EQ(config.value("training.precision"), "bf16") << "param_dtype says nothing";
}

TEST(OverlapConfig, aorta_may_skip_its_warmup) {
  const std::string head = "logging:\n  level: INFO\nfsdp:\n";
  EXPECT_EQ(parsed(head + "  skip_training_warmup: true\n  training_warmup_steps: 4\n").integer("run.warmup"), 0);
  EXPECT_EQ(parsed(head + "  training_warmup_steps: 4\n  skip_training_warmup: true\n").integer("run.warmup"), 0);
  EXPECT_EQ(parsed(head + "  training_warmup_steps: 4\n  skip_training_warmup: false\n").integer("run.warmup"), 4);
  EXPECT_EQ(parsed(head + "  skip_training_warmup: false\n").integer("run.warmup"), 3) << "ours";
  const OverlapConfig races = parsed(head + "  skip_rccl_warmup: true\ntraining:\n  race_window_us: 5\n");
  EXPECT_TRUE(has_note(races, "fsdp.skip_rccl_warmup: communicators are always made before"));
  EXPECT_TRUE(has_note(races, "training.race_window_us: races are not injected"));
  EXPECT_TRUE(has_note(parsed(head + "  forward_prefetch: true\nscheduler:\n  name: x\n"),
                       "scheduler.name: AORTA never read it"));
}

TEST(OverlapConfig, what_shards_nothing_needs_no_group) {
  for (const char* const group : {"node", "3"}) {
    const OverlapConfig config =
        parsed(std::string("parallel:\n  mode: ddp\nfsdp:\n  shard_group: ") + group + "\n", 2);
    const RunRequest request = config.request();
    const auto found = std::find_if(request.params.begin(), request.params.end(),
                                    [](const auto& param) { return param.first == "shard_group"; });
    ASSERT_NE(found, request.params.end());
    EXPECT_EQ(found->second, "0");
  }
  const Workload& workload = workload_named(kOverlapWorkload);
  const std::vector<std::pair<std::string, std::string>> given = {{"mode", "ddp"}, {"shard_group", "4"}};
  Params params(workload.params, Scale::tiny, given);
  params.ranks = {0, 2};
  EXPECT_NO_THROW(workload.build(params, 4));
}

TEST(OverlapConfig, queues_are_set_in_one_way_only) {
  for (const char* const queues : {"run:\n  hw_queues: 4\n", "sweep:\n  run.hw_queues: [0, 4]\n"})
    for (const char* const name : {"CUDA_DEVICE_MAX_CONNECTIONS", "GPU_MAX_HW_QUEUES"}) {
      const OverlapConfig config = parsed(fmt::format("{}env:\n  {}: [1, 8]\n", queues, name));
      EXPECT_THROW(overlap_points(config), Error) << queues << name;
    }
  EXPECT_EQ(overlap_points(parsed("env:\n  GPU_MAX_HW_QUEUES: [1, 8]\n")).size(), 2u);
}

TEST(OverlapConfig, long_names_of_folders_differ) {
  OverlapConfig config;
  const std::string text(300, 'x');
  config.variables = {{"A", {text + "1", text + "2", "short"}}};
  const std::vector<OverlapPoint> points = overlap_points(config);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_NE(points[0].folder_name(), points[1].folder_name());
  EXPECT_LT(points[1].folder_name().size(), 255u);
  EXPECT_EQ(points[2].folder_name(), "A=short");
  EXPECT_EQ(overlap_points({}).at(0).folder_name(), "");
}

TEST(OverlapConfig, an_assigned_aorta_key_is_no_longer_swept) {
  OverlapConfig config = parsed("sweep:\n  training.rate: [0.1, 0.2]\n");
  config.assign("optimizer.lr=0.5", "--set");
  ASSERT_EQ(overlap_points(config).size(), 1u);
  EXPECT_DOUBLE_EQ(config.number("training.rate"), 0.5);
}

TEST(OverlapConfig, our_files_may_use_names_of_aorta) {
  const OverlapConfig config = parsed("run:\n  device: cpu\noptimizer:\n  lr: 0.5\nlogging:\n  level: INFO\n", 2);
  EXPECT_DOUBLE_EQ(config.number("training.rate"), 0.5);
  EXPECT_TRUE(has_note(config, "not taken: logging.level"));
  // But what is neither's is an error there.
  EXPECT_NE(refusal("run:\n  device: cpu\noptimizer:\n  momentum: 0.5\n").find("unknown key"), std::string::npos);
}

// A name that both have means the same: AORTA's table has it as it is, or not at all.
TEST(OverlapConfig, no_name_of_aorta_means_something_else_here) {
  for (const std::string_view key : aorta_keys()) {
    AortaValues given;
    given[std::string(key)] = "1";
    EXPECT_FALSE(is_overlap_key(key)) << key << ": it is read as ours";
  }
}

TEST(OverlapConfig, ready_configs_are_good) {
  std::size_t count = 0;
  for (const char* const name :
       {"default", "distributed", "ddp", "prefetch_sweep", "queue_starved", "small_buckets", "slow_network", "hang"}) {
    const std::filesystem::path path =
        std::filesystem::path(WEIR_SOURCE_DIR) / "config" / (std::string(name) + ".yaml");
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    std::ostringstream text;
    text << file.rdbuf();
    const OverlapConfig config = parse_overlap_config(text.str(), path.string(), 2);
    EXPECT_TRUE(config.idle_keys().empty()) << name;
    for (const OverlapPoint& point : overlap_points(config)) EXPECT_FALSE(point.config.request().params.empty());
    ++count;
  }
  EXPECT_EQ(count, 8u);
}

// Whatever stands in a file: an Error or a config, never anything else.
TEST(OverlapConfig, mutated_files_are_rejected_or_read) {
  const std::string good = std::string(kAorta) + "run:\n  device: cpu\n";
  std::uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    std::string text =
        i % 2 == 0 ? good : "fsdp:\n  prefetch: 1\nsweep:\n  fsdp.prefetch: [1, 2]\nrun:\n  device: cpu\n";
    for (int j = 0; j < 3; ++j) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text[(state >> 33) % text.size()] = static_cast<char>(state >> 20);
    }
    try {
      const OverlapConfig config = parsed(text);
      for (const OverlapPoint& point : overlap_points(config)) point.config.request();
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace weir
