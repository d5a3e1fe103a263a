#include "lab/fleet/figures.h"

#include <algorithm>
#include <array>

namespace weir::fleet {
namespace {

constexpr std::array kKinds = {
    FigureKind{"launch", "ns", "launch, one thread", Goal::lower},
    FigureKind{"launch_threads", "ns", "launch, several threads", Goal::lower},
    FigureKind{"launch_graph", "ns", "launch in a graph", Goal::lower},
    FigureKind{"round_trip", "ns", "launch and wait", Goal::lower},
    FigureKind{"queue_switch", "ns", "queue switch", Goal::lower},
    FigureKind{"copy_to_device", "B/s", "copy to the device", Goal::higher},
    FigureKind{"copy_to_host", "B/s", "copy to the host", Goal::higher},
    FigureKind{"copy_to_peer", "B/s", "copy to another device", Goal::higher},
    FigureKind{"memory", "B/s", "memory bandwidth", Goal::higher},
    FigureKind{"gemm_fp32", "flop/s", "GEMM fp32", Goal::higher},
    FigureKind{"gemm_bf16", "flop/s", "GEMM bf16", Goal::higher},
    FigureKind{"gemm_fp8", "flop/s", "GEMM fp8", Goal::higher},
    FigureKind{"all_reduce", "B/s", "all-reduce in the node", Goal::higher},
    FigureKind{"hardware_queues", "count", "hardware queues", Goal::none},
    FigureKind{"clock", "MHz", "clock under load", Goal::none},
    FigureKind{"max_clock", "MHz", "highest clock", Goal::none},
    FigureKind{"memory_clock", "MHz", "memory clock", Goal::none},
    FigureKind{"power", "W", "power under load", Goal::none},
    FigureKind{"power_limit", "W", "power limit", Goal::none},
    FigureKind{"temperature", "C", "temperature under load", Goal::none},
    FigureKind{"pcie_generation", "count", "PCIe generation", Goal::none},
    FigureKind{"pcie_width", "lanes", "PCIe width", Goal::none},
    FigureKind{"nvlink_links", "count", "NVLink links that are up", Goal::none},
    FigureKind{"pcie_replays", "count", "PCIe replays", Goal::none},
    FigureKind{"nvlink_errors", "count", "NVLink errors", Goal::none},
    FigureKind{"ecc_corrected", "count", "corrected memory errors", Goal::none},
    FigureKind{"ecc_uncorrected", "count", "uncorrected memory errors", Goal::none},
    FigureKind{"retired_pages", "count", "retired pages", Goal::none},
    FigureKind{"remapped_rows", "count", "remapped rows", Goal::none},
    FigureKind{"other_processes", "count", "other processes on the device", Goal::none},
};

}  // namespace

std::string_view name_of(Goal goal) { return goal == Goal::lower ? "lower" : goal == Goal::higher ? "higher" : "none"; }

std::span<const FigureKind> figure_kinds() { return kKinds; }

const FigureKind* find_figure(std::string_view name) {
  const auto* const found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const FigureKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : found;
}

}  // namespace weir::fleet
