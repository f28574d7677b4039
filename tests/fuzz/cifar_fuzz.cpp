// CIFAR files with any bytes give images with labels below 10, or a UserError.
#include <cstdlib>
#include <fstream>

#include "data/cifar/cifar_binary.h"
#include "engine/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::filesystem::path dir = [] {
    std::string name = (std::filesystem::temp_directory_path() / "cifar_fuzz.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    return std::filesystem::path(name);
  }();
  // two records in each file; the first byte can select one byte too few or too many
  std::string bytes(2 * tw::kCifarRecord, '\0');
  for (size_t i = 0; i < bytes.size() && size > 1; ++i)
    bytes[i] = static_cast<char>(data[1 + i % (size - 1)]);
  if (size > 0 && data[0] % 8 < 2) bytes.resize(bytes.size() - 1 + data[0] % 8 * 2);
  const tw::CifarFiles files{.name = "fuzz", .dir = dir, .train_records = 2, .test_records = 2};
  auto paths = files.train();
  paths.push_back(files.test());
  for (const auto& path : paths) std::ofstream(path, std::ios::binary) << bytes;
  try {
    const tw::DataSplit split = tw::read_cifar_files(files, size % 3);
    std::vector<uint8_t> pixels(3 * tw::kCifarPixels);
    for (const auto* half : {split.train.get(), split.val.get()})
      for (size_t i = 0; i < half->size(); ++i)
        if (const int32_t label = half->get(i, pixels); label < 0 || label > 9) std::abort();
  } catch (const tw::UserError&) {
  }
  return 0;
}
