// Files of tracefs as they are. Knows how to write and read them; never which.
#pragma once

#include "amd/capture/capture_trace.h"

namespace weir::cli {

class Tracefs final : public amd::TraceFiles {
 public:
  int write(const std::string& path, std::string_view text, bool is_appended) override;
  int read(const std::string& path, std::string& text) override;
  int make_folder(const std::string& path) override;
  int remove_folder(const std::string& path) override;
};

}  // namespace weir::cli
