#include "cli/manual/manual.h"

#include <algorithm>
#include <vector>

namespace weir::cli {
namespace {

constexpr ManualEntry kRunning[] = {
    {"list",
     "What each is: [workloads](workloads.md). With `-v` also what each must show, how its work scales, its roles, "
     "and its parameters with range and defaults at each scale.",
     R"(weir list
weir list -v --category latency_sensitive
weir list --file fork_join)"},
    {"info",
     "Devices found and why others are not, driver versions, the settings that decide about hardware queues, what was "
     "left out of the build, and which MPI there is.",
     R"(weir info
weir info --json)"},
    {"run",
     R"(One workload, one stream count, one result; or a class of workloads. What the numbers mean: [method](method.md).

- `--file` takes a path, or the name of a workload file that comes with the program: `fork_join`, `pipeline` ([yaml](yaml.md)).
- `--submit`: `inline` is one host thread; `threads:k` k of them, each with its own streams; `graph` one launch per segment of the step; `channel:NAME:k` k producers and a thread that submits ([channels](channels.md#submitting-through-a-channel)); `--schedule` puts a policy before the device ([scheduling](scheduling.md)).
- `--sync-mode`: see [method](method.md#sync-modes).
- `--device`: no GPU is touched unless it is asked for. `sim:h200` is a GPU in virtual time ([sim](sim.md)), `sim:FILE` a profile of yours.
- `--compute-units`: neighbouring streams get neighbouring units, and begin again where all are given away. AMD: a CU mask; such streams have no priority, and a queue of their own each. NVIDIA since CUDA 12.5: green contexts; the driver rounds up (to 8s on compute capability 9), priorities stay, more streams than parts share them in turn. Results say what was given.
- `--processes`: the run again in new processes, because processes differ by more than samples within one show ([method](method.md#several-processes)).
- `--ranks`: starts `mpirun` itself ([ranks](ranks.md)).
- `--hang-timeout`: exit code 1, with a report of every stream, rank and host thread ([hangs](hangs.md)).
- `--no-check`: how outputs are checked otherwise is in [workloads](workloads.md#how-outputs-are-checked).

A class (`P0`, `P1`, `P2`, `P3`, `all`) runs all its workloads, one file each; with `--streams 1..16:x2` each as a sweep (counts that a workload does not take are left out, with a note). It goes on past a failure and exits 1 if any failed; `--resume` as for a sweep. It ends with `report.html` in the same folder (what `weir report` makes of the files), the findings that matter most, and commands to try next.

`--dot` makes a picture: a row per stream, colours by role, shapes by kind, an arrow wherever a stream waits for an event of another, and dashed ones for waits between iterations (only made where iterations are pipelined: `--sync-mode end_only` and `none`). Steps of more than 240 commands are drawn in summary: runs of commands of one role between waits become one node, and where that is not enough, longer runs; the title says which.

Ctrl-C (or SIGTERM, or SIGHUP when the terminal is closed) finishes the current iteration, checks, saves and prints what there is, and exits 130 (143 by SIGTERM, 129 by SIGHUP). A second one ends within a second. Under `nohup` a closed terminal changes nothing.)",
     R"(# software GPU, and a GPU in virtual time: both need no hardware
weir run hetero_kernels --device cpu --scale tiny
weir run hetero_kernels --device sim:h200 --streams 16 -o result.json
# a workload from a file, drawn and not run
weir run --file fork_join --device cpu --scale tiny --dry-run --dot step.dot
# all workloads of a class
weir run P0 --device cpu --scale tiny --iterations 3 -o p0)"},
    {"sweep",
     R"(Counts are lists (`1,2,4`), ranges (`1..8`), doubling (`1..64:x2`) or steps (`16..64:+16`). Several ways of `--submit`, policies of `--schedule` and counts of `--compute-units` are a curve each. The other flags are those of `weir run`.

Every point is saved as it finishes; `--resume` continues after a kill and repeats nothing.)",
     R"(weir sweep moe --device sim:h200 --streams 1..32:x2 -o sweep.json
weir sweep tiny_kernel_stress --device cpu --scale tiny --iterations 5 \
  --streams 1,2,4 --submit inline,threads,graph)"},
    {"compare",
     R"(Recognises what it is given, and judges it by the rules for that:

| given | judged |
| --- | --- |
| results, sweeps, folders of them | below |
| traces that `weir analyze` reads | kernels and categories of time ([traces](traces.md)) |
| folders of `weir overlap`, or their `summary.json` | step time and exposed communication, efficiency beside them; the points of two sweeps are paired by their settings ([overlap](overlap.md)) |
| folders of `weir bench`, or their `summary.json` | time and accuracy of each case ([bench_regressions](bench_regressions.md)) |
| documents of `weir channel` | each benchmark ([channels](channels.md)) |
| folders of `weir amd capture`, logs of ROCm's runtime, and with `--queues` traces | nothing: differences are listed, and which preemption would fit ([amd_compare](amd_compare.md)) |

Pairs results by workload, parameters, stream count, number of ranks, submit mode, placement and sync mode, and judges latency and throughput of each pair: same, faster, slower or ambiguous, with ratio and interval. Reads `weir.result/2`, `weir.sweep/1`, folders of them, and AORTA's single and sweep results. How verdicts are made: [statistics](statistics.md).

What one process measures says little about the next: both sides need several (`--processes 5`, or a folder of results), or the spread between processes must be known, from `weir calibrate` or from a history. Otherwise the verdict is ambiguous, and a note has the command that settles it. Simulated devices have virtual time, which is the same in every process.)",
     R"(weir run hetero_kernels --device sim:h200 -o before.json --quiet
weir run hetero_kernels --device sim:h200 -o after.json --quiet
weir compare before.json after.json
weir run hetero_kernels --device sim:h200 --json | weir compare before.json -)"},
    {"calibrate",
     R"(Runs the same steps again and again, each time in a new process, and keeps how much their medians differ in `~/.local/state/weir/calibration.json` (`$XDG_STATE_HOME`), by machine, device and step. `weir compare` judges files of one process with it: a step that was calibrated by its own spread, any other by the widest of its kind (bound by the host or by the device). [statistics](statistics.md#one-process-on-a-side) has the rule.)",
     R"(weir calibrate moe --device cpu --scale tiny --processes 5 -o spreads.json)"},
    {"try",
     "Runs any program again and again with different environment variables, or different commands, each trial in a "
     "process of its own and in random order. Names the setting that makes it fail, compares speed, and leaves out "
     "what "
     "is already clear, instead of running the full matrix. Every trial is kept; `--resume` continues after a kill. "
     "How "
     "it decides, and how often that is wrong: [try](try.md).",
     R"(weir try --env NCCL_ALGO=,Ring,Tree --trials 3 -- true   # exit 3 if worse
weir try --metric 'rate ([0-9.]+)' --higher-is-better \
  'echo rate 10' 'echo rate 11')"},
    {"race",
     R"(Runs any CUDA program again and again: plainly, to see which outputs are always the same; once observed, to see which commands nothing orders; and with delays of a few hundred microseconds before some commands, in their streams. An output that changes then depends on an order that nothing in the program ensures. The delays are taken away until one is left, and waits are put in from outside until the output is right again although the delay stays: that names the two commands and the call that is missing. What it can and cannot see: [race](race.md).

The document, `results/race.json` if a race is found, is also what `--replay` reads: it runs the same delays ten times, with `--verify` also with the wait, and says how often the output changed. Numbers that are times or rates (`3.2 s`, `120 it/s`, `10:31:02`) are left out of standard output. A workload instead of a program is checked as it is (`--device cpu` or `sim`), and with `--inject-missing-wait N` with waits taken away, each of which must be found.)",
     R"(weir race moe --device sim --streams 4 --inject-missing-wait 2   # exit 3
weir race -- python3 docs/examples/train.py   # needs an NVIDIA GPU)"},
    {"profile",
     R"(A timed pass without any tracing, then a traced one; says what tracing cost, where commands spend their time hop by hop, and writes the timeline. What each number means on which device: [profile](profile.md). The trace has `.gz` from 200,000 commands on; with `--ranks` each rank writes its own: `trace.rank0.json` ... Iterations of a trace are fewer where they would be more than 400,000 commands. Ctrl-C finishes the current iteration and writes what was traced so far (130). `--device null` has no timeline and is refused; CUDA with `--submit graph` has none either, and says why (1).

`weir profile -- PROGRAM ARGUMENTS` profiles an unmodified program: CUDA ones with a library that the driver loads into them (it uses CUPTI), AMD ones with `rocprofv3`. Standard input, output and errors are the program's, the summary goes to stderr (`--json`: to stdout), signals sent to `weir` go on to the program; once that has ended, Ctrl-C stops reading its records (130). Several processes with commands become several files: `trace.process4711.json`. The exit code is the program's where that is not 0, and 1 where nothing was captured.

`WEIR_CUPTI_LIBRARY` names the CUPTI library to use; otherwise it is the one that the program has loaded already, then the toolkit's.)",
     R"(weir profile hetero_kernels --device cpu --scale tiny -o trace.json
weir profile moe --device sim:h200 --trace-format csv -o trace.csv)"},
    {"record",
     R"(Runs an unmodified program with a recorder in it that costs next to nothing, and keeps the last commands and calls of each of its processes in a file in memory, which survives the death of the program and of `weir`. What it keeps, what triggers a dump, and what is known without `--exact`: [record](record.md). Standard input and output are the program's, and so is the exit code; signals sent to `weir` go on to the program. Recordings are removed where the program ends with exit code 0, unless `--keep` or `-o` is given; what remains for more than a day, and whose processes are dead, is removed when the next recording begins.

`WEIR_CUPTI_LIBRARY` names the CUPTI library to use, as for `weir profile`.)",
     R"(weir record -- python3 docs/examples/train.py
weir record --hang-timeout 60s -- python3 docs/examples/train.py)"},
    {"record dump",
     "Works while the program runs and after it was killed; the traces are read by Perfetto and by `weir analyze`. A "
     "process id is that of the program, or of its `weir record`, which stands for all its processes.",
     ""},
    {"record on", "Returns when the program has obeyed, which takes some hundredths of a second.", ""},
    {"record off", "While it is off nothing is recorded, and what was recorded before is kept.", ""},
    {"record list", "", "weir record list"},
    {"record hang",
     "The same answer as `weir record --hang-timeout` gives, at any time: of running programs, and of recordings that "
     "were gathered from several machines ([hangs](hangs.md#programs-that-are-not-ours)). Stacks need a program that "
     "was started with `--hang-timeout`.",
     ""},
    {"advise",
     R"(Replays a trace's own dependencies, checks that the replay takes as long as the trace, then changes one thing at a time: hardware queues, synchronisations, graphs, data, priorities, the order of launches, a faster host, kernels or communication that take less. Says what to do first, or to leave it where nothing gains 2 %. The document is [weir.advice/1](schema/weir.advice.1.json); how it works, and how right it was: [advise](advise.md).)",
     R"(weir profile speculative_decode --device sim:h200 --streams 8 \
  --scale tiny -o decode.json
weir advise decode.json
weir advise decode.json --prove --trials 2 -- true)"},
    {"analyze",
     "Formats, definitions and figures: [traces](traces.md). By default files of different ranks are put together, "
     "and `--ranks` says that two of the same rank are one job; two runs are compared by `weir compare`. What would "
     "need more than "
     "`--memory` is refused with the figure.",
     R"(weir profile hetero_kernels --device sim:h200 -o spans.json --quiet
weir analyze spans.json
weir analyze spans.json --format markdown -o spans.md --svg spans.svg)"},
    {"report",
     "One self-contained page, no network: the verdict first, then curves, distributions, timelines and the "
     "environment. What it shows of what: [report](report.md).",
     R"(weir sweep moe --device sim:h200 --streams 1..8:x2 -o curve.json --quiet
weir report curve.json -o curve.html -o curve.report.json)"},
    {"export", "Figures of results for other programs: Prometheus reads the one, spreadsheets and pandas the other.",
     R"(weir run hetero_kernels --device sim:h200 -o exported.json --quiet
weir export exported.json -o exported.prom
weir export exported.json --format csv --samples)"},
};

constexpr ManualEntry kHistory[] = {
    {"history",
     "Results over time in one SQLite file or a PostgreSQL database, machines kept apart, and where a series changed: "
     "[history](history.md).",
     R"(weir run hetero_kernels --device sim:h200 -o monday.json --quiet
weir history add monday.json --tag nightly --db weeks.db
weir history list --db weeks.db)"},
    {"history add", "The same result is never added twice; an entry is added whole or not at all.",
     R"(weir run hetero_kernels --device sim:h200 --streams 4 -o tuesday.json --quiet
weir history add tuesday.json --tag nightly --db weeks.db)"},
    {"history list", "", "weir history list --db weeks.db"},
    {"history show", "", "weir history show 1 --db weeks.db"},
    {"history trend",
     "Exits 3 with `--gate` where the latest change is for the worse; the page says what counts as one: "
     "[history](history.md).",
     "weir history trend hetero_kernels --db weeks.db"},
    {"history remove", "With `--before`, `--dry-run` says first what would go.",
     R"(weir history remove 2 --db weeks.db
weir history remove --before 90d --keep-daily --dry-run --db weeks.db)"},
    {"history export", "", "weir history export --db weeks.db"},
};

constexpr ManualEntry kQueues[] = {
    {"queues",
     R"(Experiments on hardware queues: what each measures and what its numbers mean is in [queues](queues.md).

Of the devices cpu and sim `--hw-queues` sets the count. Of a GPU it is set by `CUDA_DEVICE_MAX_CONNECTIONS` (CUDA) or `GPU_MAX_HW_QUEUES` (HIP) before the program starts; `switch` and `sweep` take lists and set it for processes of their own. `null` runs nothing and is refused.

`map` exits 1 where the number of queues could not be found, `sweep` where a point failed. `sweep` and `convoy` start processes and refuse to run under `mpirun`. Ctrl-C ends them with their processes (130).)",
     "weir queues map --device sim:h200"},
    {"queues map",
     "Without a workload a step of the lab's own is read. `--streams` from 2 to 1024, at least 40 are probed; "
     "`--confidence` from 50% to 99.9999%.",
     R"(weir queues map --device sim:h200 -o map.json
weir queues map hetero_kernels --device cpu --hw-queues 4)"},
    {"queues limits", "`--streams` from 2 to 1000, `--launches` from 1 to 100000.",
     "weir queues limits --device sim:h200"},
    {"queues switch",
     "`--hw-queues` takes a list here: on a GPU each count in a process of its own. `--hops` from 2 to 2000, not fewer "
     "than streams.",
     "weir queues switch --device sim:h200 --hw-queues 1,2,4,8 --streams 1..16:x2"},
    {"queues cost",
     "`--verify` and `--verify-all` measure in new processes: `--processes` rounds, each with the present setting too. "
     "`--save-profile` writes the calibrated device as YAML, for `--device sim:FILE`.",
     "weir queues cost --file depth_first --device sim:h200 --streams 32"},
    {"queues sweep",
     "`--scale` and `--param name=v1,v2` take several values as well. Stream counts that the workload does not take "
     "are "
     "left out.",
     R"(weir queues sweep tiny_kernel_stress --device sim:h200 --hw-queues 1,8 \
  --streams 8 --scale tiny --processes 1 -o queue_sweep.json)"},
    {"queues convoy",
     "It chooses the queue counts itself, so it takes no `--hw-queues`. Each stream needs a queue of its own in two of "
     "the cases.",
     "weir queues convoy --device sim:h200 --streams 4"},
    {"queues fairness", "", "weir queues fairness --device sim:h200 --streams 16"},
};

constexpr ManualEntry kOverlap[] = {
    {"overlap",
     R"(Trains a ranking transformer with FSDP2 or DDP semantics and real collectives between ranks, and says how much of the communication compute hid and why not the rest; what is measured, and what the files hold: [overlap](overlap.md).

- CONFIG is a YAML file of your own, one of AORTA's, or the name of one that comes with the program: `default`, `ddp`, `slow_network` ...
- `--set` of a key that the config sweeps: it has this one value, and is no longer swept.
- `--ranks` is the same as `run.ranks` in the config; where both are given they must agree ([ranks](ranks.md)).
- `--hang-timeout` is on by default, unlike that of `weir run`.
- `--output`: numbered where the default folder exists; must be empty. A sweep makes a folder for each point in it.
- `--summary` takes no `--output`, and no sweep.
- `--env` and `env:` of the config run each value in processes of its own; `--no-env` leaves the config's out.
- `--json`: of a sweep, a list of `{assignments, summary, failure}`.)",
     R"(weir overlap --list
weir overlap default --device cpu --ranks 2 --set run.scale=tiny \
  --set run.iterations=5)"},
    {"overlap tune",
     "Searches prefetch, resharding, buckets, placement, streams and hardware queues for the least exposed "
     "communication, each trial a process of its own, and shows which settings nothing else beats in both step time "
     "and "
     "memory. The search starts from CONFIG; one that sweeps is refused. No trial begins that would end after "
     "`--budget`, but one is always made. Exits 1 where every trial failed.",
     R"(weir overlap tune default --device cpu --set run.scale=tiny \
  --set run.iterations=5 --budget 1s -o trials.json)"},
    {"overlap sweep",
     "Runs a GEMM of each size beside a collective of each kind and message size: each alone, and both at once, on all "
     "ranks. Algorithm and bus bandwidth are those of nccl-tests; what overlap hides and what each side loses to the "
     "other is defined in [overlap](overlap.md#one-gemm-and-one-collective). Each value of `--env` has processes of "
     "its "
     "own. Exits 1 where a point failed.",
     R"(weir overlap sweep --device sim:h200 --gemm 1024,4096 \
  --bytes 1M,16M -o points.json)"},
};

constexpr ManualEntry kMeasuring[] = {
    {"channel",
     "Measures host channels against each other, against floors and other people's queues, in several processes with "
     "shuffled orders. How to read the tables: [channels](channels.md#weir-channel).",
     R"(weir channel --list
weir channel ping_pong --quick)"},
    {"conformance",
     "Kernels, streams, events, graphs, copies, timelines, errors and more, on each device; see "
     "[conformance](conformance.md). Results are saved after each device. Devices that `--all` cannot open are named "
     "with the reason.",
     R"(weir conformance --list
weir conformance --device sim:h200 --filter gemm)"},
    {"watch", "The view, and the keys that change it: [watch](watch.md).",
     R"(weir watch --source device --device cpu --scale tiny --once
weir watch --source device --device sim:h200 --scale tiny --once --json)"},
    {"fleet report",
     "Compares what `weir fleet probe` wrote on many nodes, and names the devices, nodes, switches and links that are "
     "slow, wrong or worn, with the likely cause. How devices are judged: [fleet](fleet.md#how-devices-are-judged).",
     R"(weir fleet probe --device cpu --budget 1s -o node.json -f
weir fleet report node.json)"},
    {"probe", "Asks the user's own program, not weir's devices: [probe](probe.md).", "weir probe priority --snippet"},
    {"probe priority",
     "Starts the Python that is named after `--` several times with a script of ours, which uses the torch that it "
     "finds "
     "there; what follows the Python, such as your script, is not run. `--snippet` prints that script for a machine or "
     "a "
     "container without weir, and `--samples` judges what it printed: [probe](probe.md).",
     R"(weir probe priority --snippet > probe.py
weir probe priority -- python3 train.py   # needs an NVIDIA GPU)"},
    {"fleet probe",
     "What is measured, how devices are judged, and how it runs in a cluster: [fleet](fleet.md). Started by `srun` or "
     "`mpirun`, each node probes once, and the first process compares all of them.",
     R"(weir fleet probe --device sim:h200
weir fleet probe --device cpu --budget 1s -o node.json -f)"},
    {"bench",
     R"(Finds kernel packages (folders with `kernel.cpp`, `kernel.cu`, `kernel.cl`, ..., a library or an executable), measures each in processes of its own, checks results against a reference, writes reports and compares with a baseline. What a package is, and what the reports hold: [bench](bench.md); how it measures: [bench_method](bench_method.md); when a slowdown is certain: [bench_regressions](bench_regressions.md).

Backends that `--device` names and that are not here are reported as skipped. `--path` finds the packages that come with the program by their names: `softmax`, `spmv`.)",
     R"(weir bench --path reduction --device cpu --list
weir bench --path reduction --device cpu --precision fp32 --iterations 5)"},
    {"preempt",
     "What is measured, and what the curves mean: [preemption](preemption.md). Mechanisms that the device does not "
     "have "
     "are listed with the reason. Exits 1 where work was lost or repeated.",
     R"(weir preempt --device sim:h200 --quick --mechanisms none,priority)"},
};

constexpr ManualEntry kAmd[] = {
    {"amd",
     "AMD's hardware queues from the outside: [amd](amd.md) shows how the commands belong together. "
     "`docs/examples/amd` "
     "has captures to try them on; packages install it in `/usr/share/doc/weir`.",
     "weir amd capture --dry-run -- sleep 1"},
    {"amd capture",
     "Runs a program with ROCm's log on, and keeps log, kernel trace and KFD's state in one folder with a manifest. "
     "`--dry-run` prints the commands and changes nothing. Exit code: the program's ([amd_capture](amd_capture.md)).",
     R"(weir amd capture --dry-run -- sleep 1
sudo weir amd capture -o run1 -- weir run moe --device hip)"},
    {"amd log", "The lines that are read, and what follows from them: [amd_log](amd_log.md).",
     "weir amd log docs/examples/amd/a/log.txt"},
    {"amd hqd", "Decoded queue by queue: [amd_hqd](amd_hqd.md).",
     R"(weir amd hqd docs/examples/amd/a/snapshots/during-01
sudo weir amd hqd --live)"},
    {"amd ftrace", "What KFD did, preemption times, answers: [amd_ftrace](amd_ftrace.md).",
     "weir amd ftrace docs/examples/amd/a/ftrace.txt"},
    {"amd join",
     "A row per hardware queue from stream to slot, clocks aligned with their error, one timeline: "
     "[amd_join](amd_join.md).",
     "weir amd join docs/examples/amd/a --timeline timeline.json"},
    {"amd roadmap",
     "Captures case A and case B (or takes two captures), compares them, and judges the queue roadmap: its targets, "
     "and its checklist with the evidence for each point: [amd_roadmap](amd_roadmap.md).",
     "weir amd roadmap --device sim:mi300x --seconds 1s   # exit 3 if missed"},
    {"amd queues",
     "Lists the queues of a process that runs, through the driver's debug interface; with --suspend also suspends and "
     "resumes them, and says how long that took: [amd_queues](amd_queues.md).",
     "weir amd queues 4711 --suspend --iterations 100   # needs an AMD GPU"},
};

constexpr ManualEntry kSched[] = {
    {"sched",
     "A scheduler for programs that share a GPU: [scheduling](scheduling.md). What of a program is held and what is "
     "not: [scheduling_cuda](scheduling_cuda.md).",
     R"(weir sched start --policy priority
weir sched run --priority high -- weir run moe --device cpu --scale tiny
weir sched status
weir sched stop)"},
    {"sched start",
     "The daemon is this user's, and goes on in the background unless `--foreground`. `--mechanism kfd_suspend` takes "
     "the queues of a waiting program off an AMD GPU, which pauses all programs there for a moment. "
     "`mps_priority`, `mps_share`, `partition` and `auto` start an MPS for programs on NVIDIA GPUs, which share faults "
     "there: [scheduling](scheduling.md#mechanisms).",
     R"(weir sched start --policy time_slice --slice 5ms
weir sched stop)"},
    {"sched run",
     "`--weight` and `--deadline` are for the policies `weighted_fair` and `earliest_deadline`, "
     "`--share` and `--isolate` for mechanisms over [MPS](scheduling.md#mps). The exit code is the program's.",
     R"(weir sched start
weir sched run --priority low -- weir run moe --device cpu --scale tiny
weir sched stop)"},
    {"sched status", "", R"(weir sched start
weir sched status --json
weir sched stop)"},
    {"sched top", "", R"(weir sched start
weir sched top --once
weir sched stop)"},
    {"sched stop", "", R"(weir sched start
weir sched stop)"},
};

constexpr ManualEntry kHelp[] = {
    {"help",
     "`weir help run` is `weir run --help`; topics are pages on what several commands share. This page of the docs is "
     "what `--markdown` prints, and a test compares them; `--man` prints the manual page that is installed.",
     R"(weir help
weir help exit-codes
weir help queues map)"},
    {"completion",
     R"(Prints a script for the shell, which asks the program itself at each TAB what may follow: commands, flags, workloads and their parameters, devices, ready scenarios. That takes some 10 ms and opens no GPU driver: GPUs are offered by their device files. Packages install the scripts where shells look for them. Otherwise:

- bash: `source <(weir completion bash)`, in `~/.bashrc`
- zsh: `weir completion zsh > ~/.zfunc/_weir`, where `fpath=(~/.zfunc $fpath)` comes before `compinit` in `~/.zshrc`
- fish: `weir completion fish > ~/.config/fish/completions/weir.fish`)",
     "weir completion bash > weir.bash"},
};

std::vector<ManualEntry> gathered() {
  std::vector<ManualEntry> all;
  const auto add = [&](std::span<const ManualEntry> part) { all.insert(all.end(), part.begin(), part.end()); };
  for (const std::span<const ManualEntry> part : std::initializer_list<std::span<const ManualEntry>>{
           kRunning, kHistory, kQueues, kOverlap, kMeasuring, kAmd, kSched, kHelp})
    add(part);
  return all;
}

}  // namespace

std::span<const ManualEntry> manual() {
  static const std::vector<ManualEntry> kAll = gathered();
  return kAll;
}

const ManualEntry* manual_entry(std::string_view command) {
  const auto all = manual();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ManualEntry& each) { return each.command == command; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace weir::cli
