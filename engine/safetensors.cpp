#include "engine/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/file.h"

namespace tw {

namespace {

using Json = nlohmann::json;

constexpr std::pair<DType, const char*> kDTypeNames[] = {
    {DType::f32, "F32"}, {DType::bf16, "BF16"}, {DType::i32, "I32"}, {DType::u8, "U8"}};

const char* file_name(DType dtype) {
  for (const auto& [known, text] : kDTypeNames)
    if (known == dtype) return text;
  fail<std::logic_error>("[safetensors] dtype {} has no name", name(dtype));
}

/// One tensor of the header, checked against the `size` bytes of data behind it.
Tensor parse_entry(const std::string& place, const Json& entry, std::byte* data, size_t size) {
  Tensor tensor;
  const std::string dtype = entry.at("dtype");
  bool known = false;
  for (const auto& [value, text] : kDTypeNames) {
    if (dtype != text) continue;
    tensor.dtype = value;
    known = true;
  }
  check(known, "{}: dtype {} is not supported (F32, BF16, I32, U8)", place, dtype);

  const auto dims = entry.at("shape").get<std::vector<int64_t>>();
  check(dims.size() <= Shape::kMaxRank, "{}: {} dimensions; at most {}", place, dims.size(),
        +Shape::kMaxRank);
  // a product of hostile sizes must not overflow: no dimension may exceed the bytes there are
  int64_t numel = 1;
  for (const int64_t dim : dims) {
    check(dim >= 0 && dim <= static_cast<int64_t>(size), "{}: a dimension is {}", place, dim);
    numel *= dim;
    check(numel <= static_cast<int64_t>(size), "{}: larger than the file", place);
  }
  tensor.shape = Shape(dims);

  const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
  check(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= size,
        "{}: its data lies outside the file", place);
  check(offsets[1] - offsets[0] == tensor.bytes(), "{}: {} bytes of data for shape {} of {}", place,
        offsets[1] - offsets[0], tensor.shape.str(), dtype);
  tensor.data = data + offsets[0];
  return tensor;
}

}  // namespace

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  Json header = Json::object();
  if (!metadata_.empty()) header["__metadata__"] = metadata_;
  size_t offset = 0;
  for (const auto& [key, tensor] : tensors_) {
    Json shape = Json::array();
    for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
    header[key] = {{"dtype", file_name(tensor.dtype)},
                   {"shape", shape},
                   {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  write_atomically(path, [&](std::ostream& out) {
    const uint64_t length = text.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << text;
    for (const auto& [key, tensor] : tensors_)
      out.write(static_cast<const char*>(tensor.data),
                static_cast<std::streamsize>(tensor.bytes()));
  });
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : path_(path), bytes_(read_file(path)) {
  const std::string place = fmt::format("[safetensors] {}", path.string());
  uint64_t length = 0;
  check(bytes_.size() >= sizeof length, "{}: {} bytes are too few for a safetensors file", place,
        bytes_.size());
  std::memcpy(&length, bytes_.data(), sizeof length);
  check(length <= bytes_.size() - sizeof length,
        "{}: not a safetensors file, or cut short (header of {} bytes in a file of {})", place,
        length, bytes_.size());
  const char* text = reinterpret_cast<const char*>(bytes_.data()) + sizeof length;
  std::byte* data = bytes_.data() + sizeof length + length;
  const size_t size = bytes_.size() - sizeof length - length;
  try {
    const Json header = Json::parse(text, text + length);
    check(header.is_object(), "{}: the header is not a JSON object", place);
    for (const auto& [key, entry] : header.items()) {
      if (key == "__metadata__")
        metadata_ = entry.get<std::map<std::string, std::string>>();
      else
        tensors_[key] = parse_entry(fmt::format("{}: tensor {}", place, key), entry, data, size);
    }
  } catch (const Json::exception& error) {
    fail("{}: damaged header: {}", place, error.what());
  }
}

const Tensor& SafetensorsReader::tensor(const std::string& name) const {
  const auto it = tensors_.find(name);
  check(it != tensors_.end(), "[safetensors] {} has no tensor \"{}\"", path_.string(), name);
  return it->second;
}

}  // namespace tw
