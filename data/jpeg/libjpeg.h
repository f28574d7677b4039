// libjpeg's headers, which want size_t and FILE declared before them.
#pragma once

// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
