#include "apps/common/npy.h"

#include <charconv>
#include <cstring>
#include <fstream>

#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tw {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// The text after `'key':` in the header, a Python dictionary.
std::string_view value_of(std::string_view header, std::string_view key,
                          const std::string& source) {
  const size_t at = header.find(fmt::format("'{}':", key));
  check(at != header.npos, "{}: damaged header: it has no '{}'", source, key);
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

/// The text between `open` at the start of `value` and `close`.
std::string_view enclosed(std::string_view value, char open, char close,
                          const std::string& source) {
  const size_t end = value.find(close, 1);
  check(value.starts_with(open) && end != value.npos, "{}: damaged header: {:.40}", source, value);
  return value.substr(1, end - 1);
}

/// Product of the sizes in a text such as `1000, 3`; 1 for an empty one.
size_t elements(std::string_view sizes, const std::string& source) {
  size_t product = 1;
  while (true) {
    sizes.remove_prefix(std::min(sizes.find_first_not_of(", "), sizes.size()));
    if (sizes.empty()) return product;
    size_t size = 0;
    const auto [end, error] = std::from_chars(sizes.data(), sizes.data() + sizes.size(), size);
    check(error == std::errc{}, "{}: damaged header: shape ({})", source, sizes);
    check(size == 0 || product <= SIZE_MAX / sizeof(float) / size, "{}: a size is {}", source,
          size);
    product *= size;
    sizes.remove_prefix(static_cast<size_t>(end - sizes.data()));
  }
}

struct Header {
  std::string_view text;
  size_t end;  // where the data begins
};

Header header_of(std::span<const std::byte> bytes, const std::string& source) {
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  check(file.starts_with(kMagic) && file.size() >= 12, "{}: not a .npy file", source);
  const auto version = static_cast<uint8_t>(file[6]);
  check(version >= 1 && version <= 3, "{}: format {} is not known; expected 1, 2 or 3", source,
        version);
  const size_t begin = version == 1 ? 10 : 12;
  uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, begin - 8);  // little-endian, two bytes or four
  check(length <= file.size() - begin, "{}: cut short: header of {} bytes in a file of {}", source,
        length, file.size());
  return {file.substr(begin, length), begin + length};
}

template <class T>
void write_integers(const std::filesystem::path& path, std::string_view dtype,
                    std::span<const T> values) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                   dtype, values.size());
  // the data begins at a multiple of 64
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string file = fmt::format("{}\x01", kMagic);
  file += '\0';
  file.append(reinterpret_cast<const char*>(&length), sizeof length);
  file += header;
  file.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  write_output(path, file);
}

}  // namespace

void check_npy(const std::filesystem::path& path) {
  check_replaceable(path, kMagic, "an .npy file");
}

bool is_npy(const std::filesystem::path& path) {
  char start[6] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof start);
  return std::string_view(start, sizeof start) == kMagic;
}

std::vector<float> read_npy(const std::filesystem::path& path) {
  const std::string source = fmt::format("[npy] {}", path.string());
  const std::vector<std::byte> bytes = read_file(path);
  const auto [header, begin] = header_of(bytes, source);

  const std::string_view dtype = value_of(header, "descr", source);
  check(!dtype.starts_with('['), "{}: a structured array; expected '<f4' (float32)", source);
  const std::string_view kind = enclosed(dtype, '\'', '\'', source);
  check(kind == "<f4", "{}: dtype is '{}'; expected '<f4' (float32): u.astype(\"<f4\")", source,
        kind);
  const std::string_view shape = enclosed(value_of(header, "shape", source), '(', ')', source);
  const bool transposed = value_of(header, "fortran_order", source).starts_with("True");
  check(!transposed, "{}: stored in Fortran order; expected C order: np.ascontiguousarray(u)",
        source);

  const size_t count = elements(shape, source);
  check(bytes.size() - begin == count * sizeof(float),
        "{}: {} bytes of data for shape ({}); expected {}", source, bytes.size() - begin, shape,
        count * sizeof(float));
  std::vector<float> values(count);  // not before the check: a header may name any size
  if (!values.empty()) std::memcpy(values.data(), bytes.data() + begin, bytes.size() - begin);
  return values;
}

void write_npy(const std::filesystem::path& path, std::span<const uint32_t> values) {
  write_integers(path, "<u4", values);
}

void write_npy(const std::filesystem::path& path, std::span<const int64_t> values) {
  write_integers(path, "<i8", values);
}

}  // namespace tw
