// AORTA's names: what its keys mean here, or why they mean nothing. One table, for its files and for --set. AORTA
// silently accepts unknown keys, so its files contain keys that it never read.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/options.h"
#include "lab/overlap/overlap_config.h"

namespace weir {
namespace {

constexpr const char* kNeverRead = "AORTA never read it";
constexpr const char* kNothing = "nothing here corresponds to it";
constexpr const char* kTraced = "every run is traced";
constexpr const char* kHang = "config/hang.yaml reproduces a hang";
constexpr const char* kNoRaces = "races are not injected here";
constexpr std::string_view kRace = "training.race_";  // all keys that begin so
constexpr std::int64_t kMax = 1'000'000'000;          // limit of every factor, so that no product overflows

struct Translation {
  std::string_view aorta;
  std::string_view ours;         // empty: not supported, or `meaning` says
  std::string_view reason = {};  // why not
};

// As of AORTA's fsdp_trainer.py, 2026: the dataclasses that it fills, and the fields that its loop uses. None of its
// names is one of ours with another meaning: what both have (optimizer.betas, scheduler.*) is ours, and not listed.
constexpr Translation kTranslations[] = {
    {"training.batch_size", "training.batch"},
    {"training.gradient_accumulation", "",
     "AORTA read it and never used it: every step had one micro-batch (training.accumulation is used)"},
    {"training.mixed_precision", "training.precision"},
    {"training.grad_clip_norm", "training.clip"},
    {"training.max_steps", "run.iterations"},
    {"training.epochs", "", "steps are counted, not epochs (run.iterations)"},
    {"training.log_interval", "", "every step is written to rank_NN.jsonl"},
    {"training.output_dir", "", "say it with -o"},
    {"training.inject_allreduce_copies", "", kHang},
    {"training.allreduce_stress_level", "", kHang},
    {kRace, "", kNoRaces},
    {"precision.param_dtype", "training.precision"},
    {"precision.reduce_dtype", "", "reductions have training.precision"},
    {"precision.buffer_dtype", "", "the model has no buffers"},
    {"precision.tf32_mode", "", "tf32 is a training.precision"},
    {"loss.name", "", "it is a weighted binary cross entropy"},
    {"optimizer.name", "", "it is AdamW"},
    {"optimizer.lr", "training.rate"},
    {"optimizer.weight_decay", "training.decay"},
    {"model.vocab_size", "model.vocab"},
    {"model.model_dim", "model.dim"},
    {"model.num_heads", "model.heads"},
    {"model.num_layers", "model.layers"},
    {"model.mlp_hidden_dim", "model.mlp"},
    {"model.dense_dim", "model.dense"},
    {"model.embedding_dim", "", "embeddings are as wide as the model here"},
    {"model.num_dense_features", "", "dense features are one token here"},
    {"dataset.sparse_features", "model.sparse"},
    {"dataset.seed", "training.seed"},
    {"dataset.vocab_size", "", "model.vocab_size is taken"},
    {"dataset.dense_dim", "", "model.dense_dim is taken"},
    {"dataset.num_dense_features", "", "dense features are one token here"},
    {"dataset.sequence_length", "", "a sample's tokens are its sparse features and one of the dense ones"},
    {"dataset.num_samples", "", "one batch is used again and again"},
    {"dataloader.num_workers", "", "the batch is in host memory before the run"},
    {"dataloader.pin_memory", "", "the batch is always in pinned host memory"},
    {"fsdp.sharding_strategy", "parallel.mode"},
    {"fsdp.backward_prefetch", "fsdp.prefetch"},
    {"fsdp.forward_prefetch", "fsdp.prefetch"},
    {"fsdp.hybrid_shard_gpus_per_node", "fsdp.shard_group"},
    {"fsdp.limit_all_gathers", "", "fsdp.prefetch limits them"},
    {"fsdp.use_orig_params", "", "a matter of PyTorch's"},
    {"fsdp.sync_module_states", "", "all ranks begin with the same parameters"},
    {"fsdp.param_init_device", "", kNeverRead},
    {"fsdp.rccl_warmup_iterations", "", "communicators are made before the run.warmup steps"},
    {"fsdp.skip_rccl_warmup", "", "communicators are always made before the run.warmup steps"},
    {"fsdp.training_warmup_steps", "run.warmup"},
    {"fsdp.skip_training_warmup", "run.warmup"},
    {"distributed.mode", "parallel.mode"},
    {"distributed.bucket_cap_mb", "ddp.bucket_kib"},
    {"distributed.gradient_as_bucket_view", "", "gradients are always written into their buckets"},
    {"distributed.static_graph", "", "a step is always the same"},
    {"distributed.find_unused_parameters", "", "there are none"},
    {"distributed.enable_overlap", "", kNeverRead},
    {"distributed.overlap_reduce_scatter", "", kNeverRead},
    {"distributed.overlap_clone_for_reduce_scatter", "", kNeverRead},
    {"compile.enabled", "", kNothing},
    {"compile.backend", "", kNothing},
    {"compile.mode", "", kNothing},
    {"compile.fullgraph", "", kNothing},
    {"compile.dynamic", "", kNothing},
    {"compile.options", "", kNothing},
    {"profiling.enabled", "", kTraced},
    {"profiling.chrome_trace", "", "trace.json is always written"},
    {"profiling.trace_filename", "", "it is trace.json"},
    {"profiling.record_shapes", "", kNothing},
    {"profiling.profile_memory", "", kNothing},
    {"profiling.with_stack", "", kNothing},
    {"profiling.with_flops", "", kNothing},
    {"profiling.tensorboard", "", kNothing},
    {"logging.level", "", kNothing},
};

// Sections that only AORTA's files have, and those that only ours have.
constexpr std::string_view kTheirSections[] = {"logging", "dataset", "dataloader", "distributed", "compile"};
constexpr std::string_view kOurSections[] = {"run", "network", "parallel", "ddp", "sweep", "description"};

constexpr std::pair<std::string_view, std::string_view> kPrecisions[] = {
    {"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"}};

const Translation* find_translation(std::string_view key) {
  const auto found = std::find_if(std::begin(kTranslations), std::end(kTranslations), [&](const auto& t) {
    return t.aorta == key || (t.aorta == kRace && key.starts_with(kRace));
  });
  return found == std::end(kTranslations) ? nullptr : found;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::int64_t count_of(const std::string& value, std::int64_t lowest, const char* wanted, const std::string& where) {
  const auto count = parse_integer(value);
  if (!count || *count < lowest || *count > kMax)
    reject(fmt::format("{}: '{}' is not {}", where, shown(value), wanted));
  return *count;
}

std::string given_or(const AortaValues& given, std::string_view key, std::string_view otherwise) {
  const auto found = given.find(key);
  return lower(found == given.end() ? std::string(otherwise) : found->second);
}

constexpr std::string_view kSkipsWarmup = "fsdp.skip_training_warmup";
constexpr std::string_view kPerNode = "fsdp.hybrid_shard_gpus_per_node";
bool is_hybrid_shard(std::string_view strategy) {
  return strategy == "hybrid_shard" || strategy == "_hybrid_shard_zero2";
}

// How parameters are spread: the strategy counts where the mode is not DDP.
std::vector<OverlapSetting> sharding_of(const AortaValues& given, const std::string& where) {
  const std::string mode = given_or(given, "distributed.mode", "fsdp");
  if (mode != "fsdp" && mode != "ddp")
    reject(fmt::format("{}: the mode '{}' has no counterpart here", where, shown(mode)), "Use fsdp or ddp.");
  const std::string strategy = given_or(given, "fsdp.sharding_strategy", "");
  if (strategy.empty()) return {{"parallel.mode", mode}};
  if (strategy == "no_shard") return {{"parallel.mode", "ddp"}};
  const bool is_hybrid = is_hybrid_shard(strategy);
  if (strategy != "full_shard" && strategy != "shard_grad_op" && !is_hybrid)
    reject(fmt::format("{}: the strategy '{}' has no counterpart here", where, shown(strategy)),
           "Use full_shard, shard_grad_op, hybrid_shard, _hybrid_shard_zero2 or no_shard.");
  if (mode == "ddp") return {{"parallel.mode", mode}};
  const bool reshards = strategy == "full_shard" || strategy == "hybrid_shard";
  const std::string group = given_or(given, kPerNode, "null");
  return {{"parallel.mode", mode},
          {"fsdp.reshard_after_forward", reshards ? "true" : "false"},
          {"fsdp.shard_group", !is_hybrid                         ? "0"
                               : group == "null" || group.empty() ? "node"
                                                                  : group}};
}

}  // namespace

std::optional<AortaMeaning> aorta_meaning(const std::string& key, const AortaValues& given, int ranks,
                                          const std::string& where) {
  const Translation* const known = find_translation(key);
  if (known == nullptr) return std::nullopt;
  if (!known->reason.empty()) return AortaMeaning{{}, std::string(known->reason)};
  const std::string value = given_or(given, key, "");
  const auto as = [&](std::string text) { return AortaMeaning{{{std::string(known->ours), std::move(text)}}, {}}; };
  if (value.empty() || value == "null" || value == "none") {
    if (key == "training.mixed_precision") return as("fp32");
    if (key == "training.grad_clip_norm") return as("0");
    return AortaMeaning{{}, "it has no value"};
  }
  if (key == "training.batch_size") return as(std::to_string(count_of(value, 1, "a batch size", where) * ranks));
  if (key == "distributed.bucket_cap_mb") return as(std::to_string(count_of(value, 0, "a size", where) * 1024));
  if (known->ours == "run.warmup") {
    if (given_or(given, kSkipsWarmup, "") == "true") return as("0");
    if (key != kSkipsWarmup) return as(value);
    const std::string steps = given_or(given, "fsdp.training_warmup_steps", "");
    return parse_integer(steps) ? as(steps) : AortaMeaning{{}, "run.warmup steps come first"};
  }
  if (known->ours == "fsdp.prefetch") {
    const bool is_prefetching = given_or(given, "fsdp.backward_prefetch", "") == "backward_pre" ||
                                given_or(given, "fsdp.forward_prefetch", "") == "true";
    return as(is_prefetching ? "1" : "0");
  }
  if (key == kPerNode && !is_hybrid_shard(given_or(given, "fsdp.sharding_strategy", "")))
    return AortaMeaning{{}, "it counts with fsdp.sharding_strategy: hybrid_shard"};
  if (known->ours == "parallel.mode" || key == kPerNode) return AortaMeaning{sharding_of(given, where), {}};
  if (known->ours == "training.precision")
    for (const auto& [theirs, ours] : kPrecisions)
      if (value == theirs) return as(std::string(ours));
  return as(value);
}

std::vector<std::string_view> aorta_keys() {
  std::vector<std::string_view> keys;
  for (const Translation& each : kTranslations) keys.push_back(each.aorta);
  return keys;
}

bool is_aorta_config(const YamlNode& root) {
  if (root.kind != YamlNode::Kind::map) return false;
  const auto has = [&](std::string_view section) { return root.find(section) != nullptr; };
  if (std::any_of(std::begin(kOurSections), std::end(kOurSections), has)) return false;
  if (std::any_of(std::begin(kTheirSections), std::end(kTheirSections), has)) return true;
  for (const YamlNode& section : root.items)
    if (section.kind == YamlNode::Kind::map)
      for (const YamlNode& item : section.items) {
        const std::string key = fmt::format("{}.{}", section.key, item.key);
        if (find_translation(key) != nullptr && !is_overlap_key(key)) return true;
      }
  return false;
}

std::string_view why_aorta_leaves_out(std::string_view section) {
  for (const std::string_view unread : {"logging", "dataloader", "compile"})
    if (section == unread) return kNothing;
  return section == "race_experiment" ? kNoRaces : kNeverRead;
}

}  // namespace weir
