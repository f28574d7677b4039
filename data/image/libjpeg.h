// libjpeg's headers; they need size_t and FILE to be declared first.
#pragma once

// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
