// SPDX-License-Identifier: Apache-2.0
// .npy files and their manifest.
#include "harness/run/judging/save.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/json/json.h"
#include "harness/run/memory/convert.h"

namespace tigon {

namespace {

// numpy has no bf16: its bits are saved as uint16.
const char* numpy_type(DType t) {
  switch (t) {
    case DType::kF64:
      return "<f8";
    case DType::kF32:
      return "<f4";
    case DType::kF16:
      return "<f2";
    case DType::kBF16:
      return "<u2";
    case DType::kI64:
      return "<i8";
    case DType::kI32:
      return "<i4";
    case DType::kU8:
      return "|u1";
  }
  return "|u1";
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

// NPY format 1.0: magic, version, length of the header, header padded to 64 bytes, data.
std::string npy(const std::vector<std::byte>& packed, DType type,
                const std::vector<int64_t>& shape) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", numpy_type(type),
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr size_t kPreamble = 10;
  header.append(63 - (kPreamble + header.size()) % 64, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  text.append(reinterpret_cast<const char*>(packed.data()), packed.size());
  return text;
}

class TensorWriter {
 public:
  TensorWriter(const std::string& folder, const CaseTensor& tensor)
      : folder_(folder), tensor_(tensor), files_(Json::object()) {}

  void add(const char* what, const std::vector<std::byte>& packed, DType type) {
    const std::string file = fmt::format("{}.{}.npy", tensor_.info->name, what);
    write_file(folder_ / file, npy(packed, type, tensor_.shape));
    files_[what] = file;
  }
  void add_doubles(const char* what, const std::vector<double>& values) {
    if (!values.empty()) add(what, narrow(values, DType::kF64), DType::kF64);
  }
  const Json& files() const { return files_; }

 private:
  std::filesystem::path folder_;
  const CaseTensor& tensor_;
  Json files_;
};

Json budget_json(const Budget& b) {
  return {{"roundings", b.roundings},
          {"reduction", b.reduction},
          {"elementary", b.elementary},
          {"intermediate_roundings", b.intermediate_roundings},
          {"element_roundings", b.element_roundings},
          {"u_out", unit_roundoff(b.output)},
          {"u_element", unit_roundoff(b.element)},
          {"eta_element", smallest_subnormal(b.element)}};
}

}  // namespace

void save_case(const std::string& folder, const Problem& problem,
               const std::map<std::string, Expected>& expected, const OutputBytes& outputs,
               const CheckResult& result) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error("cannot create " + folder + ": " + error.message());
  Json manifest = to_json(result);
  manifest.erase("repro");
  manifest["tensors"] = Json::array();
  for (const CaseTensor& t : problem.tensors) {
    TensorWriter writer(folder, t);
    Json entry = {{"name", t.info->name},
                  {"role", name_of(t.info->role)},
                  {"dtype", name_of(t.dtype)},
                  {"shape", t.shape}};
    if (t.is_input) writer.add("input", narrow(t.input, t.dtype), t.dtype);
    if (t.is_output) {
      const Expected& e = expected.at(t.info->name);
      writer.add_doubles("oracle", e.value);
      writer.add_doubles("scale", e.scale);
      writer.add_doubles("intermediate", e.intermediate);
      writer.add_doubles("underflow", e.underflow);
      writer.add("output", outputs.at(t.info->name), t.dtype);
      entry["budget"] = budget_json(budget_of(problem, t));
    }
    entry["files"] = writer.files();
    manifest["tensors"].push_back(std::move(entry));
  }
  manifest["note"] =
      "bf16 is saved as the uint16 of its bits; oracle, scale, intermediate and underflow are "
      "float64";
  write_file(std::filesystem::path(folder) / "manifest.json", manifest.dump(2) + "\n");
}

}  // namespace tigon
