// Retrieval-augmented generation: embed -> retrieve -> rerank -> generate. Stages of very unequal size run on streams
// of their own, with several queries in the pipeline at once.
#include "step/workload/decoder.h"
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

constexpr std::int64_t kQueriesPerStream = 4;  // per stage

class Pipeline : Model {
  enum Role : std::uint8_t { kEmbed, kRetrieve, kRerank, kGenerate };

 public:
  Pipeline(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1, 1, 1}),
        words_(params.integer("words")),
        features_(params.integer("features")),
        width_(params.integer("hidden")),
        documents_(params.integer("documents")),
        best_(params.integer("best")),
        tokens_(params.integer("tokens")),
        decoder_(layers_, {params.integer("layers"), width_, params.integer("heads"), params.integer("vocabulary")}) {
    if (best_ > documents_)
      reject_param("best", best_, fmt::format("there are {} documents", documents_), "Use as many or fewer.");
    corpus_ = {step_.uniform(layers_.type(), elements(documents_ * width_))};
    project_ = layers_.weights(features_, width_);
    inner_ = layers_.weights(2 * width_, 4 * width_);
    score_ = layers_.weights(4 * width_, 1);
  }

  Step build() {
    // Lane counts differ by at most one; the widest stage decides how many queries feed every stream.
    const std::int64_t queries = kQueriesPerStream * lanes_[kEmbed].count;
    std::vector<Query> all;
    for (std::int64_t q = 0; q < queries; ++q) all.push_back(embed(q));
    for (std::int64_t q = 0; q < queries; ++q) retrieve(q, all[at(q)]);
    for (std::int64_t q = 0; q < queries; ++q) rerank(q, all[at(q)]);
    for (std::int64_t t = 0; t < tokens_; ++t)
      for (std::int64_t q = 0; q < queries; ++q) generate(q, t, all[at(q)]);
    return finish(queries);
  }

 private:
  struct Query {
    Operand vector;     // [hidden]
    Operand found;      // [best] documents
    Operand candidate;  // [best][hidden]
    Operand input;      // of the next token
    Decoder::Cache cache;
  };

  // Averages the query's words, then maps them into the space of the documents.
  Query embed(std::int64_t q) {
    const Lane lane = lanes_[kEmbed][q];
    const Operand words = samples(words_ * features_);
    Query query;
    const Operand pooled = layers_.sum(lane, words, words_, features_, features_, 1 / static_cast<float>(words_));
    query.vector = layers_.gemm(lane, layers_.layer_norm(lane, pooled, 1, features_), project_, {1, width_, features_});
    query.cache = decoder_.cache(1, tokens_ + 1);
    return query;
  }

  void retrieve(std::int64_t q, Query& query) {
    const Lane lane = lanes_[kRetrieve][q];
    const Operand similarity =
        layers_.gemm(lane, query.vector, corpus_, {.m = 1, .n = documents_, .k = width_, .transposes_b = true});
    query.found = layers_.integers_output(best_);
    step_.launch("top_k", lane, {.type = layers_.type(), .dims = {1, documents_, best_}},
                 {similarity, layers_.output(best_), query.found});
    query.candidate = layers_.gather(lane, corpus_, documents_, query.found, best_, width_);
  }

  // A cross-encoder compares the query with each candidate, and the best one becomes the context.
  void rerank(std::int64_t q, Query& query) {
    const Lane lane = lanes_[kRerank][q];
    const std::int64_t w = width_;
    // [query..., candidates...] interleaved into rows of both: first copies of the query, then one transposition.
    const Operand both = layers_.output(2 * best_ * w);
    for (std::int64_t i = 0; i < best_; ++i) step_.copy(lane, query.vector, slice(both, {i, 1}, w));
    step_.copy(lane, query.candidate, slice(both, {best_, best_}, w));
    const Operand pairs = layers_.transpose(lane, both, 2, best_, w);
    const Operand up = layers_.gemm(lane, layers_.layer_norm(lane, pairs, best_, 2 * w), inner_, {best_, 4 * w, 2 * w});
    const Operand scores = layers_.gemm(lane, layers_.gelu(lane, up, best_ * 4 * w), score_, {best_, 1, 4 * w});
    const Operand chosen = layers_.arg_max(lane, scores, 1, best_);
    query.input = layers_.gather(lane, query.candidate, best_, chosen, 1, w);
  }

  void generate(std::int64_t q, std::int64_t t, Query& query) {
    const Lane lane = lanes_[kGenerate][q];
    const Operand length = integer(t + 1);
    const Operand hidden = decoder_.forward(lane, query.input, {1, 1, length}, query.cache);
    const Operand token = decoder_.next_token(lane, hidden, 1);
    step_.token(step_.command_count() - 1, static_cast<std::uint32_t>(q));
    query.input = decoder_.embed(lane, token, 1);
  }

  std::int64_t words_, features_, width_, documents_, best_, tokens_;
  Decoder decoder_;
  Operand corpus_, project_, inner_, score_;
};

}  // namespace

Workload rag_pipeline() {
  return {.name = "rag_pipeline",
          .summary = "Embed, retrieve, rerank, generate",
          .category = "inference",
          .priority = 2,
          .unit = "queries/s",
          .scaling = Scaling::requests,
          .shows = "embed -> retrieve -> rerank -> generate, stages of very unequal size",
          .streams = {1, 8, kMaxStreams},
          .params =
              {
                  integer_param("words", "words of a query", {4, 16, 64}, 1, 65536),
                  integer_param("features", "width of a word", {12, 96, 768}, 1, 32768),
                  integer_param("hidden", "width of documents and of the generating model", {8, 64, 256}, 1, 32768),
                  integer_param("documents", "documents to search", {100, 5000, 100'000}, 1, 100'000'000),
                  integer_param("best", "documents that are looked at closely", {3, 10, 10}, 1, 64),
                  integer_param("tokens", "tokens that are generated", {3, 8, 32}, 1, 4096),
                  integer_param("layers", "decoder layers", {1, 2, 4}, 1, 256),
                  integer_param("heads", "attention heads", {2, 2, 4}, 1, 256),
                  integer_param("vocabulary", "tokens that there are", {32, 500, 8192}, 2, 1 << 20),
              },
          .roles = {"embed", "retrieve", "rerank", "generate"},
          .build = build_model<Pipeline>};
}

}  // namespace weir::workload_list
