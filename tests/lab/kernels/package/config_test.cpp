// bench.yaml: what each key gives, and that nothing is read and ignored.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/error.h"
#include "lab/kernels/package/discovery.h"
#include "support/text.h"

namespace weir::package {
namespace {

Config parse(const std::string& text, const Package* package = nullptr) {
  return parse_config(text, "kernels/x/bench.yaml", package);
}

struct ConfigRefusal {
  std::string what, hint;
};
ConfigRefusal config_refusal(const std::string& text, const Package* package = nullptr) {
  try {
    parse(text, package);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return {error.what(), error.hint};
  }
  ADD_FAILURE() << text << " was accepted";
  return {};
}
// Place and words of a refusal.
void expect_refused(const std::string& text, const std::string& place, const std::string& words) {
  const ConfigRefusal found = config_refusal(text);
  EXPECT_TRUE(found.what.starts_with("kernels/x/bench.yaml:" + place + ": ")) << text << " -> " << found.what;
  EXPECT_TRUE(has(found.what + " " + found.hint, words)) << text << " -> " << found.what << " / " << found.hint;
}

TEST(Config, every_key_is_read) {
  const Config config = parse(R"(
problem_size:
  rows: [256, 1024]
  grid: [[64, 64, 64], [128, 128, 128]]
  tolerance: 1.0e-5
precisions: [fp32, bf16]
backends: [cpu, cuda]
tolerances: {rmse: 1.0e-3, relative_error: 0}
skip_conditions:
  - backend: cuda
    reason: "CUDA not available"
    check: "not cuda.is_present"
  - reason: broken since the change of layout
iterations: 50
warmup: 0
seed: 9223372036854775807
time_limit: 30s
dependencies: [nvcc, libfoo.so.1]
compile_flags: [-O3, -march=native, -DNAME=1]
compiler: ahead
arguments: [--fast, "two words"]
)");
  ASSERT_EQ(config.problem_size.size(), 3U);
  EXPECT_EQ(config.problem_size[0].name, "rows");
  EXPECT_EQ(config.problem_size[0].values, (std::vector<std::vector<double>>{{256}, {1024}}));
  EXPECT_EQ(config.problem_size[1].values, (std::vector<std::vector<double>>{{64, 64, 64}, {128, 128, 128}}));
  EXPECT_EQ(config.problem_size[2].values, (std::vector<std::vector<double>>{{1e-5}}));
  EXPECT_EQ(config.precisions, (std::vector{Precision::fp32, Precision::bf16}));
  EXPECT_EQ(config.backends, (std::vector{Backend::cpu, Backend::cuda}));
  EXPECT_EQ(config.tolerances.rmse, 1e-3);
  EXPECT_EQ(config.tolerances.relative_error, 0.0);
  ASSERT_EQ(config.skip_conditions.size(), 2U);
  EXPECT_EQ(config.skip_conditions[0].backend, Backend::cuda);
  EXPECT_EQ(config.skip_conditions[0].reason, "CUDA not available");
  ASSERT_TRUE(config.skip_conditions[0].check.has_value());
  EXPECT_TRUE(config.skip_conditions[0].check->holds({{"cuda.is_present", false}}));
  EXPECT_FALSE(config.skip_conditions[1].backend.has_value());
  EXPECT_FALSE(config.skip_conditions[1].check.has_value());
  EXPECT_EQ(config.iterations, 50);
  EXPECT_EQ(config.warmup, 0);
  EXPECT_EQ(config.seed, 9223372036854775807U);
  EXPECT_EQ(config.time_limit_s, 30.0);
  EXPECT_EQ(config.dependencies, (std::vector<std::string>{"nvcc", "libfoo.so.1"}));
  EXPECT_EQ(config.compile_flags, (std::vector<std::string>{"-O3", "-march=native", "-DNAME=1"}));
  EXPECT_EQ(config.compiler, Compiler::ahead);
  EXPECT_EQ(config.arguments, (std::vector<std::string>{"--fast", "two words"}));
}

TEST(Config, what_is_left_out_has_no_value) {
  const Config config = parse("iterations: 3");
  EXPECT_TRUE(config.problem_size.empty());
  EXPECT_TRUE(config.precisions.empty());
  EXPECT_TRUE(config.backends.empty());
  EXPECT_FALSE(config.tolerances.rmse || config.tolerances.relative_error);
  EXPECT_FALSE(config.warmup || config.seed || config.time_limit_s);
  EXPECT_EQ(config.compiler, Compiler::automatic);
}

// The flaw of the original: keys that nobody reads.
TEST(Config, an_unknown_key_is_refused_with_a_suggestion) {
  expect_refused("iterations: 3\nproblem_sizes: {n: 1}", "2: problem_sizes", "Did you mean 'problem_size'?");
  expect_refused("tolerances: {rsme: 1}", "1: tolerances.rsme", "Did you mean 'rmse'?");
  expect_refused("skip_conditions:\n  - reason: a\n    if: b", "3: skip_conditions[0].if", "There is: backend");
}

TEST(Config, a_second_document_is_refused_as_it_would_be_ignored) {
  expect_refused("seed: 1\n---\nbackends: [cpu]", "2", "a second document");
  expect_refused("--- {seed: 1}\n--- {seed: 2}", "2", "a second document");
  EXPECT_EQ(parse("# for CI\n---\nseed: 1\n...\n").seed, 1U);
}

// The example of the document that this was made after, word for word.
TEST(Config, a_config_of_the_original_is_accepted) {
  const Config config = parse(
      "problem_size:\n  grid_size: [64, 64, 64]\n  max_iterations: 50\n  tolerance: 1.0e-5\n\n"
      "precisions:\n  - fp32\n  - fp16\n\nbackends:\n  - cpu\n  - cuda\n\n"
      "tolerances:\n  rmse: 1.0e-3\n  relative_error: 1.0e-2\n\n"
      "skip_conditions:\n  - backend: cuda\n    reason: \"CUDA not available\"\n"
      "    check: \"not torch.cuda.is_available()\"\n");
  EXPECT_EQ(config.problem_size.at(0).values, (std::vector<std::vector<double>>{{64, 64, 64}}));
  const Condition& check = config.skip_conditions.at(0).check.value();
  EXPECT_TRUE(check.holds({{"cuda.is_present", false}, {"hip.is_present", false}}));
  EXPECT_FALSE(check.holds({{"cuda.is_present", true}, {"hip.is_present", false}}));
  EXPECT_FALSE(check.holds({{"cuda.is_present", false}, {"hip.is_present", true}})) << "ROCm calls its GPUs cuda too";
  expect_refused("skip_conditions:\n  - reason: none\n    check: \"torch.cuda.device_count() < 2\"",
                 "3: skip_conditions[0].check", "'cuda.is_present'");
}

TEST(Config, a_function_has_a_name) {
  EXPECT_EQ(parse("function_name: bench_it").function_name, "bench_it");
  expect_refused("function_name: bench it", "1: function_name", "'bench it' is not the name of a function");
  expect_refused("function_name: os.system", "1: function_name", "is not the name of a function");
}

TEST(Config, unknown_words_are_refused_with_those_that_exist) {
  expect_refused("precisions: [fp32, fp4]", "1: precisions[1]",
                 "There are fp64, fp32, fp16, bf16, fp8_e4m3, fp8_e5m2.");
  expect_refused("precisions: float32", "1: precisions", "Write fp32.");
  expect_refused("backends: [amd]", "1: backends[0]", "Write hip.");
  expect_refused("backends: [metal]", "1: backends[0]", "There are cpu, cuda, hip, opencl, pytorch, jax.");
  expect_refused("skip_conditions: [{backend: tpu, reason: x}]", "1: skip_conditions[0].backend",
                 "unknown backend 'tpu'");
  expect_refused("compiler: nvcc", "1: compiler", "Write auto, runtime");
}

TEST(Config, words_of_other_programs_are_understood) {
  EXPECT_EQ(parse("backends: [rocm, pytorch, jax]").backends,
            (std::vector{Backend::hip, Backend::pytorch, Backend::jax}));
  EXPECT_EQ(parse("precisions: [fp8, fp8_e5m2]").precisions, (std::vector{Precision::fp8_e4m3, Precision::fp8_e5m2}));
  expect_refused("backends: [hip, rocm]", "1: backends[1]", "'rocm' is there already");
}

TEST(Config, one_word_may_stand_for_a_list) {
  EXPECT_EQ(parse("precisions: fp16").precisions, std::vector{Precision::fp16});
  EXPECT_EQ(parse("backends: hip").backends, std::vector{Backend::hip});
}

TEST(Config, problem_sizes_are_numbers) {
  expect_refused("problem_size: {n: many}", "1: problem_size.n", "'many' is not a number");
  expect_refused("problem_size:\n  n: [1, true]", "2: problem_size.n[1]", "'true' is not a number");
  expect_refused("problem_size: {n: .nan}", "1: problem_size.n", "not a number");
  expect_refused("problem_size: {n: 1e400}", "1: problem_size.n", "not a number");
  expect_refused("problem_size: {n: 0x10}", "1: problem_size.n", "not a number");
  expect_refused("problem_size: {n: []}", "1: problem_size.n", "nothing would run");
  expect_refused("problem_size: {n: [[]]}", "1: problem_size.n[0]", "a value of 0 numbers");
  expect_refused("problem_size: {n: [[[1]]]}", "1: problem_size.n[0][0]", "a number is needed, this is a list");
  expect_refused("problem_size: {n: }", "1: problem_size.n", "a number is needed, this is nothing");
  expect_refused("problem_size: [1]", "1: problem_size", "this is a list");
  expect_refused("problem_size: {a/b: 1}", "1: problem_size.a/b", "not the name of a parameter");
  EXPECT_EQ(parse("problem_size: {n: -0.5}").problem_size[0].values[0][0], -0.5);
}

// Nobody sweeps over 64, 64 and 64.
TEST(Config, a_list_with_a_number_twice_is_one_value) {
  const auto values = [](const std::string& text) {
    return parse("problem_size: {g: " + text + "}").problem_size[0].values;
  };
  using Values = std::vector<std::vector<double>>;
  EXPECT_EQ(values("[64, 64, 64]"), (Values{{64, 64, 64}}));
  EXPECT_EQ(values("[64, 32, 64]"), (Values{{64, 32, 64}}));
  EXPECT_EQ(values("[64, 32, 16]"), (Values{{64}, {32}, {16}}));
  EXPECT_EQ(values("[[64, 32, 16]]"), (Values{{64, 32, 16}}));
  expect_refused("problem_size: {g: [[1, 2], [1, 2]]}", "1: problem_size.g[1]", "this value is there already");
  expect_refused("problem_size: {g: [[1, 2], 3]}", "1: problem_size.g[1]", "1 numbers, where the first value has 2");
}

TEST(Config, too_many_combinations_are_refused) {
  std::string text = "problem_size:\n";
  for (const char* const name : {"a", "b", "c"}) {
    text += std::string("  ") + name + ": [0";
    for (int i = 1; i < 30; ++i) text += ", " + std::to_string(i);
    text += "]\n";
  }
  expect_refused(text, "1: problem_size", "more than 10000 combinations");
}

TEST(Config, a_precision_may_have_limits_of_its_own) {
  const Config config = parse("tolerances: {rmse: 1.0e-3, relative_error: 1.0e-5, fp16: {relative_error: 0.01}}");
  EXPECT_EQ(config.tolerance_of(Precision::fp32).relative_error, 1e-5);
  EXPECT_EQ(config.tolerance_of(Precision::fp16).relative_error, 0.01);
  EXPECT_EQ(config.tolerance_of(Precision::fp16).rmse, 1e-3);
  const Config alone = parse("tolerances: {fp16: {rmse: 0.5}}");
  EXPECT_FALSE(alone.tolerance_of(Precision::fp32).rmse);  // so that its default applies
  EXPECT_EQ(alone.tolerance_of(Precision::fp16).rmse, 0.5);
  expect_refused("tolerances: {fp16: {rsme: 1}}", "1: tolerances.fp16.rsme", "Did you mean 'rmse'?");
  expect_refused("tolerances: {fp16: 1}", "1: tolerances.fp16", "limits: {rmse");
  expect_refused("tolerances: {fp16: {}}", "1: tolerances.fp16", "no limit");
  expect_refused("tolerances:\n  fp16: {rmse: 1}\nprecisions: fp32", "2: tolerances.fp16", "not among precisions");
}

TEST(Config, counts_and_limits_are_checked) {
  expect_refused("iterations: 0", "1: iterations", "Use 1 to 1000000.");
  expect_refused("iterations: 2.5", "1: iterations", "Use 1 to");
  expect_refused("warmup: -1", "1: warmup", "Use 0 to");
  expect_refused("seed: 9223372036854775808", "1: seed", "Use 0 to");
  expect_refused("tolerances: {rmse: -1}", "1: tolerances.rmse", "never negative");
  expect_refused("tolerances: 0.1", "1: tolerances", "limits: {rmse");
  expect_refused("iterations: [1]", "1: iterations", "this is a list");
  expect_refused("iterations: 3\niterations: 4", "2: iterations", "given twice");
}

TEST(Config, time_limits_have_units) {
  EXPECT_EQ(parse("time_limit: 30").time_limit_s, 30.0);
  EXPECT_EQ(parse("time_limit: 500ms").time_limit_s, 0.5);
  EXPECT_EQ(parse("time_limit: 2 min").time_limit_s, 120.0);
  EXPECT_EQ(parse("time_limit: 1h").time_limit_s, 3600.0);
  expect_refused("time_limit: 0", "1: time_limit", "Write seconds");
  expect_refused("time_limit: soon", "1: time_limit", "Write seconds");
  expect_refused("time_limit: 25h", "1: time_limit", "24h at most");
  expect_refused("time_limit: -5s", "1: time_limit", "Write seconds");
}

TEST(Config, what_is_there_twice_is_refused) {
  expect_refused("precisions: [fp32, fp32]", "1: precisions[1]", "there already");
  expect_refused("backends: [cpu, cpu]", "1: backends[1]", "there already");
  expect_refused("dependencies: [a, a]", "1: dependencies[1]", "there already");
}

TEST(Config, an_empty_list_is_refused) {
  expect_refused("precisions: []", "1: precisions", "an empty list");
  expect_refused("backends: []", "1: backends", "an empty list");
}

TEST(Config, skip_conditions_say_why) {
  expect_refused("skip_conditions: [{backend: cuda}]", "1: skip_conditions[0]", "'reason' is missing");
  expect_refused("skip_conditions: [{reason: ' '}]", "1: skip_conditions[0].reason", "say why");
  expect_refused("skip_conditions: [{reason: a, check: }]", "1: skip_conditions[0].check", "a condition is needed");
  expect_refused("skip_conditions: [cuda]", "1: skip_conditions[0]", "a map with reason");
}

TEST(Config, dependencies_are_names) {
  expect_refused("dependencies: [/usr/bin/nvcc]", "1: dependencies[0]", "no path");
  expect_refused("dependencies: [numpy >= 1]", "1: dependencies[0]", "no version range");
  expect_refused("dependencies: [-x]", "1: dependencies[0]", "not the name");
}

TEST(Config, keys_that_would_do_nothing_to_the_package_are_refused) {
  Package source;
  source.parts = {{Form::host_source, "kernel.cpp"}};
  EXPECT_TRUE(
      has(config_refusal("seed: 1\narguments: [a]", &source).what, "bench.yaml:2: arguments: the package has no"));
  EXPECT_TRUE(has(config_refusal("compiler: auto", &source).what, "neither kernel.cu nor kernel.hip"));
  EXPECT_NO_THROW(parse("compile_flags: [-O2]", &source));
  Package executable;
  executable.parts = {{Form::executable, "kernel.py"}};
  EXPECT_TRUE(has(config_refusal("compile_flags: [-O2]", &executable).what, "no source"));
  EXPECT_NO_THROW(parse("arguments: [a]", &executable));
  Package device;
  device.parts = {{Form::cuda_source, "kernel.cu"}};
  EXPECT_NO_THROW(parse("compiler: ahead\ncompile_flags: [--use_fast_math]", &device));
}

TEST(Config, what_is_no_yaml_map_is_refused) {
  EXPECT_TRUE(has(config_refusal("").what, "kernels/x/bench.yaml: empty"));
  EXPECT_TRUE(has(config_refusal("# nothing\n").what, "empty"));
  EXPECT_TRUE(has(config_refusal("a: [1").what, "not YAML"));
  EXPECT_TRUE(has(config_refusal("just words").what, "keys with values"));
  EXPECT_TRUE(has(config_refusal(std::string("a\0b", 3)).what, "not a text file"));
  EXPECT_TRUE(has(config_refusal(std::string(300 << 10, ' ')).what, "bytes"));
}

// The page, the schema for editors and the parser know the same keys and words.
std::string file_text(const std::string& name) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Config, the_schema_for_editors_has_the_keys_that_are_read) {
  const Json schema = parse_json(file_text("docs/schema/bench.yaml.json"), "schema");
  const std::string page = file_text("docs/bench_yaml.md");
  ASSERT_EQ(schema.at("properties").size(), 14U);
  for (const auto& [key, value] : schema.at("properties").items()) {
    EXPECT_TRUE(has(page, "| `" + key + "` |")) << key << " is not in docs/bench_yaml.md";
    // A value of the wrong kind is refused as such: the key is known.
    EXPECT_FALSE(has(config_refusal(key + ": [[[{a: b}]]]").what, "unknown key")) << key;
  }
}

TEST(Config, the_page_shows_a_config_that_is_accepted_and_all_words) {
  const std::string page = file_text("docs/bench_yaml.md");
  const std::size_t begin = page.find("```yaml\n"), end = page.find("```\n", begin + 8);
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(problems_of(parse(page.substr(begin + 8, end - begin - 8)).problem_size).size(), 6U);
  for (const FactWord& word : fact_words()) EXPECT_TRUE(has(page, "`" + word.name + "`")) << word.name;
}

TEST(Config, hostile_documents_are_bounded) {
  // Nine levels of ten aliases: 10^9 values.
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "a" + std::to_string(i), before = "*a" + std::to_string(i - 1);
    bomb += name + ": &" + name + " [" + before;
    for (int k = 1; k < 10; ++k) bomb += "," + before;
    bomb += "]\n";
  }
  EXPECT_TRUE(has(config_refusal(bomb).what, "values"));
  EXPECT_FALSE(config_refusal(std::string(100'000, '[')).what.empty());
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_TRUE(has(config_refusal(keys).what, "more than 10000 values"));
}

}  // namespace
}  // namespace weir::package
