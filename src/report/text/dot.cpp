// A step for Graphviz: a row per stream, an arrow wherever a stream waits for another.
#include <algorithm>
#include <array>
#include <map>

#include "base/text_gate.h"
#include "base/units.h"
#include "report/text/step_text.h"

namespace weir {
namespace {

// Light enough for black text; neighbours also differ for colour-blind readers (based on ColorBrewer's Set3).
constexpr std::array<std::string_view, 12> kColours = {"#8dd3c7", "#ffffb3", "#bebada", "#fb8072",
                                                       "#80b1d3", "#fdb462", "#b3de69", "#fccde5",
                                                       "#d9d9d9", "#bc80bd", "#ccebc5", "#ffed6f"};

constexpr std::string_view shape_of(CommandKind kind) {
  constexpr std::string_view kShapes[] = {"box", "cds", "note", "hexagon"};
  return kShapes[static_cast<int>(kind)];
}

// Consecutive commands on one stream that are drawn as one.
struct Node {
  std::vector<CommandId> commands;
  StreamId stream = 0;
};

// How many commands are drawn as one node, from none to all.
enum class Merging : std::uint8_t { none, role_between_waits, between_waits, role, stream };

constexpr std::string_view words_of_merging(Merging merging) {
  constexpr std::string_view kNames[] = {"", "runs of one role between waits", "runs between waits", "runs of one role",
                                         "streams"};
  return kNames[static_cast<int>(merging)];
}

class Drawing {
 public:
  Drawing(const StepView& view, std::size_t max_nodes) : view_(view) {
    const auto count = view.step.commands().size();
    waits_.resize(count, false);
    is_waited_for_.resize(count, false);
    for (const StepView::Wait& wait : view.waits) {
      if (wait.is_carried) continue;
      waits_[wait.after] = true;
      is_waited_for_[wait.before] = true;
    }
    for (const Merging merging :
         {Merging::none, Merging::role_between_waits, Merging::between_waits, Merging::role, Merging::stream}) {
      merging_ = merging;
      merge();
      if (nodes_.size() <= max_nodes) break;
    }
  }

  std::string text() {
    out_ = Dot::literal("digraph step {\n");
    header();
    streams();
    edges();
    legend();
    out_ += Dot::literal("}\n");
    return std::move(out_).text();
  }

 private:
  bool joins(CommandId last, CommandId next) const {
    const auto commands = view_.step.commands();
    const bool is_one_role = commands[last].role == commands[next].role && commands[last].kind == commands[next].kind;
    const bool is_free = !waits_[next] && !is_waited_for_[last];
    switch (merging_) {
      case Merging::none:
        return false;
      case Merging::role_between_waits:
        return is_one_role && is_free;
      case Merging::between_waits:
        return is_free;
      case Merging::role:
        return is_one_role;
      case Merging::stream:
        return true;
    }
    return false;
  }

  void merge() {
    const auto count = view_.step.commands().size();
    nodes_.clear();
    node_of_.assign(count, 0);
    std::vector<std::size_t> last(static_cast<std::size_t>(view_.placement.stream_count), SIZE_MAX);
    for (CommandId id = 0; id < count; ++id) {
      std::size_t& node = last[view_.placement.stream_of[id]];
      if (node == SIZE_MAX || !joins(nodes_[node].commands.back(), id)) {
        node = nodes_.size();
        nodes_.push_back({{}, view_.placement.stream_of[id]});
      }
      nodes_[node].commands.push_back(id);
      node_of_[id] = node;
    }
  }

  void header() {
    const Step& step = view_.step;
    Dot title = Dot::format("{}: {} streams, {} commands, ", view_.workload, view_.placement.stream_count,
                            step.commands().size());
    title += step.counted() ? Dot::format("work counted by the device ({})", view_.unit)
                            : Dot::format("work {:.4g} per iteration ({})", step.work(), view_.unit);
    title += Dot::format("\\l{} scale, {}, placed {}", view_.scale, view_.precision, view_.placement.name);
    for (const auto& [name, value] : view_.params) title += Dot::format(", {}={}", name, value);
    if (merging_ != Merging::none)
      title += Dot::format("\\lin summary: {} commands drawn as {} nodes ({})", step.commands().size(), nodes_.size(),
                           words_of_merging(merging_));
    out_ += Dot::format(
        "  graph [rankdir=LR, newrank=true, fontname=\"Helvetica\", fontsize=16, labelloc=t, labeljust=l,\n"
        "         nodesep=0.18, ranksep=0.35, pad=0.3, splines=true, label=\"{}\\l\"];\n"
        "  node [fontname=\"Helvetica\", fontsize=10, style=filled, color=\"#555555\", height=0.4, "
        "margin=\"0.1,0.05\"];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.7];\n\n",
        title);
  }

  Dot label(const Node& node) const {
    const CommandId first = node.commands.front();
    const Command& command = view_.step.commands()[first];
    const Dot urgent = command.priority == 0 ? Dot() : Dot::format("\\npriority {}", command.priority);
    if (node.commands.size() == 1)
      return Dot::format("#{} {}\\n{}{}", first, command_name(command), command_size(view_.step, first), urgent);
    std::vector<std::string> names;
    bool is_one_role = true;
    for (const CommandId id : node.commands) {
      const std::string name = command_name(view_.step.commands()[id]);
      if (names.size() < 4 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      is_one_role = is_one_role && view_.step.commands()[id].role == command.role;
    }
    Dot list;
    for (std::size_t i = 0; i < names.size(); ++i)
      list += i == 3 ? Dot::literal(", ...") : Dot::format("{}{}", i == 0 ? "" : ", ", names[i]);
    return Dot::format("{} x {}\\n#{} ... #{}{}{}", node.commands.size(), list, first, node.commands.back(),
                       is_one_role ? Dot() : Dot::literal("\\nseveral roles"), urgent);
  }

  std::string_view colour(std::uint8_t role) const { return kColours[role % kColours.size()]; }

  void streams() {
    const auto streams = static_cast<std::size_t>(view_.placement.stream_count);
    std::vector<Dot> rows(streams);
    std::vector<std::size_t> last(streams, SIZE_MAX), commands(streams, 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      const Command& command = view_.step.commands()[node.commands.front()];
      const bool is_run = node.commands.size() > 1;
      rows[node.stream] += Dot::format("    n{} [label=\"{}\", shape={}, fillcolor=\"{}\"{}{}];\n", i, label(node),
                                       shape_of(command.kind), colour(command.role),
                                       command.kind == CommandKind::kernel ? Dot::literal(", style=\"filled,rounded\"")
                                                                           : Dot::literal(", margin=\"0.2,0.08\""),
                                       is_run ? ", peripheries=2" : "");
      // Edges along a row weigh more than any arrow across, which keeps the row together.
      std::size_t& before = last[node.stream];
      rows[node.stream] +=
          before == SIZE_MAX
              ? Dot::format("    s{} -> n{} [style=invis, weight=20];\n", node.stream, i)
              : Dot::format("    n{} -> n{} [color=\"#999999\", arrowsize=0.5, weight=20];\n", before, i);
      before = i;
      commands[node.stream] += node.commands.size();
    }
    Dot same;
    // In reverse, because Graphviz stacks rows from the bottom; it reorders them only to avoid crossings.
    for (std::size_t s = streams; s-- > 0;) {
      out_ += Dot::format(
          "  subgraph cluster_{0} {{\n    style=\"filled,rounded\"; color=\"#f4f4f4\"; label=\"\";\n"
          "    s{0} [label=\"stream {0}\\n{1} command{2}\", shape=plaintext, style=\"\", fontsize=11];\n{3}  }}\n",
          s, commands[s], commands[s] == 1 ? "" : "s", rows[s]);
      same += Dot::format(" s{};", s);
    }
    out_ += Dot::format("  {{ rank=same;{} }}\n\n", same);
  }

  void edges() {
    std::map<std::array<std::size_t, 3>, std::size_t> counts;  // from, to, carried
    for (const StepView::Wait& wait : view_.waits) {
      const std::size_t from = node_of_[wait.before], to = node_of_[wait.after];
      if (from != to) ++counts[{from, to, wait.is_carried}];
    }
    for (const auto& [edge, count] : counts) {
      const Dot times = count == 1 ? Dot() : Dot::format(", label=\"{}\"", count);
      out_ += edge[2] != 0
                  ? Dot::format("  n{} -> n{} [style=dashed, color=\"#b03060\", constraint=false{}];\n", edge[0],
                                edge[1], times)
                  : Dot::format("  n{} -> n{} [color=\"#1f3f7f\", penwidth=1.4{}];\n", edge[0], edge[1], times);
    }
  }

  void legend() {
    Markup rows;
    for (std::size_t i = 0; i < view_.roles.size() && i < 40; ++i)
      rows += Markup::format("<tr><td bgcolor=\"{}\" width=\"24\"></td><td align=\"left\">{}</td></tr>",
                             colour(static_cast<std::uint8_t>(i)), view_.roles[i]);
    const auto row = [&](const Markup& sign, std::string_view colour, std::string_view text) {
      rows += Markup::format("<tr><td><font color=\"{}\">{}</font></td><td align=\"left\">{}</td></tr>", colour, sign,
                             text);
    };
    row(Markup::literal("&#8594;"), "#999999", "order within a stream");
    row(Markup::literal("&#8594;"), "#1f3f7f", "waits for an event of another stream");
    const bool is_carried =
        std::any_of(view_.waits.begin(), view_.waits.end(), [](const auto& wait) { return wait.is_carried; });
    if (is_carried) row(Markup::literal("&#8669;"), "#b03060", "dashed: waits for the iteration before");
    out_ += Dot::format(
        "\n  subgraph cluster_legend {{\n    style=\"\"; color=\"#cccccc\"; label=\"\";\n"
        "    legend [shape=plaintext, style=\"\", label=<<table border=\"0\" cellborder=\"0\" "
        "cellspacing=\"3\">{}</table>>];\n"
        "  }}\n",
        Dot::embed(rows));
    if (merging_ == Merging::none || has_other_kinds()) kinds();
  }

  bool has_other_kinds() const {
    const auto commands = view_.step.commands();
    return std::any_of(commands.begin(), commands.end(),
                       [](const Command& command) { return command.kind != CommandKind::kernel; });
  }

  // Shapes only need explaining where there is more than one.
  void kinds() {
    if (!has_other_kinds()) return;
    constexpr std::pair<std::string_view, CommandKind> kKinds[] = {{"kernel", CommandKind::kernel},
                                                                   {"copy", CommandKind::copy},
                                                                   {"host function", CommandKind::host},
                                                                   {"collective", CommandKind::collective}};
    for (const auto& [name, kind] : kKinds) {
      const auto commands = view_.step.commands();
      const bool is_used = std::any_of(commands.begin(), commands.end(),
                                       [kind = kind](const Command& command) { return command.kind == kind; });
      if (is_used)
        out_ += Dot::format("  subgraph cluster_legend {{ k{} [label=\"{}\", shape={}, fillcolor=white{}]; }}\n",
                            static_cast<int>(kind), name, shape_of(kind),
                            kind == CommandKind::kernel ? Dot::literal(", style=\"filled,rounded\"") : Dot());
    }
  }

  const StepView& view_;
  std::vector<bool> waits_, is_waited_for_;
  Merging merging_ = Merging::none;
  std::vector<Node> nodes_;
  std::vector<std::size_t> node_of_;
  Dot out_;
};

}  // namespace

std::string draw_step(const StepView& view, std::size_t max_nodes) { return Drawing(view, max_nodes).text(); }

}  // namespace weir
