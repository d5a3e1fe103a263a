// Reads AORTA's training configs: translates keys that have a meaning here and lists the others with the reason. AORTA
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
constexpr std::int64_t kMax = 1'000'000'000;  // limit of every factor, so that no product overflows

struct Translation {
  std::string_view aorta;
  std::string_view ours;    // empty: not supported
  std::string_view reason;  // why not
};

// As of AORTA's fsdp_trainer.py, 2026: the dataclasses that it fills, and the fields that its loop uses.
constexpr Translation kTranslations[] = {
    {"training.gradient_accumulation", "", "AORTA read it and never used it: every step had one micro-batch"},
    {"training.mixed_precision", "training.precision", ""},
    {"training.grad_clip_norm", "training.clip", ""},
    {"training.max_steps", "run.iterations", ""},
    {"training.epochs", "", "steps are counted, not epochs (run.iterations)"},
    {"training.log_interval", "", "every step is written to rank_NN.jsonl"},
    {"training.output_dir", "", "say it with -o"},
    {"training.inject_allreduce_copies", "", "config/hang.yaml reproduces a hang"},
    {"training.allreduce_stress_level", "", "config/hang.yaml reproduces a hang"},
    {"optimizer.name", "", "it is AdamW"},
    {"optimizer.lr", "training.rate", ""},
    {"optimizer.weight_decay", "training.decay", ""},
    {"optimizer.betas", "", "they are 0.9 and 0.98"},
    {"optimizer.eps", "", "it is 1e-8"},
    {"model.vocab_size", "model.vocab", ""},
    {"model.model_dim", "model.dim", ""},
    {"model.num_heads", "model.heads", ""},
    {"model.num_layers", "model.layers", ""},
    {"model.mlp_hidden_dim", "model.mlp", ""},
    {"model.dense_dim", "model.dense", ""},
    {"model.embedding_dim", "", "embeddings are as wide as the model here"},
    {"model.num_dense_features", "", "dense features are one token here"},
    {"model.dropout", "", "nothing is dropped, so that losses can be compared"},
    {"dataset.sparse_features", "model.sparse", ""},
    {"dataset.seed", "training.seed", ""},
    {"dataset.vocab_size", "", "model.vocab_size is taken"},
    {"dataset.dense_dim", "", "model.dense_dim is taken"},
    {"dataset.num_dense_features", "", "dense features are one token here"},
    {"dataset.sequence_length", "", "a sample's tokens are its sparse features and one of the dense ones"},
    {"dataset.num_samples", "", "one batch is used again and again"},
    {"fsdp.limit_all_gathers", "", "fsdp.prefetch limits them"},
    {"fsdp.use_orig_params", "", "a matter of PyTorch's"},
    {"fsdp.sync_module_states", "", "all ranks begin with the same parameters"},
    {"fsdp.param_init_device", "", kNeverRead},
    {"distributed.mode", "parallel.mode", ""},
    {"distributed.gradient_as_bucket_view", "", "gradients are always written into their buckets"},
    {"distributed.static_graph", "", "a step is always the same"},
    {"distributed.find_unused_parameters", "", "there are none"},
    {"distributed.enable_overlap", "", kNeverRead},
    {"distributed.overlap_reduce_scatter", "", kNeverRead},
    {"distributed.overlap_clone_for_reduce_scatter", "", kNeverRead},
};
constexpr std::string_view kSections[] = {"logging",    "optimizer",   "scheduler", "dataset",
                                          "dataloader", "distributed", "compile",   "profiling"};

struct Reader {
  OverlapConfig config;
  std::vector<std::string> left_out;
  int ranks = 1;
  bool is_prefetching = false, has_prefetch = false;

  void take(std::string_view key, const std::string& value, const YamlPlace& place) {
    config.set(std::string(key), value, place.text());
  }
  void leave(const std::string& key, std::string_view reason) {
    left_out.push_back(fmt::format("{}: {}", key, reason));
  }

  // Translates keys that need more than a new name.
  bool read_special(const std::string& key, const YamlNode& item) {
    if (key == "training.batch_size") {
      const auto each = parse_integer(item.scalar("a number"));
      if (!each || *each < 1 || *each > kMax)
        item.place.refuse(fmt::format("'{}' is not a batch size", shown(item.text)));
      take("training.batch", std::to_string(*each * ranks), item.place);
    } else if (key == "fsdp.sharding_strategy") {
      std::string strategy = item.scalar("a strategy");
      std::transform(strategy.begin(), strategy.end(), strategy.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      if (strategy == "no_shard") {
        take("parallel.mode", "ddp", item.place);
      } else if (strategy == "full_shard" || strategy == "shard_grad_op") {
        take("fsdp.reshard_after_forward", strategy == "full_shard" ? "true" : "false", item.place);
      } else {
        item.place.refuse(fmt::format("the strategy '{}' has no counterpart here", shown(item.text)),
                          "Use full_shard, shard_grad_op or no_shard.");
      }
    } else if (key == "fsdp.backward_prefetch" || key == "fsdp.forward_prefetch") {
      const std::string& value = item.scalar("a word");
      has_prefetch = true;
      is_prefetching = is_prefetching || value == "true" || value == "BACKWARD_PRE" || value == "backward_pre";
    } else if (key == "distributed.bucket_cap_mb") {
      const auto mib = parse_integer(item.scalar("a number"));
      if (!mib || *mib < 0 || *mib > kMax) item.place.refuse(fmt::format("'{}' is not a size", shown(item.text)));
      take("ddp.bucket_kib", std::to_string(*mib * 1024), item.place);
    } else {
      return false;
    }
    return true;
  }

  void read(const YamlNode& section, const YamlNode& item) {
    const std::string key = fmt::format("{}.{}", section.key, item.key);
    if (read_special(key, item)) return;
    const auto known =
        std::find_if(std::begin(kTranslations), std::end(kTranslations), [&](const auto& t) { return t.aorta == key; });
    if (known == std::end(kTranslations)) {
      if (section.key == "logging" || section.key == "scheduler" || section.key == "dataloader" ||
          section.key == "compile" || section.key == "profiling")
        leave(key, section.key == "profiling" ? "every run is traced" : "nothing here corresponds to it");
      else
        leave(key, kNeverRead);
    } else if (known->ours.empty()) {
      leave(key, known->reason);
    } else {
      std::string value = item.scalar("one value");
      if (key == "training.mixed_precision" && value == "none") value = "fp32";
      if (value == "null") return;
      take(known->ours, value, item.place);
    }
  }
};

}  // namespace

bool is_aorta_config(const YamlNode& root) {
  if (root.kind != YamlNode::Kind::map) return false;
  return std::any_of(std::begin(kSections), std::end(kSections),
                     [&](std::string_view section) { return root.find(section) != nullptr; });
}

OverlapConfig from_aorta(const YamlNode& root, int ranks) {
  Reader reader;
  reader.ranks = ranks;
  for (const YamlNode& section : root.map("sections")) {
    if (section.kind != YamlNode::Kind::map) {
      if (section.kind != YamlNode::Kind::null) reader.leave(section.key, kNeverRead);
      continue;
    }
    for (const YamlNode& item : section.items) reader.read(section, item);
  }
  if (reader.has_prefetch) reader.config.set("fsdp.prefetch", reader.is_prefetching ? "1" : "0", "AORTA's prefetch");
  reader.config.notes.push_back(fmt::format("read as a config of AORTA's; its batch size is that of {}",
                                            ranks == 1 ? "the only rank" : fmt::format("each of {} ranks", ranks)));
  for (const std::string& key : reader.left_out) reader.config.notes.push_back("not taken: " + key);
  return reader.config;
}

}  // namespace weir
