#include "engine/io/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ranges>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace {

using Json = nlohmann::json;

template <class T>
double widened(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<float>(value);
}

/// An element type of files.
struct Format {
  std::string_view name;
  size_t bytes;
  DType dtype;                                          // as which it is read
  double (*widen)(const std::byte* element) = nullptr;  // null: has the bytes of `dtype`
};
constexpr Format kFormats[] = {{"F32", 4, DType::f32},
                               {"I32", 4, DType::i32},
                               {"U8", 1, DType::u8},
                               {"F16", 2, DType::f32, widened<fp16>},
                               {"BF16", 2, DType::f32, widened<bf16>},
                               {"F64", 8, DType::f32, widened<double>}};

std::string_view file_name(DType dtype) {
  for (const Format& format : kFormats)
    if (format.dtype == dtype) return format.name;
  fail<std::logic_error>("[safetensors] dtype {} has no name", name(dtype));
}

/// The list of sizes under `key`.
std::vector<uint64_t> sizes(const std::string& where, const Json& entry, const char* key) {
  const Json& list = entry.at(key);
  const bool valid = list.is_array() && std::ranges::all_of(list, [](const Json& item) {
                       return item.is_number_unsigned();
                     });
  if (!valid) fail("{}: its {} is {:.200}", where, key, list.dump());
  return list.get<std::vector<uint64_t>>();
}

Shape shape_of(const std::string& where, const Json& entry) {
  const std::vector<uint64_t> dims = sizes(where, entry, "shape");
  check(dims.size() <= Shape::kMaxRank, "{}: {} dimensions; at most {}", where, dims.size(),
        +Shape::kMaxRank);
  uint64_t product = 1;  // of the dimensions above 0: it must fit in any order of multiplication
  for (const uint64_t dim : dims) {
    check(dim == 0 || product <= INT64_MAX / sizeof(double) / dim, "{}: a dimension is {}", where,
          dim);
    product *= std::max<uint64_t>(1, dim);
  }
  return Shape(std::vector<int64_t>(dims.begin(), dims.end()));
}

/// Range of the data of a tensor, counted from the end of the header.
struct Extent {
  uint64_t begin, end;
  uint64_t bytes() const { return end - begin; }
  bool operator<(const Extent& other) const { return begin < other.begin; }
};

Extent extent_of(const std::string& where, const Json& entry, size_t size) {
  const std::vector<uint64_t> offsets = sizes(where, entry, "data_offsets");
  check(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= size,
        "{}: its data is outside the file", where);
  return {offsets[0], offsets[1]};
}

/// Returns the non-empty extents in file order. UserError unless they cover the data without hole
/// or overlap.
std::vector<Extent> in_order(const std::string& where, std::vector<Extent> extents, size_t size) {
  std::erase_if(extents, [](const Extent& extent) { return extent.bytes() == 0; });
  std::ranges::sort(extents, std::less<>());
  uint64_t covered = 0;
  for (const Extent& extent : extents) {
    check(extent.begin == covered, "{}: tensors overlap or leave a hole at byte {} of the data",
          where, std::min(extent.begin, covered));
    covered = extent.end;
  }
  check(covered == size, "{}: tensors take {} bytes of data; the file has {}", where, covered,
        size);
  return extents;
}

/// UserError with the command that converts the file, if PyTorch wrote it: a zip archive that
/// begins with the file data.pkl and ends with a directory, or a pickle of an older version.
void check_not_torch(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      start = all.substr(0, 512);
  const bool zip = start.starts_with("PK\x03\x04") && start.find("/data.pkl") != start.npos;
  if (!zip && !start.starts_with("\x80\x02\x8a\x0a")) return;
  constexpr size_t kDirectoryEnd = 22 + 65535;  // the last record, with the longest comment
  const bool cut =
      zip &&
      all.substr(all.size() - std::min(all.size(), kDirectoryEnd)).find("PK\5\6") == all.npos;
  fail("[safetensors] {} is a file of PyTorch{}; this command converts {}: thinwire convert {} {}",
       path.string(), cut ? " that is cut short: it has no directory" : "",
       cut ? "a whole copy" : "it", shell_word(path),
       shell_word(std::filesystem::path(path).replace_extension("safetensors")));
}

constexpr const char* kChecksum = "checksum";

/// Checksum of the header (without the checksum itself) and of the data.
std::string checksum_text(const Json& header, uint64_t data) {
  const std::string text = fmt::format("{}{:016x}", header.dump(), data);
  return fmt::format("{:016x}", checksum(std::as_bytes(std::span(text))));
}

/// Checksum over the tensors in file order.
class DataChecksum {
 public:
  void add(std::span<const std::byte> tensor) {
    all_.add(fmt::format("{:016x}", checksum(tensor)));
  }
  uint64_t value() const { return all_.value(); }

 private:
  Hash all_;
};

}  // namespace

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  write_atomically(path, [&](std::ostream& out) {
    visit([&](std::span<const std::byte> bytes) {
      out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    });
  });
}

void SafetensorsWriter::visit(const std::function<void(std::span<const std::byte>)>& take) const {
  Json header = Json::object();
  header["__metadata__"] = metadata_;
  std::vector<const Tensor*> order;
  for (const auto& [key, tensor] : tensors_) order.push_back(&tensor);
  std::ranges::stable_sort(order, std::greater<>(),
                           [](const Tensor* tensor) { return size_of(tensor->dtype); });
  std::map<const Tensor*, size_t> offsets;
  size_t offset = 0;
  for (const Tensor* tensor : order) {
    offsets[tensor] = offset;
    offset += tensor->bytes();
  }
  for (const auto& [key, tensor] : tensors_) {
    Json shape = Json::array();
    for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
    header[key] = {{"dtype", file_name(tensor.dtype)},
                   {"shape", shape},
                   {"data_offsets", {offsets[&tensor], offsets[&tensor] + tensor.bytes()}}};
  }
  DataChecksum data;
  for (const Tensor* tensor : order)
    if (tensor->bytes() > 0)
      data.add({static_cast<const std::byte*>(tensor->data), tensor->bytes()});
  header["__metadata__"][kChecksum] = checksum_text(header, data.value());
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const uint64_t length = text.size();
  take(std::as_bytes(std::span(&length, 1)));
  take(std::as_bytes(std::span(text)));
  for (const Tensor* tensor : order)
    take({static_cast<const std::byte*>(tensor->data), tensor->bytes()});
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : SafetensorsReader(path, read_file(path)) {}

SafetensorsReader::SafetensorsReader(std::filesystem::path path, std::vector<std::byte> bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  const std::string where = fmt::format("[safetensors] {}", path_.string());
  check_not_torch(path_, bytes_);
  uint64_t length = 0;
  check(bytes_.size() >= sizeof length, "{}: {} bytes are too few for a safetensors file", where,
        bytes_.size());
  std::memcpy(&length, bytes_.data(), sizeof length);
  check(length <= bytes_.size() - sizeof length,
        "{}: not a safetensors file, or cut short (header of {} bytes in a file of {})", where,
        length, bytes_.size());
  check(length <= kMostJson, "{}: a header of {} bytes; at most {}", where, length, kMostJson);
  const char* text = reinterpret_cast<const char*>(bytes_.data()) + sizeof length;
  std::byte* data = bytes_.data() + sizeof length + length;
  const size_t size = bytes_.size() - sizeof length - length;
  try {
    Json header = parse_json<Json>({text, length}, where + ": damaged header");
    check(header.is_object(), "{}: the header is not a JSON object", where);
    std::vector<Extent> extents;
    for (const auto& [key, entry] : header.items()) {
      if (key == "__metadata__") {
        metadata_ = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      const std::string here = fmt::format("{}: tensor {}", where, key);
      const Extent extent = extents.emplace_back(extent_of(here, entry, size));
      const std::string dtype = entry.at("dtype");
      const auto format = std::ranges::find(kFormats, dtype, &Format::name);
      if (format == std::end(kFormats)) {
        unreadable_[key] = dtype;
        continue;
      }
      Tensor tensor{data + extent.begin, shape_of(here, entry), format->dtype, Device::cpu};
      const auto elements = static_cast<size_t>(tensor.numel());
      check(extent.bytes() == elements * format->bytes, "{}: {} bytes of data for shape {} of {}",
            here, extent.bytes(), tensor.shape, dtype);
      if (format->widen) {
        tensor.data = moved_.emplace_back(tensor.bytes()).data();
        for (size_t i = 0; i < elements; ++i) {
          const double wide = format->widen(data + extent.begin + i * format->bytes);
          const auto value = static_cast<float>(wide);
          check(std::isfinite(value) || !std::isfinite(wide),
                "{}: {} in element {} is too large for f32", here, wide, i);
          tensor.as<float>()[i] = value;
        }
      } else if (reinterpret_cast<uintptr_t>(tensor.data) % size_of(tensor.dtype) != 0) {
        tensor.data = moved_.emplace_back(data + extent.begin, data + extent.end).data();
      }
      tensors_[key] = tensor;
    }
    extents = in_order(where, extents, size);
    if (const auto seal = metadata_.extract(kChecksum); !seal.empty()) {
      header["__metadata__"].erase(kChecksum);
      DataChecksum sum;
      for (const Extent& extent : extents) sum.add({data + extent.begin, extent.bytes()});
      sealed_ = checksum_text(header, sum.value()) == seal.mapped();
      check(sealed_, "{}: damaged: its checksum is wrong", where);
    }
  } catch (const Json::exception& error) {
    fail("{}: damaged header: {}", where, error.what());
  }
}

bool SafetensorsReader::drop_prefix(const std::string& prefix) {
  const auto begins = [&](const auto& entry) { return entry.first.starts_with(prefix); };
  if (!std::ranges::all_of(tensors_, begins) || !std::ranges::all_of(unreadable_, begins))
    return false;
  const auto shorten = [&](auto& entries) {
    std::remove_reference_t<decltype(entries)> shorter;
    for (auto& [name, value] : entries) shorter.emplace(name.substr(prefix.size()), value);
    entries = std::move(shorter);
  };
  shorten(tensors_);
  shorten(unreadable_);
  return true;
}

const Tensor& SafetensorsReader::tensor(const std::string& name) const {
  if (const auto other = unreadable_.find(name); other != unreadable_.end())
    fail("[safetensors] {}: tensor {} has dtype {}; expected {}", path_.string(), name,
         other->second, fmt::join(kFormats | std::views::transform(&Format::name), ", "));
  const auto it = tensors_.find(name);
  check(it != tensors_.end(), "[safetensors] {} has no tensor \"{}\"", path_.string(), name);
  return it->second;
}

}  // namespace tw
