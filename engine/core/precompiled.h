// Headers of the standard library and fmt that most files include, compiled once for all of them.
// Every file still includes what it uses: CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without this.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>
