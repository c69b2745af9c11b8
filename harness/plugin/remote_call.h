// One bound call laid out in the memory that is shared with a plug-in's process.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/plugin/channel.h"
#include "harness/spec/op_spec.h"

namespace tigon::plugin {

// A kernel of a library, as the contracts name it.
struct KernelOf {
  size_t index = 0;  // in the library
  const OpSpec* op = nullptr;
  const Pass* pass = nullptr;
  int device = 0;
  bool has_workspace = false, has_prepare = false;
};

// Bytes as they lie in the shared memory.
using Image = std::vector<char>;

// Whole allocations are moved, so that guards and gaps around the tensors move with them.
class RemoteCall {
 public:
  // Tensors and workspace must lie in memory of device_alloc. Throws ImplementationFault.
  RemoteCall(const KernelOf& kernel, DType policy, const Bound& bound);

  size_t bytes() const { return bytes_; }
  // The request {"do": what, ...} for the host program.
  Json request(const char* what) const;

  // From the judge's device memory, and back.
  Image upload() const;
  void download(const Image& image) const;

  struct Place {
    std::string name;
    Role role = Role::kIn;
    TensorRef ref;
    size_t at = 0;
    size_t elements() const;
    // Its elements in row-major order, packed; and back into the image.
    std::vector<char> gather(const Image& image) const;
    void scatter(const std::vector<char>& packed, Image* image) const;

   private:
    size_t offset(size_t row) const;
  };
  const std::vector<Place>& tensors() const { return places_; }
  // Elements by tensor, packed. Tensors that are both count as outputs.
  using Packed = std::map<std::string, std::vector<char>>;
  Packed inputs(const Image& image) const;
  Packed outputs(const Image& image) const;
  // Name of the tensor that is nearest to a byte of the image.
  std::string tensor_at(size_t byte) const;

 private:
  struct Region {
    void* data = nullptr;
    size_t bytes = 0, at = 0;
  };
  size_t place(const void* address);

  KernelOf kernel_;
  DType policy_;
  const Bound* bound_;
  std::vector<Region> regions_;
  std::vector<Place> places_;
  size_t workspace_at_ = 0, bytes_ = 0;
};

}  // namespace tigon::plugin
