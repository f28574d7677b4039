#include "engine/cuda/cublas.h"

#include <dlfcn.h>

#include "engine/core/error.h"

namespace tw::cuda {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  check<Fault>(function != nullptr, "[cuda] cuBLAS: {}", dlerror());
}

// cublasGemmEx is overloaded, so Cublas repeats its type
static_assert(requires { static_cast<decltype(Cublas::gemm)>(cublasGemmEx); });

Cublas load() {
  void* const library =
      dlopen(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR).c_str(), RTLD_NOW | RTLD_LOCAL);
  check<Fault>(library != nullptr, "[cuda] cuBLAS: {}", dlerror());
  Cublas functions{};
  find(library, "cublasCreate_v2", functions.create);
  find(library, "cublasDestroy_v2", functions.destroy);
  find(library, "cublasSetStream_v2", functions.set_stream);
  find(library, "cublasSetWorkspace_v2", functions.set_workspace);
  find(library, "cublasGemmEx", functions.gemm);
  find(library, "cublasGetStatusString", functions.status_string);
  return functions;
}

}  // namespace

const Cublas& cublas() {
  static const Cublas functions = load();
  return functions;
}

}  // namespace tw::cuda
