// What a history of a fleet costs: adding probes, and the questions that are asked of it, with as many results as
// wanted.
//   bench_history [FILE or postgresql://...] [RESULTS]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "lab/fleet/figures.h"
#include "measure/bootstrap.h"
#include "report/history/document.h"
#include "report/history/fleet_nodes.h"

namespace {

using namespace weir;

constexpr int kNodes = 1'000, kDevices = 8;
constexpr int kAtOnce = 100;  // probes of one add: a folder of them

// 2 % between devices, 0.5 % from run to run; one device in a thousand becomes 5 % slower on the fifth day.
Json probe_of(int node, int day, SplitMix& random) {
  fleet::NodeReport report;
  report.name = fmt::format("node{:04}", node);
  report.created =
      fmt::format("2026-{:02}-{:02}T03:{:02}:{:02}Z", 1 + day / 28, 1 + day % 28, node / 60 % 60, node % 60);
  report.environment = {{"system", "Debian GNU/Linux 12"}, {"kernel", "Linux 6.1"}, {"architecture", "x86_64"}};
  for (int i = 0; i < kDevices; ++i) {
    fleet::NodeDevice device;
    device.name = fmt::format("cuda:{}", i);
    device.model = "NVIDIA H200";
    device.serial = fmt::format("165{:07}", node * kDevices + i);
    device.facts = {{"driver", "570.1"}, {"firmware", "96.00"}, {"persistence", "on"}, {"ecc", "on"}};
    SplitMix own(static_cast<std::uint64_t>(node * kDevices + i));
    for (const fleet::FigureKind& kind : fleet::figure_kinds()) {
      fleet::Figure figure;
      figure.name = kind.name;
      if (kind.name == "copy_to_peer") figure.to = fmt::format("cuda:{}", (i + 1) % kDevices);
      double level = 1000 * (1 + 0.04 * (own.fraction() - 0.5)) * (1 + 0.01 * (random.fraction() - 0.5));
      if ((node * kDevices + i) % 1000 == 7 && day >= 5 && kind.name == "gemm_bf16") level *= 0.95;
      if (kind.goal == fleet::Goal::none && kind.unit == "count") level = 0;  // counts of errors
      figure.value = level;
      const int samples = kind.goal == fleet::Goal::none ? 0 : 5;
      for (int k = 0; k < samples; ++k) figure.samples.push_back(level * (1 + 0.002 * (random.fraction() - 0.5)));
      device.figures.push_back(std::move(figure));
    }
    report.devices.push_back(std::move(device));
  }
  return fleet::to_json(report);
}

template <class Work>
void timed(const std::string& name, const Work& work) {
  const std::int64_t begin = now_ns();
  const std::clock_t cpu = std::clock();
  const std::string found = work();
  fmt::print("{:<32}{:8.3f} s, {:.3f} s of them ours: {}\n", name, static_cast<double>(now_ns() - begin) / 1e9,
             static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC, found);
}

void measure(const std::string& where, std::size_t results) {
  std::size_t points = 0;
  double adding = 0, preparing = 0;
  {
    history::Store store(where, history::DatabaseAccess::write);
    SplitMix random(1);
    for (int day = 0; points < results; ++day)
      for (int node = 0; node < kNodes && points < results;) {
        std::vector<Json> documents;
        for (int i = 0; i < kAtOnce && node < kNodes; ++i) documents.push_back(probe_of(node++, day, random));
        const std::int64_t begin = now_ns();
        history::Intake intake;
        for (const Json& document : documents) {
          const auto of_one = history::fleet_points(document, "made up");
          intake.points.insert(intake.points.end(), of_one.begin(), of_one.end());
          intake.documents.push_back(history::fleet_document_of(document, "made up"));
        }
        const std::int64_t ready = now_ns();
        points += store.add(intake, {"nightly", "", ""}).points;
        preparing += static_cast<double>(ready - begin) / 1e9;
        adding += static_cast<double>(now_ns() - ready) / 1e9;
      }
    fmt::print("{} results of {} nodes x {} devices, {:.0f} MiB\n", points, kNodes, kDevices,
               static_cast<double>(store.size_bytes()) / (1 << 20));
  }
  if (points > 0)
    fmt::print("{:<32}{:8.0f} results/s, 100 probes each time ({:.0f} with reading them)\n", "adding",
               static_cast<double>(points) / adding, static_cast<double>(points) / (adding + preparing));
  history::Store store(where, history::DatabaseAccess::read);
  history::TrendOptions options;
  options.selection.workload = "fleet/gemm_bf16";
  timed("trend, all machines", [&] {
    const Json trend = history::trend_document(store, options);
    return fmt::format("{} series", trend["series"].size());
  });
  options.selection.machine = "1650000007";
  timed("trend, one machine", [&] {
    const Json trend = history::trend_document(store, options);
    return fmt::format("{} points, {} changes", trend["series"][0]["points"].size(),
                       trend["series"][0]["changes"].size());
  });
  timed("newest probe of each node", [&] { return fmt::format("{} nodes", history::newest_nodes(store).size()); });
  timed("devices that became slower", [&] {
    const auto changes = history::device_changes(store);
    return fmt::format("{}; {}", changes.size(), changes.empty() ? "" : changes[0].sentence);
  });
  timed("list", [&] { return fmt::format("{} entries", history::list_document(store, {})["entries"].size()); });
}

}  // namespace

int main(int count, char** arguments) {
  const std::string own =
      (std::filesystem::temp_directory_path() / fmt::format("bench_history_{}.db", ::getpid())).string();
  const std::string where = count > 1 ? arguments[1] : own;
  const auto results = static_cast<std::size_t>(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 20'000);
  int code = 0;
  try {
    measure(where, results);
  } catch (const weir::Error& error) {
    fmt::print(stderr, "{}\n{}\n", error.what(), error.hint);
    code = 1;
  }
  std::error_code ignored;
  std::filesystem::remove(own, ignored);
  return code;
}
