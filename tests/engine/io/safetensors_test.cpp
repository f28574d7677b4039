// safetensors files: round trips, and every kind of damage.
#include "engine/io/safetensors.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/io/file.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

/// Writes a file with this header, as another program may write it, and `data` bytes 0, 1, 2, ...
void write_raw(const fs::path& path, const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  text += header;
  for (size_t i = 0; i < data; ++i) text.push_back(static_cast<char>(i));
  write_atomically(path, text);
}

template <class T>
Tensor tensor_of(std::vector<T>& values, Shape shape) {
  return {values.data(), shape, DTypeOf<T>::value, Device::cpu};
}

TEST(Safetensors, AFlippedBitIsDetected) {
  const TempFolder folder;
  std::vector<float> floats{1, 2, 3, 4};
  std::vector<uint8_t> bytes{7}, none;
  SafetensorsWriter writer;
  writer.add("f", tensor_of(floats, {4}));
  writer.add("b", tensor_of(bytes, {1}));
  writer.add("none", tensor_of(none, {0}));
  writer.metadata("step", "10");
  writer.write(folder / "f");
  const std::vector<std::byte> whole = read_file(folder / "f");
  EXPECT_EQ(SafetensorsReader(folder / "f").metadata().at("step"), "10");
  EXPECT_FALSE(SafetensorsReader(folder / "f").metadata().contains("checksum"));
  EXPECT_TRUE(SafetensorsReader(folder / "f").sealed());
  for (size_t at = 0; at < whole.size(); ++at)
    for (const int bit : {0, 1, 4}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] ^= std::byte{1} << bit;
      if (damaged[at] == std::byte{' '} || whole[at] == std::byte{' '}) continue;  // white space
      write_atomically(folder / "d",
                       std::string(reinterpret_cast<const char*>(damaged.data()), damaged.size()));
      // damage to the name of the checksum removes it
      bool told = true;
      try {
        told = !SafetensorsReader(folder / "d").sealed();
      } catch (const UserError&) {
      }
      EXPECT_TRUE(told) << "bit " << bit << " of byte " << at;
    }
}

TEST(Safetensors, EveryDTypeRoundTrips) {
  const TempFolder folder;
  std::vector<float> floats{1.5f, -0.0f, 1e-45f, INFINITY, 3, 4};
  std::vector<int32_t> ints{INT32_MIN, 0, INT32_MAX};
  std::vector<uint8_t> bytes{0, 127, 255};
  std::vector<float> none;
  SafetensorsWriter writer;
  writer.add("u8", tensor_of(bytes, {3}));
  writer.add("f32", tensor_of(floats, {1, 2, 3, 1}));
  writer.add("i32", tensor_of(ints, {3}));
  writer.add("empty", tensor_of(none, {0, 3}));
  writer.add("scalar", tensor_of(floats, {}));
  writer.metadata("a key", "with \"quotes\"\nand ünicode");
  writer.write(folder / "f");

  const SafetensorsReader reader(folder / "f");
  const auto expect = [&](const std::string& name, const Tensor& written) {
    const Tensor& read = reader.tensor(name);
    EXPECT_EQ(read.shape, written.shape) << name;
    EXPECT_EQ(read.dtype, written.dtype) << name;
    EXPECT_EQ(std::memcmp(read.data, written.data, written.bytes()), 0) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data) % size_of(read.dtype), 0u) << name;
  };
  expect("u8", tensor_of(bytes, {3}));
  expect("f32", tensor_of(floats, {1, 2, 3, 1}));
  expect("i32", tensor_of(ints, {3}));
  expect("scalar", tensor_of(floats, {}));
  EXPECT_EQ(reader.tensor("empty").shape, Shape({0, 3}));
  EXPECT_EQ(reader.tensors().size(), 5u);
  EXPECT_EQ(reader.metadata().at("a key"), "with \"quotes\"\nand ünicode");
  EXPECT_FALSE(reader.has("other"));
  EXPECT_EQ(error_text<UserError>([&] { reader.tensor("other"); }),
            fmt::format("[safetensors] {} has no tensor \"other\"", (folder / "f").string()));
}

TEST(Safetensors, WritesAlignedDataWithoutHoles) {
  const TempFolder folder;
  std::vector<uint8_t> bytes{1, 2, 3};
  std::vector<float> floats{1, 2};
  SafetensorsWriter writer;
  writer.add("a", tensor_of(bytes, {3}));
  writer.add("c", tensor_of(floats, {2}));
  writer.write(folder / "f");
  const std::vector<std::byte> file = read_file(folder / "f");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(file.size(), 8 + length + 11);
  const char* text = reinterpret_cast<const char*>(file.data()) + 8;
  EXPECT_EQ(*text, '{');
  const auto header = nlohmann::json::parse(text, text + length);
  EXPECT_EQ(header["c"]["data_offsets"], (std::vector<int>{0, 8}));
  EXPECT_EQ(header["a"]["data_offsets"], (std::vector<int>{8, 11}));
}

TEST(Safetensors, AFileWithoutTensorsIsValid) {
  const TempFolder folder;
  SafetensorsWriter().write(folder / "f");
  EXPECT_TRUE(SafetensorsReader(folder / "f").tensors().empty());
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const TempFolder folder;
  std::vector<float> floats{1, 2};
  SafetensorsWriter writer;
  writer.add("a", tensor_of(floats, {2}));
  writer.write(folder / "f");
  const auto before = read_file(folder / "f");
  writer.metadata("not UTF-8", "\xff");
  EXPECT_ANY_THROW(writer.write(folder / "f"));
  EXPECT_EQ(read_file(folder / "f"), before);
}

TEST(Safetensors, ReadsUnalignedTensorsOfOtherPrograms) {
  const TempFolder folder;
  // the header is not padded, and the first tensor has one byte
  write_raw(folder / "f",
            R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
            R"("b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})",
            9);
  const SafetensorsReader reader(folder / "f");
  const Tensor& tensor = reader.tensor("b");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % alignof(float), 0u);
  EXPECT_EQ(static_cast<const uint8_t*>(tensor.data)[0], 1);
  EXPECT_EQ(static_cast<const uint8_t*>(tensor.data)[7], 8);
}

// bytes as Python's struct.pack writes them with "<e" and "<d"; those of BF16 end a big-endian f32
TEST(Safetensors, OtherWidthsOfFloatsBecomeF32) {
  const TempFolder folder;
  const std::string halves("\x00\x3c\x00\xc0\x01\x00\xff\x7b\x00\x7c", 10),
      bfloats("\x80\x3f\x49\xc0", 4),
      doubles("\x9a\x99\x99\x99\x99\x99\xb9\x3f\x00\x00\x00\x00\x00\x00\xf8\x7f", 16);
  const std::string header = R"({"h":{"dtype":"F16","shape":[5],"data_offsets":[0,10]},)"
                             R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[10,14]},)"
                             R"("d":{"dtype":"F64","shape":[2],"data_offsets":[14,30]}})";
  const uint64_t length = header.size();
  write_atomically(folder / "f", std::string(reinterpret_cast<const char*>(&length), 8) + header +
                                     halves + bfloats + doubles);
  const SafetensorsReader reader(folder / "f");
  const auto values = [&](const char* name) {
    const auto floats = reader.tensor(name).as<float>();
    return std::vector<float>(floats.begin(), floats.end());
  };
  EXPECT_EQ(values("h"), (std::vector<float>{1, -2, 0x1p-24f, 65504, INFINITY}));
  EXPECT_EQ(values("b"), (std::vector<float>{1, -3.140625f}));
  EXPECT_EQ(reader.tensor("b").shape, Shape({1, 2}));
  EXPECT_EQ(values("d")[0], 0.1f);
  EXPECT_TRUE(std::isnan(values("d")[1]));
}

TEST(Safetensors, SaysThatAnElementOfF64IsTooLargeForF32) {
  const TempFolder folder;
  const std::string header = R"({"d":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})";
  const uint64_t length = header.size();
  const double values[] = {1, -1e300};
  write_atomically(folder / "f", std::string(reinterpret_cast<const char*>(&length), 8) + header +
                                     std::string(reinterpret_cast<const char*>(values), 16));
  const std::string error = error_text<UserError>([&] { SafetensorsReader reader(folder / "f"); });
  EXPECT_NE(error.find("tensor d: -1e+300 in element 1 is too large for f32"), std::string::npos)
      << error;
}

/// The command that the error about a file of PyTorch ends with.
std::string conversion_of(const fs::path& file) {
  const std::string error = error_text<UserError>([&] { SafetensorsReader reader(file); });
  const std::string says = fmt::format(
      "[safetensors] {} is a file of PyTorch; this command converts it: ", file.string());
  EXPECT_TRUE(error.starts_with(says)) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  return error.substr(std::min(error.size(), says.size()));
}

TEST(Safetensors, AFileOfPyTorchNamesTheCommandThatConvertsIt) {
  const TempFolder folder;
  for (const std::string start :
       {"PK\x03\x04, flags and sizes, archive/data.pkl", "\x80\x02\x8a\x0a"}) {
    const std::string directory = "PK\x05\x06" + std::string(18, '\0');
    write_atomically(folder / "it's.pth", start + std::string(600, 'x') + directory);
    // the shell reads the names of the files
    const Ended ended =
        run_command("thinwire() { test $# = 3 && test -f \"$2\" && echo $1 $3; }; " +
                    conversion_of(folder / "it's.pth"));
    EXPECT_EQ(ended.output, fmt::format("convert {}\n", (folder / "it's.safetensors").string()));
  }
  write_atomically(folder / "other.zip", "PK\x03\x04" + std::string(600, 'x'));
  EXPECT_NE(error_text<UserError>([&] {
              SafetensorsReader reader(folder / "other.zip");
            }).find("not a safetensors file"),
            std::string::npos);
}

TEST(Safetensors, AFileOfPyTorchThatIsCutShortSaysSo) {
  const TempFolder folder;
  const std::string start = "PK\x03\x04, flags and sizes, archive/data.pkl";
  for (const size_t rest : {0u, 600u, 100'000u}) {
    write_atomically(folder / "a.pth", start + std::string(rest, 'x'));
    const std::string error =
        error_text<UserError>([&] { SafetensorsReader reader(folder / "a.pth"); });
    EXPECT_NE(error.find("a.pth is a file of PyTorch that is cut short: it has no directory; this "
                         "command converts a whole copy: thinwire convert"),
              std::string::npos)
        << error;
  }
}

// torch's state dicts contain I64 counters
TEST(Safetensors, UnsupportedDTypesFailOnlyWhenRead) {
  const TempFolder folder;
  write_raw(folder / "f",
            R"({"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
            R"("w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
            12);
  const SafetensorsReader reader(folder / "f");
  EXPECT_EQ(reader.tensor("w").numel(), 1);
  EXPECT_TRUE(reader.has("n"));
  EXPECT_EQ(reader.unreadable().at("n"), "I64");
  EXPECT_NE(error_text<UserError>([&] { reader.tensor("n"); }).find("has dtype I64"),
            std::string::npos);
}

struct Damage {
  const char* name;
  std::string header;
  size_t data;
  const char* says;
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

std::string one_tensor(const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

/// Brackets that close again, so that no parser stops at them.
std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class DamagedFile : public testing::TestWithParam<Damage> {};

TEST_P(DamagedFile, IsAUserErrorThatNamesTheFile) {
  const TempFolder folder;
  const fs::path path = folder / "f";
  write_raw(path, GetParam().header, GetParam().data);
  const std::string error = error_text<UserError>([&] { SafetensorsReader reader(path); });
  EXPECT_TRUE(error.starts_with("[safetensors] " + path.string())) << error;
  EXPECT_NE(error.find(GetParam().says), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DamagedFile,
    testing::Values(
        Damage{"no_json", "hello", 0, "damaged header"},
        Damage{"empty_header", "", 0, "damaged header"},
        Damage{"cut_json", R"({"w":{"dtype")", 0, "damaged header"},
        Damage{"a_list", "[]", 0, "not a JSON object"},
        Damage{"entry_is_a_number", R"({"w":3})", 0, "damaged header"},
        Damage{"no_dtype", R"({"w":{"shape":[0],"data_offsets":[0,0]}})", 0, "dtype"},
        Damage{"no_shape", R"({"w":{"dtype":"F32","data_offsets":[0,0]}})", 0, "shape"},
        Damage{"no_offsets", R"({"w":{"dtype":"F32","shape":[0]}})", 0, "data_offsets"},
        Damage{"metadata_is_a_number", R"({"__metadata__":{"a":1}})", 0, "damaged header"},
        Damage{"huge_number", R"({"w":1e999})", 0, "damaged header"},
        Damage{"negative", one_tensor("[-2]", "[0,8]"), 8, "its shape is [-2]"},
        Damage{"two_negatives", one_tensor("[-1,-2]", "[0,8]"), 8, "its shape is"},
        Damage{"fraction", one_tensor("[2.5]", "[0,8]"), 8, "its shape is [2.5]"},
        Damage{"scalar_shape", one_tensor("2", "[0,8]"), 8, "its shape is 2"},
        Damage{"too_many", one_tensor("[1,1,2,1,1]", "[0,8]"), 8, "5 dimensions; at most 4"},
        Damage{"too_large", one_tensor("[4]", "[0,8]"), 8, "8 bytes of data for shape (4)"},
        Damage{"too_small", one_tensor("[1]", "[0,8]"), 8, "8 bytes of data for shape (1)"},
        Damage{"wraps_to_2", one_tensor("[4611686018427387904,2,2]", "[0,8]"), 8, "dimension"},
        Damage{"wraps_to_0", one_tensor("[4294967296,4294967296]", "[0,0]"), 0, "dimension"},
        Damage{"hidden_by_0", one_tensor("[9223372036854775807,9,0]", "[0,0]"), 0, "dimension"},
        Damage{"beyond_int64", one_tensor("[18446744073709551615]", "[0,8]"), 8, "dimension"},
        Damage{"offsets_swapped", one_tensor("[2]", "[8,0]"), 8, "outside the file"},
        Damage{"offsets_beyond", one_tensor("[2]", "[4,12]"), 8, "outside the file"},
        Damage{"offsets_negative", one_tensor("[2]", "[-8,0]"), 8, "its data_offsets is [-8,0]"},
        Damage{"one_offset", one_tensor("[2]", "[8]"), 8, "outside the file"},
        Damage{"deep_shape", one_tensor(nested(150000), "[0,8]"), 8, "nested deeper than 64"},
        Damage{"deep_under_a_checksum",
               R"({"__metadata__":{"checksum":"0"},"w":{"dtype":"U8","shape":[0],)"
               R"("data_offsets":[0,0],"more":)" +
                   nested(150000) + "}}",
               0, "nested deeper than 64"},
        Damage{"twice",
               R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
               R"("w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
               0, R"(key "w" occurs twice)"},
        Damage{"hole", one_tensor("[1]", "[4,8]"), 8, "leave a hole at byte 0"},
        Damage{"bytes_left", one_tensor("[1]", "[0,4]"), 8, "take 4 bytes of data"},
        Damage{"overlap",
               R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
               8, "overlap"},
        Damage{"other_dtype_beyond", R"({"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", 4,
               "outside the file"}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST(Safetensors, ATruncatedFileIsAUserError) {
  const TempFolder folder;
  std::vector<float> floats{1, 2, 3};
  SafetensorsWriter writer;
  writer.add("w", tensor_of(floats, {3}));
  writer.write(folder / "whole");
  const auto whole = read_file(folder / "whole");
  for (size_t size = 0; size < whole.size(); ++size) {
    write_atomically(folder / "cut", {reinterpret_cast<const char*>(whole.data()), size});
    EXPECT_THROW(SafetensorsReader(folder / "cut"), UserError) << size << " bytes";
  }
}

TEST(Safetensors, AHugeHeaderLengthIsAUserError) {
  const TempFolder folder;
  for (const uint64_t length : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 7}) {
    write_atomically(folder / "f", {reinterpret_cast<const char*>(&length), sizeof length});
    EXPECT_THROW(SafetensorsReader(folder / "f"), UserError) << length;
  }
}

}  // namespace
}  // namespace tw::test
