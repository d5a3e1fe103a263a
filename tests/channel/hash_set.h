// A set of hashes, of which there may be millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::explored {

class HashSet {
 public:
  // False: it was there.
  bool insert(std::uint64_t hash) {
    if (hash == 0) hash = 1;  // 0 is a free place
    if (size_ * 2 >= places_.size()) grow();
    std::uint64_t& place = find(hash);
    if (place == hash) return false;
    place = hash;
    ++size_;
    return true;
  }
  std::size_t size() const { return size_; }
  void clear() {
    places_.clear();
    size_ = 0;
  }

 private:
  std::uint64_t& find(std::uint64_t hash) {
    const std::size_t mask = places_.size() - 1;
    std::size_t i = hash & mask;
    while (places_[i] != 0 && places_[i] != hash) i = (i + 1) & mask;
    return places_[i];
  }
  void grow() {
    std::vector<std::uint64_t> old(places_.empty() ? 1024 : places_.size() * 4);
    old.swap(places_);
    for (const std::uint64_t hash : old) {
      if (hash != 0) find(hash) = hash;
    }
  }

  std::vector<std::uint64_t> places_;
  std::size_t size_ = 0;
};

}  // namespace weir::explored
