// Reading and writing .npy files.
#include "apps/common/npy.h"

#include <cstring>
#include <fstream>

#include "engine/core/error.h"
#include "engine/io/file.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// Writes a .npy file of version 1 or 2 with this header dictionary and data.
void put(const std::filesystem::path& path, int version, std::string dictionary,
         std::span<const float> data) {
  const size_t begin = version == 1 ? 10 : 12;
  dictionary.resize((begin + dictionary.size() + 1 + 63) / 64 * 64 - begin - 1, ' ');
  dictionary += '\n';
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY" << static_cast<char>(version) << '\0';
  const auto length = static_cast<uint32_t>(dictionary.size());
  out.write(reinterpret_cast<const char*>(&length), static_cast<std::streamsize>(begin - 8));
  out << dictionary;
  out.write(reinterpret_cast<const char*>(data.data()),
            static_cast<std::streamsize>(data.size_bytes()));
}

std::string dictionary(const std::string& dtype, const std::string& shape,
                       const std::string& fortran = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", dtype, fortran,
                     shape);
}

const std::vector<float> six{1, -2, 3.5f, 0, -0.0f, 1e-40f};

TEST(Npy, ReadsEveryShapeOfFloat32) {
  const TempFolder folder;
  for (int version : {1, 2, 3})
    for (const char* shape : {"(6,)", "(2, 3)", "(1, 6, 1)"}) {
      put(folder / "u.npy", version, dictionary("<f4", shape), six);
      EXPECT_EQ(read_npy(folder / "u.npy"), six) << version << shape;
    }
  put(folder / "u.npy", 1, dictionary("<f4", "()"), std::vector<float>{7});
  EXPECT_EQ(read_npy(folder / "u.npy"), std::vector<float>{7});
  put(folder / "u.npy", 1, dictionary("<f4", "(0, 3)"), {});
  EXPECT_TRUE(read_npy(folder / "u.npy").empty());
  EXPECT_TRUE(is_npy(folder / "u.npy"));
}

TEST(Npy, AShapeBeyondTheFileAllocatesNothing) {
  const TempFolder folder;
  put(folder / "u.npy", 1, dictionary("<f4", "(1099511627776,)"), six);
  const std::string text = error_text<UserError>([&] { read_npy(folder / "u.npy"); });
  EXPECT_NE(text.find("24 bytes of data"), text.npos) << text;
}

TEST(Npy, RejectsOtherFilesWithOneLine) {
  const TempFolder folder;
  const auto path = folder / "u.npy";
  const auto refused = [&](const std::string& why) {
    const std::string text = error_text<UserError>([&] { read_npy(path); });
    EXPECT_NE(text.find(why), text.npos) << text;
    EXPECT_NE(text.find(path.string()), text.npos) << text;
    EXPECT_EQ(text.find('\n'), text.npos) << text;
  };
  refused("u.npy");  // missing
  write_atomically(path, "hello");
  refused("not a .npy file");
  put(path, 4, dictionary("<f4", "(6,)"), six);
  refused("format 4");
  put(path, 1, dictionary("<f8", "(3,)"), six);
  refused("dtype is '<f8'; expected '<f4'");
  put(path, 1, dictionary(">f4", "(6,)"), six);
  refused("dtype is '>f4'");
  put(path, 1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", six);
  refused("structured");
  put(path, 1, dictionary("<f4", "(2, 3)", "True"), six);
  refused("Fortran order");
  put(path, 1, dictionary("<f4", "(7,)"), six);
  refused("24 bytes of data for shape (7,); expected 28");
  put(path, 1, dictionary("<f4", "(5,)"), six);
  refused("expected 20");
  put(path, 1, dictionary("<f4", "(4294967296, 4294967296)"), six);
  refused("a size is 4294967296");
  put(path, 1, dictionary("<f4", "(x,)"), six);
  refused("damaged header");
  put(path, 1, "{'descr': '<f4', 'fortran_order': False}", six);
  refused("it has no 'shape'");
  put(path, 1, dictionary("<f4", "(6,)"), six);
  std::filesystem::resize_file(path, 40);
  refused("cut short");
}

TEST(Npy, WritesIndicesAsNumpyReadsThem) {
  const TempFolder folder;
  write_npy(folder / "i.npy", std::vector<int64_t>{3, 70'000'000'000});
  const auto bytes = read_file(folder / "i.npy");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text.size(), 128u + 16u);  // the data begins at a multiple of 64
  EXPECT_NE(text.find("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"), text.npos);
  EXPECT_EQ(text[127], '\n');
  int64_t values[2];
  std::memcpy(values, text.data() + 128, sizeof values);
  EXPECT_EQ(values[1], 70'000'000'000);
  write_npy(folder / "u.npy", std::vector<uint32_t>{1, 2, 3});
  EXPECT_EQ(std::filesystem::file_size(folder / "u.npy"), 128u + 12u);
}

}  // namespace
}  // namespace tw::test
