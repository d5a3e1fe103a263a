#include "lab/preempt/published.h"

#include <array>

namespace weir::preempt {
namespace {

// Preemption latency on an NVIDIA GV100 by the length of the preempted kernels, from the evaluation data of XSched
// ("XSched: Preemptive Scheduling for Diverse XPUs", OSDI 2025). Copyright of the XSched authors, licensed under the
// Apache License, Version 2.0 (https://www.apache.org/licenses/LICENSE-2.0). Changed: the columns
//   kernel_time avg p50 p90 p99
//   100 740.970 795.906 1039.183 1053.165
// of the files level1.dat, level2.dat and level3.dat became these tables; the values are as they were.
constexpr std::array kLevel1 = {
    PublishedPoint{100, 740.970, 795.906, 1039.183, 1053.165},
    PublishedPoint{200, 1523.029, 1652.246, 2041.280, 2112.724},
    PublishedPoint{300, 2529.065, 2723.737, 3132.801, 3165.978},
    PublishedPoint{400, 3184.429, 3750.424, 4171.756, 4222.037},
    PublishedPoint{500, 3668.352, 4705.591, 5239.751, 5280.099},
    PublishedPoint{600, 4473.877, 5830.665, 6290.908, 6338.070},
    PublishedPoint{700, 5400.177, 6848.577, 7351.429, 7385.215},
    PublishedPoint{800, 6194.907, 7895.380, 8427.057, 8453.615},
    PublishedPoint{900, 7341.805, 9057.497, 9469.470, 9530.304},
    PublishedPoint{1000, 7611.333, 10043.643, 10546.966, 10582.010},
    PublishedPoint{1100, 8549.590, 11075.410, 11560.977, 11633.081},
    PublishedPoint{1200, 9908.747, 12138.403, 12670.228, 12699.643},
    PublishedPoint{1300, 10228.420, 13201.170, 13721.378, 13761.014},
    PublishedPoint{1400, 11500.265, 14301.913, 14769.482, 14814.938},
    PublishedPoint{1500, 11981.999, 15356.279, 15819.367, 15872.736},
    PublishedPoint{1600, 13046.048, 16402.114, 16881.799, 16924.211},
    PublishedPoint{1700, 13454.910, 17445.101, 17956.405, 17989.260},
    PublishedPoint{1800, 14348.277, 18511.845, 19017.814, 19056.313},
    PublishedPoint{1900, 15527.894, 19621.575, 20041.309, 20096.723},
    PublishedPoint{2000, 16218.398, 20670.066, 21145.793, 21159.888},
};

constexpr std::array kLevel2 = {
    PublishedPoint{100, 84.157, 89.105, 144.182, 148.298},
    PublishedPoint{200, 150.748, 150.646, 265.663, 275.533},
    PublishedPoint{300, 207.146, 225.199, 397.767, 407.787},
    PublishedPoint{400, 296.847, 307.711, 501.012, 540.119},
    PublishedPoint{500, 386.346, 434.685, 641.888, 674.203},
    PublishedPoint{600, 433.336, 451.506, 777.443, 800.075},
    PublishedPoint{700, 470.629, 482.333, 833.138, 880.975},
    PublishedPoint{800, 617.005, 609.373, 958.032, 1002.855},
    PublishedPoint{900, 754.712, 768.724, 1107.714, 1149.455},
    PublishedPoint{1000, 870.632, 891.241, 1249.482, 1276.777},
    PublishedPoint{1100, 1018.327, 1032.581, 1370.966, 1412.646},
    PublishedPoint{1200, 1148.552, 1170.146, 1496.726, 1538.968},
    PublishedPoint{1300, 1265.268, 1256.058, 1619.690, 1658.536},
    PublishedPoint{1400, 1404.621, 1434.874, 1773.280, 1812.930},
    PublishedPoint{1500, 1514.078, 1507.690, 1887.647, 1937.131},
    PublishedPoint{1600, 1636.642, 1646.337, 2031.130, 2099.568},
    PublishedPoint{1700, 1787.620, 1807.946, 2165.315, 2204.094},
    PublishedPoint{1800, 1897.634, 1959.026, 2274.852, 2339.276},
    PublishedPoint{1900, 2029.359, 2015.365, 2391.103, 2431.314},
    PublishedPoint{2000, 2181.407, 2214.840, 2546.379, 2575.308},
};

constexpr std::array kLevel3 = {
    PublishedPoint{100, 25.651, 25.422, 30.454, 40.667},  PublishedPoint{200, 25.669, 25.657, 29.930, 36.447},
    PublishedPoint{300, 25.733, 25.489, 30.581, 38.872},  PublishedPoint{400, 25.948, 26.806, 31.058, 37.067},
    PublishedPoint{500, 26.765, 25.548, 30.443, 36.384},  PublishedPoint{600, 25.333, 25.112, 30.022, 34.668},
    PublishedPoint{700, 29.927, 29.461, 31.999, 39.818},  PublishedPoint{800, 23.576, 23.021, 25.215, 35.055},
    PublishedPoint{900, 26.617, 25.180, 32.522, 40.334},  PublishedPoint{1000, 23.576, 23.041, 25.027, 34.015},
    PublishedPoint{1100, 25.483, 25.075, 27.303, 36.312}, PublishedPoint{1200, 25.450, 25.008, 27.031, 37.981},
    PublishedPoint{1300, 27.779, 27.259, 29.675, 39.429}, PublishedPoint{1400, 29.803, 29.329, 31.419, 41.457},
    PublishedPoint{1500, 29.760, 29.343, 31.216, 40.346}, PublishedPoint{1600, 27.769, 27.198, 29.689, 37.648},
    PublishedPoint{1700, 20.927, 20.077, 27.399, 35.913}, PublishedPoint{1800, 29.724, 29.310, 31.315, 38.252},
    PublishedPoint{1900, 25.691, 25.109, 27.314, 39.101}, PublishedPoint{2000, 25.565, 25.184, 27.104, 33.651},
    PublishedPoint{9999, 33.475, 31.722, 45.229, 84.920},
};

constexpr std::array kCurves = {
    PublishedCurve{"Lv1", "pending commands are held back", kLevel1},
    PublishedCurve{"Lv2", "commands in flight give way", kLevel2},
    PublishedCurve{"Lv3", "running commands are interrupted", kLevel3},
};

}  // namespace

const Published& published() {
  static constexpr Published kPublished{"XSched (OSDI 2025), evaluation data", "NVIDIA GV100", "Apache-2.0",
                                        "https://github.com/XpuOS/xsched", kCurves};
  return kPublished;
}

}  // namespace weir::preempt
