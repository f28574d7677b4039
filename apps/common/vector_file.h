// Reads one vector from a file: of .npy, or a tensor of a safetensors file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/io/safetensors.h"

namespace tw {

/// The elements of an f32 tensor of the file. UserError when it has none of this name, when there
/// are no elements or more than indices of 32 bits can name, and when one is not finite.
std::vector<float> vector_in(const SafetensorsReader& file, const std::string& tensor);

/// The vector in a .npy file (float32, C order), or a tensor of a safetensors file, which need not
/// be named where there is only one. UserError as vector_in().
std::vector<float> read_vector(const std::filesystem::path& path, const std::string& tensor = "");

}  // namespace tw
