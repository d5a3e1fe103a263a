// One thread submits everything, in the step's order. A graph is submitted the same way: as one batch.
#include <numeric>
#include <vector>

#include "submit/submitter.h"

namespace weir {
namespace {

class InlineSubmitter final : public Submitter {
 public:
  InlineSubmitter(const Step& step, Session& session) : session_(session), commands_(step.commands().size()) {
    std::iota(commands_.begin(), commands_.end(), CommandId{0});
  }
  void submit_step() noexcept override { session_.submit(commands_); }

 private:
  Session& session_;
  std::vector<CommandId> commands_;
};

}  // namespace

std::unique_ptr<Submitter> inline_submitter(const Step& step, Session& session) {
  return std::make_unique<InlineSubmitter>(step, session);
}

}  // namespace weir
