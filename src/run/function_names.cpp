#include "run/function_names.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "base/file.h"

namespace weir {
namespace {

// "weir::(anonymous namespace)::sort<int (*)(int)>(int*)::{lambda()#1}::operator()() const" becomes "weir::(anonymous
// namespace)::sort<int (*)(int)>": the name up to its first parameters shows where a thread is, and fits on a line.
std::string_view without_parameters(std::string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '{') ++depth;
    if (name[i] == '>' || name[i] == '}') --depth;
    if (depth != 0 || name[i] != '(' || i == 0) continue;
    if (name.substr(i).starts_with("(anonymous namespace)")) continue;
    if (name.substr(0, i).ends_with("operator")) continue;
    return name.substr(0, i);
  }
  return name;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? std::string(without_parameters(text.get())) : std::string(name);
}

// A memory-mapped file.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const Descriptor file = open_regular(path);
    struct stat facts{};
    if (file && ::fstat(file.get(), &facts) == 0 && facts.st_size > 0) {
      size_ = static_cast<std::size_t>(facts.st_size);
      address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
      if (address_ == MAP_FAILED) size_ = 0;
    }
  }
  ~MappedFile() {
    if (size_ != 0) ::munmap(address_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` records from an offset on; empty if the file is shorter.
  template <class T>
  std::span<const T> at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(T)) return {};
    return {reinterpret_cast<const T*>(static_cast<const std::byte*>(address_) + offset), count};
  }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

FunctionNames::FunctionNames() {
  Dl_info own{};
  static const int kAnchor = 0;  // in this program, or in the library that contains this code
  if (::dladdr(&kAnchor, &own) == 0) return;
  own_base_ = reinterpret_cast<std::uintptr_t>(own.dli_fbase);
  read_own_file();
}

// Static and hidden functions, which the dynamic linker does not know, are in .symtab unless it was stripped.
void FunctionNames::read_own_file() {
  const MappedFile file("/proc/self/exe");
  const auto header = file.at<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64)
    return;
  if (header[0].e_type == ET_EXEC) own_base_ = 0;  // its addresses are absolute
  const auto sections = file.at<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    const auto text = file.at<char>(names.sh_offset, names.sh_size);
    for (const Elf64_Sym& symbol : file.at<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
      if (symbol.st_name >= text.size()) continue;
      const std::string_view rest(text.data() + symbol.st_name, text.size() - symbol.st_name);
      own_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, std::string(rest.substr(0, rest.find('\0')))});
    }
  }
  std::sort(own_.begin(), own_.end(), [](const Function& a, const Function& b) { return a.begin < b.begin; });
}

std::string FunctionNames::at(const void* address) const {
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t inside = where - own_base_;
  const auto after = std::upper_bound(own_.begin(), own_.end(), inside,
                                      [](std::uintptr_t value, const Function& each) { return value < each.begin; });
  if (after != own_.begin() && inside < (after - 1)->end) return demangled((after - 1)->name.c_str());
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return fmt::format("{:#x}", where);
  if (info.dli_sname != nullptr) return demangled(info.dli_sname);
  const std::string_view path = info.dli_fname;
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1),
                     where - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
}

}  // namespace weir
