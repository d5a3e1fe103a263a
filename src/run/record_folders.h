// Where recordings are: a folder for each `weir record`, below a root that is the user's alone, and which files the
// words of a user stand for. Knows what recordings are called; reads none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir {

// In the order of preference; `runtime`: XDG_RUNTIME_DIR, `temporary`: TMPDIR. Memory comes before disks, because
// recordings are rewritten all the time.
std::vector<std::filesystem::path> record_roots(const std::string& runtime, const std::string& temporary);

// The folder of one `weir record`.
struct RecordFolder {
  std::filesystem::path path;
  std::filesystem::path link;  // below a root, where the user chose `path`; may be empty
  bool is_made = true;         // by us, and not the user's
};
// Makes it, named by this process; or `asked`, which must not exist unless it is empty. Rejects where none of the roots
// can be made private and has room for that many bytes.
RecordFolder make_record_folder(const std::vector<std::filesystem::path>& roots,
                                const std::optional<std::filesystem::path>& asked, std::uint64_t room);
// Keeps the ranks of processes beside their recordings, because nobody knows them after their death or elsewhere.
void note_ranks(const RecordFolder& folder, const std::map<std::uint64_t, int>& ranks);
// Removes its recordings, and the folder unless it holds anything else, such as dumps.
void remove_recordings(const RecordFolder& folder);
// Removes what earlier sessions left below these roots: where everybody who was recorded is dead, for more than a day.
void remove_old_recordings(const std::vector<std::filesystem::path>& roots);

struct RecordFile {
  std::filesystem::path path;
  std::uint64_t pid = 0;
  bool is_ours = false;       // written on this machine since it was booted: the process is asked, and seen to be dead
  bool is_replaced = false;   // the process executed another program since, which has a recording of its own
  std::uint64_t session = 0;  // process id of the `weir record`; 0: not known
  int rank = -1;              // as note_ranks() has it
};
// All that are kept below the roots.
std::vector<RecordFile> all_recordings(const std::vector<std::filesystem::path>& roots);
// What `words` name: processes (of a program, or of its `weir record`), files, folders. Rejects what has no recording.
std::vector<RecordFile> find_recordings(const std::vector<std::filesystem::path>& roots,
                                        const std::vector<std::string>& words);
// Those in one folder, by process.
std::vector<RecordFile> recordings_in(const std::filesystem::path& folder);

}  // namespace weir
