#!/bin/bash
# Shows that a new workload, importer, command, kernel, mechanism, policy and document is one file and its name in one list: adds
# one of each to a copy of the tree, builds it and finds all of them where users look: list, help, reference, completion, a run.
# usage: one_of_each.sh    JOBS: parallel jobs
set -eu
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

plant() { # source, list, macro, how the list names it; the source comes from stdin
  local name
  name=$(basename "$1" .cpp)
  cat >"$copy/$1"
  # After the last name of "#define MACRO a(), b()" or "#define MACRO(document) document(a) document(b)", which may go on over
  # several lines.
  awk -v macro="#define $3" -v entry="${4:-, $name()}" '
    index($0, macro) == 1 { inside = 1 }
    inside && !/\\$/ { $0 = $0 entry; inside = 0; found = 1 }
    { print }
    END { exit !found }' "$copy/$2" >"$copy/list" || { echo "$2 has no $3" >&2; exit 1; }
  mv "$copy/list" "$copy/$2"
}

git ls-files -z | xargs -0 tar cf - | tar xf - -C "$copy"

plant src/step/workload/planted_workload.cpp src/step/workload/list.h WEIR_WORKLOADS <<'CPP'
// Planted: one kernel per stream.
#include "step/workload/list.h"

namespace weir::workload_list {

Workload planted_workload() {
  return {.name = "planted_workload",
          .summary = "One planted kernel per stream",
          .category = "latency_sensitive",
          .unit = "kernels/s",
          .shows = "that a file and a name are enough",
          .streams = {1, 2, 64},
          .params = {integer_param("size", "elements", {16, 32, 64}, 1, 65536)},
          .build = [](const Params& params, int streams) {
            const std::int64_t n = params.integer("size");
            StepBuilder step(params.seed);
            for (int s = 0; s < streams; ++s) {
              const BufferId in = step.uniform(ElementType::f32, static_cast<std::uint64_t>(n));
              const BufferId out = step.output(ElementType::f32, static_cast<std::uint64_t>(n));
              step.launch("planted_kernel", {.stream = static_cast<StreamId>(s)},
                          {.type = ElementType::f32, .dims = {n, 0, 0, 0}}, {{in}, {out}});
            }
            step.work(streams);
            return std::move(step).seal(streams);
          }};
}

}  // namespace weir::workload_list
CPP
plant src/kernel/planted_kernel.cpp src/kernel/list.cpp WEIR_KERNELS <<'CPP'
// Planted: twice its input.
#include "kernel/body.h"

namespace weir::catalogue {

Kernel planted_kernel() {
  return {.name = "planted_kernel",
          .summary = "twice its input",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0]}; },
          .cost = [](const KernelShape& shape) { return Cost{shape.dim(0), 8 * shape.dim(0)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
          .run_block =
              [](const KernelCall& call, std::uint32_t block) {
                const Range range = block_range(call.shape.dims[0], kBlockElements, block);
                for (std::int64_t i = range.begin; i < range.end; ++i)
                  operand<float>(call, 1)[i] = 2 * operand<const float>(call, 0)[i];
              },
          .reference =
              [](const KernelCall& call) {
                for (std::int64_t i = 0; i < call.shape.dims[0]; ++i)
                  operand<float>(call, 1)[i] = operand<const float>(call, 0)[i] + operand<const float>(call, 0)[i];
              },
          .geometry = element_geometry};
}

}  // namespace weir::catalogue
CPP
plant src/trace/import/planted_format.cpp src/trace/import/list.h WEIR_IMPORTERS <<'CPP'
// Planted: a format that no file has.
#include "trace/import/list.h"

namespace weir::importer_list {

Importer planted_format() {
  return {"planted_format", "a format that no file has", [](std::string_view) { return false; },
          [](const TraceFile&, TimelineBuilder&) {}};
}

}  // namespace weir::importer_list
CPP
plant src/cli/planted_command.cpp src/cli/list.h WEIR_COMMANDS <<'CPP'
// weir planted_command: says that it is here.
#include <fmt/format.h>

#include "cli/list.h"

namespace weir::cli {
namespace {

struct PlantedCommandFlags {
  int times = 1;
  void add_to(CommandSyntax syntax) { syntax.add("--times N", times, "how often it says so"); }
};

int execute_planted_command(const PlantedCommandFlags& flags) {
  for (int i = 0; i < flags.times; ++i) fmt::print("planted\n");
  return 0;
}

}  // namespace

CliCommand planted_command() {
  return command("planted_command", "say that it is here", execute_planted_command);
}

}  // namespace weir::cli
CPP
plant src/lab/preempt/planted_mechanism.cpp src/lab/preempt/list.h WEIR_MECHANISMS <<'CPP'
// Planted: no mechanism at all.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {

Mechanism planted_mechanism() {
  return {.name = "planted_mechanism",
          .level = "",
          .summary = "equal streams",
          .offered = [](Device& device) { return can_observe(device.info()); },
          .observe = [](const Experiment& experiment,
                        const Victim* victim) { return hold_contest(experiment, victim, {}); }};
}

}  // namespace weir::preempt::mechanism_list
CPP
plant src/submit/sched/planted_policy.cpp src/submit/sched/list.h WEIR_POLICIES <<'CPP'
// Planted: everybody is equal.
#include "submit/sched/list.h"

namespace weir::scheduler {

Policy policy_list::planted_policy() {
  return {.name = "planted_policy", .summary = "everybody is equal", .rank = [](const Situation&) { return Ranking{}; }};
}

}  // namespace weir::scheduler
CPP
plant src/report/text/planted_document.cpp src/base/schemas.h WEIR_TEXT_DOCUMENTS ' document(planted_document, 1)' <<'CPP'
// weir.planted_document/1: what it says.
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {

DocumentText text_list::planted_document(const Json& document) {
  return "A planted document\nIt says " + fields::text(document, {"word"}) + ".\n";
}

}  // namespace weir
CPP

cmake -S "$copy" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWEIR_WERROR=ON -DWEIR_TESTS=OFF -DWEIR_BENCH=OFF \
  -DWEIR_CUDA=OFF -DWEIR_HIP=OFF -DWEIR_HTML=OFF >"$copy/said" || { cat "$copy/said"; exit 1; }
cmake --build "$copy/build" --parallel "${JOBS:-$(nproc)}" --target weir >"$copy/said" || { tail -n 40 "$copy/said"; exit 1; }
weir=$copy/build/weir

failed=0
passed=0
finds() { # what, then a command that prints it
  local what=$1
  shift
  if "$@" 2>&1 | grep -qF -- "$what"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: no $what in: ${*/$weir/weir}"
  fi
}
cd "$copy"
finds planted_workload "$weir" list
finds planted_workload "$weir" completion --complete -- run planted_
finds '"planted_workload"' "$weir" list --json
finds 'passed: 2 buffers' "$weir" run planted_workload --device cpu --scale tiny --streams 2
finds planted_command "$weir" help
finds planted_command "$weir" help --markdown
finds planted_command "$weir" completion --complete -- planted_
finds --times "$weir" planted_command --help
finds planted "$weir" planted_command
finds planted_format "$weir" analyze --help
finds planted_format "$weir" help --markdown
finds planted_format "$weir" completion --complete -- analyze --input-format planted_
finds planted_mechanism "$weir" preempt --help
finds planted_mechanism "$weir" completion --complete -- preempt --mechanisms planted_
finds planted_policy "$weir" sched start --help
finds planted_policy "$weir" completion --complete -- sched start --policy planted_
echo '{"schema": "weir.planted_document/1", "word": "hello"}' >planted.json
finds 'Written to report.json' "$weir" report planted.json -o report.json
finds 'A planted document' cat report.json
finds 'It says hello.' cat report.json
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
