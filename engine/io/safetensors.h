// safetensors: a JSON header and raw little-endian tensors; PyTorch reads and writes it.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/core/tensor.h"

namespace tw {

class SafetensorsWriter {
 public:
  /// Adds a tensor; its data must stay valid until write(). f32, i32 and u8.
  void add(std::string name, const Tensor& tensor) { tensors_[std::move(name)] = tensor; }
  void metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  /// Writes the file atomically, with a checksum in its metadata that our reader verifies. Tensors
  /// of the widest element type come first, so that each is aligned in a mapped file.
  void write(const std::filesystem::path& path) const;
  /// Calls `take` for the bytes of that file, a range at a time.
  void visit(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

class SafetensorsReader {
 public:
  /// Reads and checks the whole file; throws UserError with the file name and the defect. Tensors
  /// of F16, BF16 and F64 become f32, which must hold their elements. Files of other programs have
  /// no checksum.
  explicit SafetensorsReader(const std::filesystem::path& path);
  /// The same for the bytes of the file `path`.
  SafetensorsReader(std::filesystem::path path, std::vector<std::byte> bytes);
  SafetensorsReader(SafetensorsReader&&) =
      default;  // tensors of a copy would point into the original

  /// The tensor called `name`; throws UserError when it is missing or its dtype is unsupported.
  const Tensor& tensor(const std::string& name) const;
  bool has(const std::string& name) const {
    return tensors_.contains(name) || unreadable_.contains(name);
  }
  /// Drops `prefix` from all names; false, and no change, unless every name begins with it.
  bool drop_prefix(const std::string& prefix);
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  /// Tensors of unsupported dtypes: name -> dtype.
  const std::map<std::string, std::string>& unreadable() const { return unreadable_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }
  /// Whether the file has a checksum. The constructor verified it.
  bool sealed() const { return sealed_; }
  /// The whole file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  bool sealed_ = false;
  std::vector<std::byte> bytes_;
  std::deque<std::vector<std::byte>> moved_;  // copies of tensors misaligned in the file
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_, unreadable_;
};

}  // namespace tw
