// Use of GPUs by processes, from a machine of plain files: what is added to a sample, and what its document, picture
// and metrics make of it.
#include "lab/watch/kfd_use.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "lab/watch/document.h"
#include "lab/watch/openmetrics.h"
#include "lab/watch/view.h"
#include "support/openmetrics_check.h"

namespace weir::watch {
namespace {

namespace fs = std::filesystem;

// Two GPUs; process 4711 uses the first, and runs in front of our eyes.
class Machine {
 public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "weir_watch_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
    for (const int gpu : {0, 1}) {
      const std::string node = fmt::format("sys/class/kfd/kfd/topology/nodes/{}/", gpu + 2);
      write(node + "gpu_id", gpu == 0 ? "63420" : "4096");
      write(node + "name", "gfx942");
      write(node + "properties",
            fmt::format("drm_render_minor {}\nlocation_id {}\ndomain 0\n", 128 + gpu, 1280 + 256 * gpu));
      const std::string device = fmt::format("sys/class/drm/renderD{}/device/", 128 + gpu);
      write(device + "gpu_busy_percent", fmt::format("{}\n", 87 - 80 * gpu));
      write(device + "mem_info_vram_used", "1073741824\n");
    }
    write("sys/class/kfd/kfd/proc/4711/vram_63420", "536870912");
    write("sys/class/kfd/kfd/proc/4711/vram_4096", "0");
    write("sys/class/kfd/kfd/proc/4711/stats_63420/cu_occupancy", "96");
    write("sys/class/kfd/kfd/proc/4711/stats_63420/evicted_ms", "3");
    write("proc/4711/comm", "python3\x1b[31m\n");
    use_engine(1'000'000'000);
    write("smi/f7bc", "");
    write("smi/1000", "");
  }
  ~Machine() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::string& text, bool is_appended = false) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, is_appended ? std::ios::app : std::ios::trunc) << text;
  }
  void use_engine(std::uint64_t ns) const {
    write("proc/4711/fdinfo/7", fmt::format("drm-driver:\tamdgpu\ndrm-pdev:\t0000:05:00.0\ndrm-client-id:\t1\n"
                                            "drm-memory-vram:\t4 KiB\ndrm-engine-compute:\t{} ns\n",
                                            ns));
  }
  kfd::Roots roots() const { return {path_ / "debug", path_ / "sys", path_ / "proc", (path_ / "smi").string()}; }
  Sample sample(KfdUse& use, std::optional<std::int64_t> window_ns) const {
    kfd::Snapshot snapshot;
    snapshot.sysfs = kfd::read_sysfs(path_ / "sys");
    Sample sample;
    sample.source = "kfd";
    sample.number = 1;
    sample.window_ns = window_ns;
    use.add_to(sample, snapshot);
    return sample;
  }

 private:
  fs::path path_;
};

TEST(KfdUse, of_gpus_and_of_processes) {
  const Machine machine;
  KfdUse use(machine.roots());
  const Sample first = machine.sample(use, std::nullopt);
  ASSERT_EQ(first.facts.size(), 8U);
  EXPECT_EQ(first.facts[0].device, "gpu f7bc");
  EXPECT_DOUBLE_EQ(first.facts[0].figure.value.value(), 0.87);
  EXPECT_EQ(first.facts[4].device, "gpu 1000");
  EXPECT_FALSE(first.facts[3].figure.value) << "no sensor of power";
  ASSERT_EQ(first.processes.size(), 1U) << "not of the GPU that it does not use";
  EXPECT_EQ(first.processes[0].pid, 4711);
  EXPECT_EQ(first.processes[0].memory_bytes.value, 536870912) << "KFD's, before that of its open files";
  EXPECT_EQ(first.processes[0].compute_units.value, 96);
  EXPECT_EQ(first.processes[0].evicted_ns.value, 3e6);
  EXPECT_EQ(first.processes[0].evictions.value, 0);
  EXPECT_FALSE(first.processes[0].busy.value);
  EXPECT_NE(first.processes[0].busy.reason, "");

  machine.use_engine(1'250'000'000);
  machine.write("smi/f7bc", "9 1000000 -4711 f7bc 2\na 2000000 -4711 f7bc R\n9 3000000 -4711 f7bc 2\n9 4 -1 f7bc 0\n",
                true);
  const Sample second = machine.sample(use, 500'000'000);
  EXPECT_DOUBLE_EQ(second.processes[0].busy.value.value(), 0.5);
  EXPECT_EQ(second.processes[0].evictions.value, 2);
  const Sample third = machine.sample(use, 500'000'000);
  EXPECT_EQ(third.processes[0].busy.value, 0);
  EXPECT_EQ(third.processes[0].evictions.value, 2) << "since the watch began";
}

TEST(KfdUse, is_in_documents_pictures_and_metrics) {
  const Machine machine;
  KfdUse use(machine.roots());
  const Sample sample = machine.sample(use, std::nullopt);
  const Json document = watch_document(sample, 1'000'000'000, "2026-01-31T12:00:00Z");
  EXPECT_EQ(document["facts"][0]["device"], "gpu f7bc");
  EXPECT_EQ(document["processes"][0]["memory_bytes"], 536870912.0);
  EXPECT_TRUE(document["processes"][0]["busy"].is_null());
  EXPECT_TRUE(document["processes"][0]["unavailable"]["busy"].is_string());
  const std::string table = table_text(View{}, sample, 80);
  EXPECT_NE(table.find("gpu f7bc:   utilisation 87 %"), std::string::npos) << table;
  EXPECT_NE(table.find("gpu 1000:   utilisation 7 %"), std::string::npos) << table;
  EXPECT_NE(table.find("pid 4711 python3?[31m on gpu f7bc: memory 512 MiB   96 CUs"), std::string::npos) << table;
  const std::string metrics = metrics_text(sample);
  weir::testing::check_openmetrics(metrics);
  EXPECT_NE(metrics.find("weir_watch_process_compute_units{"), std::string::npos) << metrics;
}

TEST(KfdUse, says_why_events_are_missing) {
  const Machine machine;
  kfd::Roots roots = machine.roots();
  roots.smi += "/none";
  KfdUse use(roots);
  const Sample sample = machine.sample(use, std::nullopt);
  EXPECT_FALSE(sample.processes[0].evictions.value);
  EXPECT_NE(sample.processes[0].evictions.reason.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace weir::watch
