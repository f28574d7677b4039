// Names of classes, in the order of the labels: their encoding, comparison and mapping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tw {

/// as_utf8() of each.
std::vector<std::string> as_utf8(std::vector<std::string> names);

/// The first difference between the classes of data and of weights: renamed, missing, additional or
/// in another order; empty if there is none. Says so when names differ in their Unicode form (NFC
/// and NFD look alike).
std::string class_difference(const std::vector<std::string>& data,
                             const std::vector<std::string>& weights);

inline constexpr const char* kOfClassMap = "[options] class-map";

/// For each class of the data, the label of its class among those of the weights: the one of the
/// same name, in any Unicode form, or the one that `map` names. `map`: `names`, or a list
/// `DATA=WEIGHTS,...` of classes with other names. UserError when a class is not found, or two
/// become one; it begins with `area`, and `there` says what has `weights`.
std::vector<int32_t> class_map(const std::string& map, const std::vector<std::string>& data,
                               const std::vector<std::string>& weights,
                               const std::string& area = kOfClassMap,
                               const char* there = "weights");

}  // namespace tw
