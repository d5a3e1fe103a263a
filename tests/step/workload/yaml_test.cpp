#include "step/workload/yaml.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "step/workload/tiny_step.h"

namespace weir {
namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;

// A small file with something in the place of its commands.
std::string with_commands(const std::string& commands) {
  return "name: x\n"
         "streams: {min: 1, recommended: 2, max: 8}\n"
         "params: {n: 8}\n"
         "buffers:\n"
         "  a: {count: 64, init: uniform}\n"
         "  b: {count: 64}\n"
         "  c: {count: 64}\n"
         "  ints: {count: 8, init: indices}\n"
         "  host: {count: 64, place: host, init: ramp}\n"
         "commands:\n" +
         commands;
}

Step step_of(const std::string& commands, int streams = 1) {
  return build(parse_workload(with_commands(commands), "my.yaml"), streams);
}

// What a file is refused with, message and hint; fails the test where it is not.
std::string refusal(const std::string& text, int streams = 1, const Assignments& params = {},
                    const YamlLimits& limits = {}) {
  try {
    build(parse_workload(text, "my.yaml", limits), streams, params);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input) << error.what();
    return std::string(error.what()) + " | " + error.hint;
  }
  ADD_FAILURE() << "accepted:\n" << text;
  return "";
}

void expect_refusal(const std::string& text, std::initializer_list<std::string> parts, int streams = 1) {
  const std::string message = refusal(text, streams);
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

// Host and device use a flag at once, and a moment is made of 64-bit words: anything but that would be undefined.
TEST(Yaml, HoldsUntilAFlagIsSet) {
  const auto text = [](const std::string& type, const std::string& place, const std::string& moment) {
    return "name: x\nstreams: 1\nbuffers:\n  flag: {count: 1, type: " + type + ", place: " + place +
           ", init: constant, value: 0}\n  moments: {count: 9, type: i32, place: host}\n"
           "commands:\n  - {kernel: hold, dims: {limit_ns: 1000}, reads: flag, writes: '" +
           moment + "'}\n";
  };
  const Step step = build(parse_workload(text("i32", "host", "moments[4:4]"), "my.yaml"), 1);
  ASSERT_EQ(step.commands().size(), 1u);
  EXPECT_EQ(step.commands()[0].kind, CommandKind::kernel);
  EXPECT_EQ(step.commands()[0].shape.dims[0], 1000);
  expect_refusal(text("i32", "device", "moments[4:4]"), {"flag of hold is in device memory", "place: host"});
  expect_refusal(text("f32", "host", "moments[4:4]"), {"flag of hold"});
  expect_refusal(text("i32", "host", "moments[5:4]"), {"moment of hold must be i32 and begin at an even element"});
  expect_refusal(text("i32", "host", "moments[4:3]"), {"moment of hold has 3 elements, 4 are needed"});
}

TEST(Yaml, ExamplesBuildOnAllTheirStreamCounts) {
  for (const char* file : {"pipeline.yaml", "fork_join.yaml"}) {
    const Workload workload = load_workload(std::string(WEIR_SOURCE_DIR "/config/") + file);
    for (const int streams : {workload.streams.min, workload.streams.recommended, workload.streams.max}) {
      const Assignments even =
          workload.name == "fork_join" ? Assignments{{"rows", std::to_string(64 * streams)}} : Assignments{};
      const Step step = build(workload, streams, even);
      EXPECT_EQ(step.stream_count(), streams);
      EXPECT_GT(step.work(), 0);
      EXPECT_TRUE(step.is_repeatable()) << file;
    }
  }
}

TEST(Yaml, FactsAreTheFiles) {
  const Workload workload = load_workload(WEIR_SOURCE_DIR "/config/pipeline.yaml");
  EXPECT_EQ(workload.name, "pipeline");
  EXPECT_EQ(workload.unit, "samples/s");
  EXPECT_EQ(workload.streams.min, 3);
  EXPECT_EQ(workload.roles, (std::vector<std::string>{"copy_in", "compute", "copy_out"}));
  ASSERT_EQ(workload.params.size(), 3u);
  EXPECT_EQ(std::get<std::int64_t>(workload.params[0].defaults[2]), 1024);
  EXPECT_EQ(workload.source.hash.size(), 16u);
  EXPECT_NE(workload.source.text.find("name: pipeline"), std::string::npos);
}

TEST(Yaml, LoopsNestAndSlicesFollowThem) {
  const Step step = step_of(
      "  - repeat:\n"
      "      for: i\n"
      "      count: 2\n"
      "      do:\n"
      "        - per_stream:\n"
      "            - {kernel: gelu, reads: \"a[(i * streams + stream) * n:n]\", writes: \"b[(i * streams + stream) * "
      "n:n]\"}\n",
      4);
  ASSERT_EQ(step.commands().size(), 8u);
  EXPECT_EQ(step.commands()[5].stream, 1);
  EXPECT_EQ(step.accesses(5)[0].offset_bytes, 5u * 8 * 4);
  EXPECT_EQ(step.accesses(5)[1].size_bytes, 8u * 4);
  EXPECT_EQ(step.commands()[5].shape.dims[0], 8);  // counted by what it writes
  EXPECT_EQ(step.work(), 8);
}

TEST(Yaml, AParameterIsAtLeastWhatTheStreamsNeed) {
  const auto text = [](const std::string& least) {
    return "name: x\nstreams: {min: 1, max: 8}\nunit: parts/s\nwork: parts\nparams:\n  parts: {default: 3, at_least: " +
           least +
           "}\nbuffers:\n  a: {count: parts, init: uniform}\n  b: {count: parts}\ncommands:\n  - repeat:\n      for: "
           "p\n"
           "      count: parts\n      do:\n        - {kernel: gelu, reads: 'a[p:1]', writes: 'b[p:1]', stream: p % "
           "streams}\n";
  };
  const Workload workload = parse_workload(text("streams"), "my.yaml");
  EXPECT_EQ(build(workload, 2).work(), 3);
  EXPECT_EQ(build(workload, 8).work(), 8);
  EXPECT_EQ(build(workload, 8).commands().size(), 8u);
  EXPECT_EQ(build(workload, 8, {{"parts", "9"}}).work(), 9);
  expect_refusal(text("streams / 2"), {"at_least", "whole"}, 3);
  expect_refusal(text("parts + 1"), {"parts"});  // only what is above it
}

TEST(Yaml, ShapesByNameAndByPosition) {
  const Step step = step_of(
      "  - {kernel: gemm, dims: {n: 4, m: 2, k: 8, transpose_b: 1}, scalars: {alpha: 0.5}, reads: [a, a], writes: b}\n"
      "  - {kernel: gemm, dims: [2, 4, 8], scalars: [1, 1], reads: [a, a, b], writes: b}\n"
      "  - {kernel: chain, ops: [mul 2 * n, clamp 0 1], reads: a, writes: c}\n"
      "  - {kernel: gather, dims: [8, 8, 8], reads: [a, ints], writes: c}\n");
  const auto commands = step.commands();
  EXPECT_EQ(commands[0].shape.dims, (std::array<std::int64_t, 4>{2, 4, 8, 2}));
  EXPECT_EQ(commands[0].shape.scalars[0], 0.5f);
  EXPECT_EQ(commands[0].shape.scalars[1], 0.0f);
  EXPECT_EQ(commands[1].shape.scalars[1], 1.0f);
  EXPECT_TRUE(step.accesses(1)[2].reads && step.accesses(1)[2].writes);
  EXPECT_EQ(commands[2].shape.scalars, (std::array<float, 4>{16, 0, 1, 0}));
  EXPECT_EQ(commands[2].shape.dims[0], 64);
}

TEST(Yaml, PrecisionDecidesWhatComputeMeans) {
  const Workload workload = parse_workload(with_commands("  - {kernel: gelu, reads: a, writes: b}\n"), "my.yaml");
  Params params(workload.params, Scale::tiny, {});
  params.precision = Precision::bf16;
  const Step step = workload.build(params, 1);
  EXPECT_EQ(step.buffers()[0].type, ElementType::bf16);
  EXPECT_EQ(step.commands()[0].shape.type, ElementType::bf16);
  EXPECT_EQ(step.commands()[0].shape.precision, Precision::bf16);
}

TEST(Yaml, CopiesAndHostFunctions) {
  const Step step = step_of(
      "  - {copy: {from: host, to: b}, role: load, priority: 2}\n"
      "  - {host: gelu, reads: host, writes: host}\n");
  EXPECT_EQ(step.commands()[0].kind, CommandKind::copy);
  EXPECT_EQ(step.commands()[0].priority, 2);
  EXPECT_EQ(step.commands()[1].kind, CommandKind::host);
  EXPECT_EQ(step.predecessors(1).size(), 1u);
}

TEST(Yaml, AfterChangesTheOrderOnlyWhereAsked) {
  const Step step = step_of(
      "  - {name: last, after: first, kernel: gelu, reads: b, writes: c}\n"
      "  - {kernel: softmax, dims: [8, 8], reads: a, writes: c}\n"
      "  - {name: first, kernel: gelu, reads: a, writes: b}\n");
  ASSERT_EQ(step.commands().size(), 3u);
  EXPECT_EQ(kernel(step.commands()[0].kernel).name, "softmax");
  EXPECT_EQ(step.accesses(2)[1].buffer, 2u);  // c, by `last`
  EXPECT_EQ(step.predecessors(2).size(), 2u);
}

TEST(Yaml, AfterMeansTheSameIterationOfSharedLoops) {
  const Step step = step_of(
      "  - repeat:\n"
      "      for: i\n"
      "      count: 3\n"
      "      do:\n"
      "        - {name: use, after: make, kernel: gelu, reads: \"b[i * n:n]\", writes: \"c[i * n:n]\"}\n"
      "        - {name: make, kernel: gelu, reads: \"a[i * n:n]\", writes: \"b[i * n:n]\"}\n"
      "  - {after: use, kernel: softmax, dims: [3, n], reads: \"c[:3 * n]\", writes: b}\n");
  ASSERT_EQ(step.commands().size(), 7u);
  for (CommandId i = 0; i < 6; ++i) EXPECT_EQ(step.accesses(i)[0].buffer, i % 2) << i;
  EXPECT_EQ(kernel(step.commands()[6].kernel).name, "softmax");
}

TEST(Yaml, RolesAndConvoy) {
  const std::string text = with_commands("  - {kernel: gelu, reads: a, writes: b, role: small}\n");
  EXPECT_EQ(parse_workload(text + "convoy: small\n", "x").convoy_role, std::uint8_t{0});
  expect_refusal(text + "roles: [large]\n", {"'small' is not among the roles"});
}

TEST(Yaml, WorkFollowsTheUnit) {
  const std::string text = with_commands("  - {kernel: gemm, dims: [8, 8, 8], reads: [a, a], writes: b}\n");
  EXPECT_DOUBLE_EQ(build(parse_workload(text + "work: flop\n", "x"), 1).work(), 1024e-9);
  EXPECT_DOUBLE_EQ(build(parse_workload(text + "work: flop\nunit: FLOP/s\n", "x"), 1).work(), 1024);
  EXPECT_DOUBLE_EQ(build(parse_workload(text + "work: bytes\nunit: B/s\n", "x"), 1).work(), 768);
  EXPECT_DOUBLE_EQ(build(parse_workload(text + "work: 2 * n\nunit: samples/s\n", "x"), 1).work(), 16);
  expect_refusal(text + "work: flop\nunit: samples/s\n", {"my.yaml:13: unit", "'samples/s'"});
  expect_refusal(text + "work: 2 * n\n", {"'unit' is missing"});
}

TEST(Yaml, ErrorsNameLineAndKey) {
  expect_refusal(with_commands("  - {kernel: gem, reads: a}\n"),
                 {"my.yaml:11: commands[0].kernel: there is no kernel 'gem'", "Did you mean 'gemm'?"});
  expect_refusal(with_commands("  - kernel: gelu\n    read: a\n"), {"my.yaml:12: commands[0].read", "'reads'"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: d, writes: b}\n"), {"commands[0].reads", "no buffer 'd'"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: a[n], writes: b}\n"), {"my.yaml:11"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: \"a[n]\", writes: b}\n"), {"is no slice", "a[offset:count]"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: \"a[m:1]\", writes: b}\n"), {"there is no 'm' here"});
  expect_refusal(with_commands("  - {role: x}\n"), {"what is it?"});
  expect_refusal(with_commands("  - {kernel: gelu, copy: {from: a, to: b}}\n"), {"kernel and copy in one command"});
  expect_refusal("name: x\nname: y\n", {"my.yaml:2: name: given twice"});
  expect_refusal("name: moe stuff\n", {"my.yaml:1: name"});
  expect_refusal("name: large_gemm_only\nbuffers: {}\n", {"is a workload of this program"});
  expect_refusal("nam: x\n", {"my.yaml:1: nam: unknown key 'nam'", "'name'"});
  expect_refusal("name: x\n", {"the key 'buffers' is missing"});
  expect_refusal("- a\n", {"a map with name"});
  expect_refusal("a: [1, 2\n", {"not YAML"});
  expect_refusal("", {"my.yaml: empty"});
}

TEST(Yaml, OperandsMustAgreeWithTheKernel) {
  expect_refusal(with_commands("  - {kernel: gemm, dims: [8, 8, 8], reads: a, writes: b}\n"),
                 {"gemm reads 2 operands, 1 given", "reads: a, b"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: a, writes: [b, c]}\n"), {"gelu writes 1 operand, 2 given"});
  expect_refusal(
      with_commands("  - {kernel: gemm, dims: [8, 8, 8], scalars: {beta: 1}, reads: [a, a, a], writes: c}\n"),
      {"reads and writes c: both must name the same range"});
  expect_refusal(with_commands("  - {kernel: gemm, dims: [9, 8, 8], reads: [a, a], writes: b}\n"),
                 {"a of gemm has 64 elements, 72 are needed"});
  expect_refusal(with_commands("  - {kernel: gemm, dims: [8, 8, 8], reads: [a, a], writes: a}\n"),
                 {"overlap", "in place"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: host, writes: b}\n"), {"in of gelu is in host memory"});
  expect_refusal(with_commands("  - {host: gelu, reads: a, writes: b}\n"), {"is in device memory"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: ints, writes: ints}\n"), {"does not compute with integers"});
  expect_refusal(with_commands("  - {kernel: gather, dims: [8, 8, 8], reads: [a, a], writes: b}\n"),
                 {"index of gather holds f32, i32 is needed"});
  expect_refusal(with_commands("  - {copy: {from: a, to: \"b[0:3]\"}}\n"), {"from has 64 elements and to has 3"});
  expect_refusal(with_commands("  - {copy: {from: \"a[0:4]\", to: \"a[2:4]\"}}\n"), {"overlap"});
  expect_refusal(with_commands("  - {kernel: gelu, reads: b, writes: c}\n"),
                 {"reads 'b' where nothing has been written"});
  expect_refusal(with_commands("  - {kernel: chain, reads: a, writes: c}\n"), {"'ops' is missing"});
  expect_refusal(with_commands("  - {kernel: chain, ops: [mul], reads: a, writes: c}\n"), {"'mul' takes 1 number"});
  expect_refusal(with_commands("  - {kernel: softmax, dims: [8], reads: a, writes: c}\n"),
                 {"dim 'columns' is missing"});
}

TEST(Yaml, SizesThatDoNotDivideGetTheNearestThatDo) {
  const std::string text = with_commands(
      "  - per_stream:\n"
      "      - {kernel: gelu, reads: \"a[stream * n:n / streams]\", writes: \"b[stream * n:n / streams]\"}\n");
  const std::string message = refusal(text, 3);
  EXPECT_NE(message.find("my.yaml:12: commands[0].per_stream[0].reads: 'n / streams' is 2.66"), std::string::npos)
      << message;
  EXPECT_NE(message.find("--param n=6, --param n=9, --streams 2, --streams 4"), std::string::npos) << message;
}

TEST(Yaml, CyclesAreNamed) {
  expect_refusal(
      with_commands("  - {name: p, after: q, kernel: gelu, reads: a, writes: b}\n"
                    "  - {name: q, after: [r], kernel: gelu, reads: a, writes: b}\n"
                    "  - {name: r, after: [p], kernel: gelu, reads: a, writes: b}\n"),
      {"my.yaml:11: commands[0].after: commands 'p' -> 'q' -> 'r' -> 'p' wait for each other", "lines 11, 12, 13"});
  expect_refusal(with_commands("  - {name: p, after: p, kernel: gelu, reads: a, writes: b}\n"), {"waits for itself"});
  expect_refusal(with_commands("  - {after: lod, kernel: gelu, reads: a, writes: b}\n"
                               "  - {name: load, kernel: gelu, reads: a, writes: b}\n"),
                 {"no command has the name 'lod'", "'load'"});
}

TEST(Yaml, IdleStreamsAreExplained) {
  expect_refusal(with_commands("  - {kernel: gelu, reads: a, writes: b}\n"),
                 {"my.yaml: stream 1 of 4 has no work", "per_stream"}, 4);
  expect_refusal(with_commands("  - {kernel: gelu, reads: a, writes: b, stream: streams}\n"),
                 {"the stream 'streams' is 4"}, 4);
}

TEST(Yaml, EverythingIsBounded) {
  YamlLimits small;
  small.commands = 100;
  small.iterations = 200;
  small.overlaps = 1000;
  const auto repeated = [](const std::string& count, const std::string& body) {
    return with_commands("  - repeat: {for: i, count: " + count + ", do: [" + body + "]}\n");
  };
  const std::string gelu = "{kernel: gelu, reads: a, writes: b}";
  EXPECT_NE(refusal(repeated("101", gelu), 1, {}, small).find("more than 100 commands"), std::string::npos);
  EXPECT_NE(refusal(repeated("1000000000", "{kernel: gelu, reads: a, writes: b, when: 0}"), 1, {}, small)
                .find("iterations of loops"),
            std::string::npos);
  EXPECT_NE(refusal(repeated("-1", gelu), 1, {}, small).find("the count '-1' is -1"), std::string::npos);
  EXPECT_NE(refusal(repeated("64",
                             "{kernel: gelu, reads: \"a[i:1]\", writes: \"b[i:1]\"}, {kernel: gelu, reads: a, "
                             "writes: c, when: i % 4 == 0}"),
                    1, {}, small)
                .find("overlapping slices"),
            std::string::npos);
  // An alias that doubles ten times over, and one that holds itself.
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 25; ++i)
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
            std::to_string(i - 1) + "]\n";
  EXPECT_NE(refusal(bomb).find("more than 200000 values"), std::string::npos);
  EXPECT_NE(refusal("a: &a [*a]\n").find("my.yaml"), std::string::npos);
  EXPECT_NE(refusal(std::string(3000, '[')).find("my.yaml"), std::string::npos);
  EXPECT_NE(refusal(std::string(2 << 20, 'x')).find("bytes"), std::string::npos);
  EXPECT_NE(refusal("name: x\nbuffers: {a: {count: 1e15}}\ncommands: [{kernel: fill, writes: a}]\n").find("count"),
            std::string::npos);
}

}  // namespace
}  // namespace weir
