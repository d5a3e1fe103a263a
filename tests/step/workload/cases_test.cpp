// The embedded YAML workloads: that they are the files of config/cases, and that case A is a CNN and case B an encoder,
// by values: what their steps compute is compared with the models written out here.
#include "step/workload/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "base/error.h"
#include "kernel/gemm.h"
#include "kernel/im2col.h"
#include "step/workload/yaml.h"
#include "support/replay.h"

namespace weir {
namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;
using Numbers = std::vector<double>;

Step build_case(const char* name, int streams, Scale scale = Scale::tiny, const Assignments& assignments = {}) {
  const Workload& workload = workload_named(name);
  return workload.build(Params(workload.params, scale, assignments), streams);
}

std::uint64_t copied_from_host(const Step& step) {
  std::uint64_t elements = 0;
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (step.commands()[id].kind == CommandKind::copy &&
        step.buffers()[step.accesses(id)[0].buffer].place == Place::host)
      elements += step.accesses(id)[0].size_bytes / 4;
  return elements;
}

TEST(Cases, are_the_files_of_config_cases) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(WEIR_SOURCE_DIR) + "/config/cases")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files[entry.path().stem()] = text.str();
  }
  std::map<std::string, std::string> embedded;
  for (const EmbeddedCase& each : embedded_cases()) embedded[std::string(each.name)] = each.text;
  EXPECT_EQ(embedded, files);
  const std::vector<Workload> cases = case_workloads();
  ASSERT_EQ(cases.size(), files.size());
  for (const Workload& workload : cases) {
    EXPECT_TRUE(files.contains(workload.name)) << workload.name << ": the file has another name";
    EXPECT_EQ(workload_named(workload.name).summary, workload.summary);
    EXPECT_TRUE(workload.source.file.empty()) << "it is one of this program's own";
  }
}

TEST(Cases, a_users_file_may_not_take_their_names) {
  EXPECT_THROW(parse_workload(embedded_cases()[0].text, "mine.yaml"), Error);
}

TEST(Cases, have_the_sizes_of_the_study_at_full_scale) {
  const Step cnn = build_case("case_a_cnn", 4, Scale::full);
  EXPECT_EQ(copied_from_host(cnn), 16u * 3 * 256 * 256);
  EXPECT_EQ(cnn.work(), 16);
  const Step encoder = build_case("case_b_transformer", 2, Scale::full);
  EXPECT_EQ(encoder.work(), 32 * 128);
  EXPECT_EQ(copied_from_host(encoder), 0u);
  for (const CommandId id : launches_of(encoder, "layer_norm")) EXPECT_EQ(encoder.commands()[id].shape.dims[1], 512);
}

TEST(Cases, the_first_is_urgent_and_the_second_is_not) {
  const Step cnn = build_case("case_a_cnn", 4), encoder = build_case("case_b_transformer", 2);
  for (const Command& command : cnn.commands()) EXPECT_EQ(command.priority, 1);
  for (const Command& command : encoder.commands()) EXPECT_EQ(command.priority, -1);
}

TEST(Cases, the_first_copies_on_streams_of_its_own_and_the_second_only_computes) {
  const Step cnn = build_case("case_a_cnn", 5);
  std::map<StreamId, std::set<CommandKind>> kinds;
  for (const Command& command : cnn.commands()) kinds[command.stream].insert(command.kind);
  for (const auto& [stream, seen] : kinds)
    EXPECT_EQ(seen, std::set{stream == 0 || stream == 4 ? CommandKind::copy : CommandKind::kernel}) << stream;
  const Step encoder = build_case("case_b_transformer", 3);
  for (const Command& command : encoder.commands()) EXPECT_EQ(command.kind, CommandKind::kernel);
}

// What a command of the step left in one of its operands.
Numbers left(const Step& step, Replay& replay, CommandId id, std::size_t operand) {
  const Access& access = step.accesses(id)[operand];
  return floats(step.buffers()[access.buffer].type, replay.bytes(access));
}

// Commands of the part of the batch that ends with command `last`: those that it depends on.
std::vector<CommandId> leading_to(const Step& step, CommandId last) {
  std::set<CommandId> needed = {last};
  for (CommandId id = last + 1; id-- > 0;)
    if (needed.contains(id))
      for (const CommandId before : step.predecessors(id)) needed.insert(before);
  return {needed.begin(), needed.end()};
}

struct Picture {
  std::size_t side = 0, channels = 0;
  Numbers values;  // [line][column][channel]
  double at(std::ptrdiff_t y, std::ptrdiff_t x, std::size_t c) const {
    const auto limit = static_cast<std::ptrdiff_t>(side);
    if (y < 0 || x < 0 || y >= limit || x >= limit) return 0;
    return values[(static_cast<std::size_t>(y) * side + static_cast<std::size_t>(x)) * channels + c];
  }
};

// Mean, variance, gamma and beta of each channel.
using Norm = std::array<Numbers, 4>;

// 3 x 3, one line of zeros around; batch normalisation; what is negative becomes 0.
Picture convolved(const Picture& in, const Numbers& weights, const Norm& norm, std::size_t stride) {
  Picture out{in.side / stride, norm[0].size(), {}};
  for (std::size_t y = 0; y < out.side; ++y)
    for (std::size_t x = 0; x < out.side; ++x)
      for (std::size_t c = 0; c < out.channels; ++c) {
        double sum = 0;
        for (std::size_t dy = 0; dy < 3; ++dy)
          for (std::size_t dx = 0; dx < 3; ++dx)
            for (std::size_t from = 0; from < in.channels; ++from)
              sum += in.at(static_cast<std::ptrdiff_t>(y * stride + dy) - 1,
                           static_cast<std::ptrdiff_t>(x * stride + dx) - 1, from) *
                     weights[((dy * 3 + dx) * in.channels + from) * out.channels + c];
        const double normal = (sum - norm[0][c]) / std::sqrt(norm[1][c] + 1e-5) * norm[2][c] + norm[3][c];
        out.values.push_back(std::max(0.0, normal));
      }
  return out;
}

// The largest of each window, or the mean of the whole picture.
Picture pooled(const Picture& in, std::size_t by) {
  Picture out{in.side / by, in.channels, {}};
  for (std::size_t y = 0; y < out.side; ++y)
    for (std::size_t x = 0; x < out.side; ++x)
      for (std::size_t c = 0; c < in.channels; ++c) {
        double sum = 0, largest = -1e30;
        for (std::size_t i = 0; i < by * by; ++i) {
          const double value =
              in.at(static_cast<std::ptrdiff_t>(y * by + i / by), static_cast<std::ptrdiff_t>(x * by + i % by), c);
          sum += value;
          largest = std::max(largest, value);
        }
        out.values.push_back(by == in.side ? sum / static_cast<double>(by * by) : largest);
      }
  return out;
}

Numbers product(const Numbers& a, const Numbers& b, std::size_t rows, std::size_t inner, std::size_t columns) {
  Numbers c(rows * columns, 0.0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t p = 0; p < inner; ++p)
      for (std::size_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * inner + p] * b[p * columns + j];
  return c;
}

void soften(double* row, std::size_t count) {
  const double largest = *std::max_element(row, row + count);
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) total += row[i] = std::exp(row[i] - largest);
  for (std::size_t i = 0; i < count; ++i) row[i] /= total;
}

void expect_near(const Numbers& found, const Numbers& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << what << " " << i;
}

TEST(CaseA, is_a_network_of_four_convolutions) {
  const Step step = build_case("case_a_cnn", 4, Scale::tiny, {{"side", "32"}, {"parts", "2"}, {"images", "2"}});
  Replay replay(step);
  replay.run();
  std::vector<CommandId> ends;
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (step.commands()[id].kind == CommandKind::copy &&
        step.buffers()[step.accesses(id)[1].buffer].place == Place::host)
      ends.push_back(id);
  ASSERT_EQ(ends.size(), 2u);
  for (const CommandId end : ends) {
    std::vector<CommandId> gemms, norms;
    CommandId start = end;
    for (const CommandId id : leading_to(step, end)) {
      if (step.commands()[id].kind == CommandKind::copy && id != end) start = id;
      if (kernel_name(step, id) == "gemm") gemms.push_back(id);
      if (kernel_name(step, id) == "batch_norm") norms.push_back(id);
    }
    ASSERT_EQ(gemms.size(), 5u);
    ASSERT_EQ(norms.size(), 4u);
    const Numbers images = left(step, replay, start, 0), answers = left(step, replay, end, 1);
    ASSERT_EQ(images.size(), 2u * 32 * 32 * 3);
    Numbers expected;
    for (std::size_t image = 0; image < 2; ++image) {
      const auto first = images.begin() + static_cast<std::ptrdiff_t>(image * 32 * 32 * 3);
      Picture picture{32, 3, {first, first + 32 * 32 * 3}};
      for (std::size_t layer = 0; layer < 4; ++layer) {
        Norm norm;
        for (std::size_t i = 0; i < norm.size(); ++i) norm[i] = left(step, replay, norms[layer], 1 + i);
        picture = convolved(picture, left(step, replay, gemms[layer], 1), norm, layer == 0 ? 2 : 1);
        picture = pooled(picture, layer == 3 ? picture.side : 2);
      }
      Numbers scores = product(picture.values, left(step, replay, gemms[4], 1), 1, picture.values.size(), 8);
      soften(scores.data(), scores.size());
      expected.insert(expected.end(), scores.begin(), scores.end());
    }
    expect_near(answers, expected, 1e-4, "chances");
  }
}

Numbers normalised(const Numbers& x, std::size_t columns) {
  Numbers out(x.size());
  for (std::size_t row = 0; row < x.size(); row += columns) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row);
    const double mean =
        std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(columns), 0.0) / static_cast<double>(columns);
    double variance = 0;
    for (std::size_t i = 0; i < columns; ++i) variance += (x[row + i] - mean) * (x[row + i] - mean);
    for (std::size_t i = 0; i < columns; ++i)
      out[row + i] = (x[row + i] - mean) / std::sqrt(variance / static_cast<double>(columns) + 1e-5);
  }
  return out;
}

Numbers sum(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST(CaseB, is_an_encoder_in_which_every_token_attends_to_all) {
  constexpr std::size_t kTexts = 2, kTokens = 8, kWidth = 16, kHeads = 2, kDim = 8, kInner = 32, kLayers = 2;
  const Step step = build_case("case_b_transformer", 2, Scale::tiny, {{"parts", "2"}, {"batch", "2"}, {"layers", "2"}});
  Replay replay(step);
  replay.run();
  const std::vector<CommandId> norms = launches_of(step, "layer_norm");
  ASSERT_EQ(norms.size(), 2 * (2 * kLayers + 1));
  for (const std::size_t part : {0u, 1u}) {
    const CommandId end = norms[part * (2 * kLayers + 1) + 2 * kLayers];
    std::vector<CommandId> gemms;
    CommandId first = end;
    for (const CommandId id : leading_to(step, end)) {
      if (kernel_name(step, id) == "gemm") gemms.push_back(id);
      if (kernel_name(step, id) == "add") first = std::min(first, id);
    }
    ASSERT_EQ(gemms.size(), 8 * kLayers);
    Numbers x = left(step, replay, first, 0);
    const Numbers positions = left(step, replay, first, 1);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += positions[i % positions.size()];
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const auto weights = [&](std::size_t which) { return left(step, replay, gemms[8 * layer + which], 1); };
      const std::size_t rows = kTexts * kTokens;
      const Numbers normal = normalised(x, kWidth);
      const Numbers q = product(normal, weights(0), rows, kWidth, kWidth);
      const Numbers k = product(normal, weights(1), rows, kWidth, kWidth);
      const Numbers v = product(normal, weights(2), rows, kWidth, kWidth);
      Numbers seen(rows * kWidth, 0.0);
      for (std::size_t text = 0; text < kTexts; ++text)
        for (std::size_t head = 0; head < kHeads; ++head)
          for (std::size_t i = 0; i < kTokens; ++i) {
            const auto at = [&](std::size_t token, std::size_t d) {
              return (text * kTokens + token) * kWidth + head * kDim + d;
            };
            Numbers scores(kTokens, 0.0);
            for (std::size_t j = 0; j < kTokens; ++j)
              for (std::size_t d = 0; d < kDim; ++d) scores[j] += 0.125 * q[at(i, d)] * k[at(j, d)];
            soften(scores.data(), kTokens);
            for (std::size_t j = 0; j < kTokens; ++j)
              for (std::size_t d = 0; d < kDim; ++d) seen[at(i, d)] += scores[j] * v[at(j, d)];
          }
      const Numbers middle = sum(x, product(seen, weights(5), rows, kWidth, kWidth));
      Numbers up = product(normalised(middle, kWidth), weights(6), rows, kWidth, kInner);
      for (double& value : up) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
      x = sum(middle, product(up, weights(7), rows, kInner, kWidth));
    }
    expect_near(left(step, replay, end, 3), normalised(x, kWidth), 1e-4, "encoded");
  }
}

// What YAML needed for these two, by itself.
Workload with(const std::string& command) {
  return parse_workload(
      "name: mine\nbuffers:\n  a: {count: 4096, init: uniform}\n  b: {count: 4096, init: uniform}\n"
      "  c: {count: 65536}\ncommands:\n  - " +
          command + "\n",
      "mine.yaml");
}
Step step_of(const Workload& workload) { return workload.build(Params(workload.params, Scale::tiny, {}), 1); }

TEST(YamlKernels, a_product_may_have_a_batch) {
  const Step step =
      step_of(with("{kernel: gemm, dims: {m: 8, n: 4, k: 2, transpose_b: 1, batch: 5}, reads: 'a, b', "
                   "writes: c}"));
  const KernelShape& shape = step.commands()[0].shape;
  EXPECT_EQ(gemm_batch(shape), 5);
  EXPECT_TRUE(transposes_b(shape));
  EXPECT_FALSE(transposes_a(shape));
  EXPECT_EQ(
      gemm_batch(
          step_of(with("{kernel: gemm, dims: {m: 8, n: 4, k: 2}, reads: 'a, b', writes: c}")).commands()[0].shape),
      1);
}

TEST(YamlKernels, patches_have_names) {
  const Step step =
      step_of(with("{kernel: im2col, dims: {images: 2, height: 8, width: 4, channels: 3, kernel: 3, "
                   "padding: 1}, reads: a, writes: c}"));
  EXPECT_EQ(step.commands()[0].shape.dims[3], image_patch(3, 3, 1, 1));
}

TEST(YamlKernels, patches_that_cannot_be_are_rejected) {
  const auto build_with = [](const char* dims) {
    return step_of(with("{kernel: im2col, dims: " + std::string(dims) + ", reads: a, writes: c}"));
  };
  EXPECT_THROW(build_with("{images: 1, height: 4, width: 4, channels: 1, stride: 1}"), Error) << "no kernel";
  EXPECT_THROW(build_with("{images: 1, height: 4, width: 4, channels: 1, kernel: 5}"), Error)
      << "larger than the image";
  EXPECT_THROW(build_with("{images: 1, height: 4, width: 4, channels: 1, kernel: 3, stride: 0}"), Error);
  EXPECT_THROW(build_with("{images: 1000000, height: 1, width: 1, channels: 2000000000, kernel: 255, padding: 255}"),
               Error)
      << "more than can be counted";
}

}  // namespace
}  // namespace weir
