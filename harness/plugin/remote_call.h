// SPDX-License-Identifier: Apache-2.0
// One bound call laid out in the memory that is shared with a plug-in's process.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/plugin/protocol.h"
#include "harness/spec/op_spec.h"
#include "harness/worker/shared_call.h"

namespace tigon::plugin {

// An implementation of a library, as the contracts name it.
struct KernelOf {
  const OpSpec* op = nullptr;
  const Pass* pass = nullptr;
  const Pass* before = nullptr;      // whose inputs it takes, too, behind its own tensors
  std::map<DType, size_t> ops = {};  // which of the library's, by policy
};

// As tigon_find() takes it: "rms_norm.forward".
inline std::string name_of(const OpSpec& op, const Pass& pass) { return op.name + "." + pass.name; }

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

  // From the judge's device memory to `memory` or a new image, and back.
  void upload_to(char* memory /* [bytes()] */) const;
  Image upload() const;
  void download(const Image& image) const;

  struct Place {
    std::string name;
    Role role = Role::kIn;
    TensorRef ref;
    size_t at = 0;
    size_t elements() const;
    // Its elements in row-major order, packed; and back into the image.
    std::vector<char> gather(const char* memory) const;
    void scatter(const std::vector<char>& packed, Image* image) const;
    uint64_t fingerprint(const char* memory) const;  // of its elements

   private:
    size_t row_bytes() const;
    size_t offset(size_t row) const;
  };
  const std::vector<Place>& tensors() const { return places_; }
  // Elements by tensor, packed. Tensors that are both are in both.
  using Packed = std::map<std::string, std::vector<char>>;
  Packed inputs(const char* memory) const;
  Packed outputs(const char* memory) const;

  // Of all that lies in the shared memory, guards and workspace too, by the tensor it belongs to;
  // good for comparing within this process.
  using Fingerprints = std::map<std::string, uint64_t>;
  Fingerprints fingerprints(const char* memory) const;

 private:
  struct Region {
    void* data = nullptr;
    size_t bytes = 0, at = 0;
  };
  void add(const TensorInfo& info, Role role);
  size_t place(const void* address);
  std::string name_of(const Region& region) const;

  worker::SharedCall call() const;

  KernelOf kernel_;
  DType policy_;
  const Bound* bound_;
  std::vector<Region> regions_;
  std::vector<Place> places_;
  size_t scratch_at_ = 0, bytes_ = 0;
};

}  // namespace tigon::plugin
