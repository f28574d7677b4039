// Reads vectors from and writes indices to .npy files, NumPy's format for one array.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace tw {

/// The elements of a little-endian float32 array of any shape in C order (format 1, 2 or 3).
/// UserError names the file and what is wrong with it.
std::vector<float> read_npy(const std::filesystem::path& path);

/// Whether a file starts with the magic bytes of .npy.
bool is_npy(const std::filesystem::path& path);
/// UserError if there is a file that is none.
void check_npy(const std::filesystem::path& path);

/// Writes a vector of integers, atomically.
void write_npy(const std::filesystem::path& path, std::span<const uint32_t> values);
void write_npy(const std::filesystem::path& path, std::span<const int64_t> values);

}  // namespace tw
