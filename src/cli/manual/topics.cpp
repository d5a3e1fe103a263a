#include "cli/manual/topics.h"

#include <algorithm>

namespace weir::cli {
namespace {

constexpr Topic kTopics[] = {
    {"exit-codes", "what the program's exit codes mean",
     R"(  0    fine; of a comparison: nothing is slower for certain
  1    a run failed: wrong output, a device that was lost, a hang, a file that
       could not be written. What was measured before is kept and written
  2    bad usage or bad input: a flag, a file, a value. Nothing was run
  3    a comparison found something slower (or less accurate) for certain
  4    only with --strict: too noisy to say
  5    weir fleet: a node is not fit for work; the reason is one line on stderr
  130  interrupted by Ctrl-C or SIGUSR1 (143 by SIGTERM, 129 by SIGHUP, which
       comes when the terminal is closed): the iteration was finished, and what
       was measured is written. A second signal ends within a second, a third at
       once; what was written before is kept, child processes and temporary
       files are not. Under nohup, SIGHUP is ignored
  141  standard output was a pipe, and its reader has gone (weir list | head).
       Files are written all the same; no message

What cannot be written to standard output for another reason (a full disk, a
closed descriptor) is one message at the end, and 1 in place of 0. Standard
error that cannot be written changes no code.

Commands that run a program of yours (profile --, sched run --, amd capture --)
end with the program's own code, and with 1 where nothing could be captured.

In scripts: a gate is `weir compare a.json b.json`; it fails
a job by 3, and with --strict also by 4. More: docs/statistics.md.
)"},
    {"devices", "where work can run, and what --device takes",
     R"(  auto      the first GPU that is found, else cpu
  cpu       a software GPU: streams, events, graphs and hardware queues on the
            host's cores. It computes everything, and is the reference
  null      runs nothing: what the toolkit itself costs, the floor
  sim:NAME  a GPU in virtual time: real hardware-queue behaviour without the
            hardware, the same numbers on every machine. sim:FILE is a profile
            of your own, --sim name=value changes one setting
  cuda:N    NVIDIA, by the CUDA driver
  hip:N     AMD, by ROCm
  opencl:N  anything with an OpenCL driver

`weir info` shows what is here, what is not and why. Vendors' libraries are
opened when a device is asked for, never before: the program starts anywhere.
Counts of hardware queues are read by drivers once, at their start:
CUDA_DEVICE_MAX_CONNECTIONS and GPU_MAX_HW_QUEUES (see `weir help environment`).
More: docs/backends.md, docs/sim.md, docs/opencl.md.
)"},
    {"terms", "streams, queues, channels, steps: our words",
     R"(  host thread --enqueue--> channel --submit--> stream --launch--> hardware queue
      --start/end--> kernel --finish--> step

  command   one unit of GPU work: kernel, copy, collective or host function
  step      one iteration of a workload: commands, and the order that follows
            from what they read and write
  workload  a recipe that builds a step for given sizes and a stream count
  channel   carries commands between host threads, before any driver is called
  stream    an in-order sequence of commands, as the program sees it
  queue     a hardware queue; several streams may share one, and then wait for
            each other without a reason in the program
  placement which stream each command goes to
  sample    one measured iteration; a run has many
  segment   the part of a step that graph mode captures as one graph
  timeline  when each command was enqueued, submitted, launched, started, ended
  rank      one process of a multi-process run

More: docs/architecture.md, docs/queues.md, docs/channels.md.
)"},
    {"statistics", "units, percentiles, intervals and verdicts",
     R"(Times in files are nanoseconds (latency_ns), sizes are bytes, rates are per
second in the workload's unit. A value that is not known is null, never 0, and a
reason stands beside it.

  p50 p95 p99   of the samples, linear between neighbours
  interval      95 %, by bootstrap over blocks of neighbouring samples, so that
                iterations that depend on each other do not make it too narrow.
                None below 5 samples (p95: 40, p99: 200)
  floor         the same step on the null device: what the toolkit costs
  tracing       timing comes from a pass without it; the timeline from another
                one, and what tracing cost is said

A comparison is `slower` or `faster` where processes differ by more than chance
(p below 1 %) and the ratio is beyond --threshold; `same` where its interval is
within; else `ambiguous`. Five processes on each side can show a change; for one
`weir calibrate` must know what differs from process to process.
More: docs/method.md, docs/statistics.md.
)"},
    {"files", "what is written where, and how to read it",
     R"(Every document names its schema ("schema": "weir.result/2"); docs/schema has a
JSON Schema of each. A new number means that old readers would misread it;
keys may be added without one. Version 1 is still read. Times end in _ns, sizes
in _bytes, rates in _per_s; quantiles are under them: latency_ns.p50.

  weir run -o FILE        weir.result/2, with all samples and the environment
  weir sweep              weir.sweep/1: results/sweep-WORKLOAD-DEVICE.json
  weir run CLASS          results/CLASS: a sweep per workload, and report.html
  weir profile -o FILE    a trace for Perfetto (Chrome/Kineto JSON), or CSV
  weir analyze --json     weir.analysis/2
  weir queues ... -o FILE weir.queues/2
  weir overlap -o DIR     summary.json (weir.overlap/2), traces, report.md
  weir bench              reports/: summary.json (weir.bench/2), one per kernel
  weir report -o FILE     one HTML page; -o FILE.json: weir.report/2
  weir fleet probe -o DIR weir.fleet_probe/1 per node; fleet.json: weir.fleet/1
  weir history            one SQLite file, or a PostgreSQL database (--db)
  weir channel            .weir/channel: baselines

Files are written under another name first and renamed, so none is ever half
written. A name that you give is replaced only with --force. Where a name that
weir chose is taken, the next run writes NAME-2, NAME-3, ... instead; --force
replaces NAME, --resume continues the newest. Baselines, which are found by
their names, are replaced by newer ones (docs/configuration.md). .gz, .zst, .xz
and .bz2 files are read as they are.
)"},
    {"environment", "environment variables that are read",
     R"(Of this program
  WEIR_SCHED_SOCKET      where the scheduler's daemon listens (weir sched)
  WEIR_SCHED_TERMS       set by `weir sched run`: the program's priority
  WEIR_CUPTI_LIBRARY     the CUPTI library for `weir profile --`, `weir record`
  WEIR_CAPTURE_FOLDER    set by `weir profile --` for the program that it runs,
  WEIR_CAPTURE_LIMIT     like these three
  WEIR_CAPTURE_LATENCY
  WEIR_CAPTURE_WHOLE_GRAPHS
  WEIR_RECORD_FOLDER     set by `weir record` for its program, like these four:
  WEIR_RECORD_BYTES, WEIR_RECORD_EXACT, WEIR_RECORD_OFF, WEIR_RECORD_HANG
  WEIR_RACE_FOLDER       set by `weir race` for the program that it runs
  WEIR_TERMINAL          set by `--ranks` for rank 0: its progress is a line
Of drivers; they are read once, at the start of a process
  CUDA_DEVICE_MAX_CONNECTIONS   hardware queues on NVIDIA GPUs: 8, up to 32
  GPU_MAX_HW_QUEUES             hardware queues per process on AMD GPUs: 4
  DEBUG_HIP_IGNORE_STREAM_PRIORITY   0 lets stream priorities count
  CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES   which GPUs
  CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY   an MPS (weir sched)
  CUDA_INJECTION64_PATH         another tool's library; then we stay out
  NVTX_INJECTION64_PATH         the same, for ranges that programs name
Of the system
  CXX                    compiler of kernel packages (weir bench) and, on the
                         cpu, of compiled regions (default c++)
  XDG_CACHE_HOME, HOME   what was compiled: ~/.cache/weir
  XDG_STATE_HOME, HOME   what `weir calibrate` found: ~/.local/state/weir
  XDG_RUNTIME_DIR        the scheduler's socket, recordings (weir record)
  TMPDIR                 temporary files; recordings, where nothing else is left
  PATH                   mpirun, rocprofv3 and programs after --
  SLURMD_NODENAME, SLURM_LOCALID   a node, and its task that probes it
  SLURM_TOPOLOGY_ADDR, SLURM_TOPOLOGY_ADDR_PATTERN   its switches
  HWLOC_COMPONENTS       for mpirun; without OpenCL where it is not set
  COLUMNS                width of reports, 40 to 80; without it the terminal's
  LD_LIBRARY_PATH, LD_PRELOAD, TERM   as everywhere
  GITHUB_ACTIONS, GITHUB_STEP_SUMMARY, GITHUB_OUTPUT   for --github

Every known variable that can change a measurement (of CUDA, HIP, NCCL, OpenMP
...) is kept in the result, so that you see what differed between two runs.
)"},
    {"configuration", "YAML files: workloads, scenarios, devices, kernels",
     R"(  a workload    `weir run --file FILE`: commands, buffers, streams, parameters
                (docs/yaml.md)
  a scenario    `weir overlap FILE --set key=value`: model, sharding, network;
                `weir overlap --list` lists the keys (docs/overlap.md)
  a device      `--device sim:FILE`: a simulated GPU (docs/sim.md)
  a kernel      bench.yaml beside kernel.cpp, kernel.cu ... (docs/bench_yaml.md)

Files that come with the program are known by their names, wherever it is
installed: `weir run --file fork_join`, `weir overlap slow_network`. A file of
that name in the working folder comes first. They lie in share/weir beside bin,
to be copied and changed.

Unknown keys are refused with the nearest one that there is; messages name file
and line.
)"},
    {"troubleshooting", "what to look at when something is odd",
     R"(A GPU is not found         `weir info` says why: no driver, no device file, or a
                           library that is too old. Containers need the GPU.
Results differ each time   look at the noise ratio (p99/p50) and the warnings;
                           fix the clocks, stop other programs, more iterations.
More streams do not help   `weir queues map` shows streams that share a queue,
                           `weir queues cost` what that costs and what to set.
Output is wrong (exit 1)   the report names the earliest wrong command; run with
                           --device cpu and --placement serial to compare.
It hangs                   --hang-timeout 30s says where each stream, rank and
                           host thread stands (docs/hangs.md); for a program of
                           yours: weir record --hang-timeout 60s -- PROGRAM
Communication is exposed   `weir overlap` names the cause (docs/overlap.md).
A trace cannot be read     `weir analyze FILE --input-format NAME`; what cannot
                           be read is counted, with the first line of each.
It happens once a day      `weir record -- PROGRAM` keeps the seconds before it
                           (docs/record.md).
MPI is missing             `weir info` says so; install Open MPI, build again.
No live view, no .gz, ...  `weir --version` lists what this build has.

More: docs/troubleshooting.md.
)"},
    {"reproducing", "how to measure a number again, here and elsewhere",
     R"(A result holds what is needed: the command line, the commit, every parameter,
the seed, the device and its driver, clocks and governor, and the environment
variables that matter. Inputs depend on the seed alone, bit for bit the same on
every device.

  1. The same build: `weir --version` prints version and commit.
  2. The same command: "command_line" in the file.
  3. The same variables: "environment" in the file, compared by eye or by
     `weir compare`, which says what differs.
  4. Without the machine: --device sim:NAME gives the same numbers anywhere.
  5. Then `weir compare theirs.json yours.json`.

More: docs/method.md.
)"},
};

}  // namespace

std::span<const Topic> topics() { return kTopics; }

const Topic* topic_named(std::string_view name) {
  const auto all = topics();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Topic& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace weir::cli
