// A baseline for the loader: plain libjpeg in a loop. The loader can be faster, because it decodes
// only the crop, at a reduced scale where that is enough.
#pragma once

#include <string>
#include <vector>

namespace tw {

/// Images/s of `threads` threads that read each file once, decode all of it at full size and resize
/// it to side x side pixels. UserError names a file that libjpeg cannot decode.
double libjpeg_images_per_second(const std::vector<std::string>& files, int side, int threads);

}  // namespace tw
