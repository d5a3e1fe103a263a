// One large matrix product per stream as an expert would write it by hand with cuBLAS. Knows nothing of Weir.
#pragma once

#include <memory>

namespace raw {

class Products {
 public:
  virtual ~Products() = default;
  // One product per stream, then waits for all of them.
  virtual void iterate() = 0;
};

// size x size x size in f32. Ends the program where CUDA fails or cuBLAS is missing.
std::unique_ptr<Products> make_products(int streams, int size);

}  // namespace raw
