#include "apps/common/distributions.h"

#include <cmath>
#include <numbers>

#include "sparsify/selectors/gaussian_loop.h"

namespace tw {

double left_of_gaussian(double density) {
  if (density >= 1) return 0;
  const double z = -normal_quantile(density / 2);
  const double bell = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return 1 - density - 2 * z * bell;
}

}  // namespace tw
