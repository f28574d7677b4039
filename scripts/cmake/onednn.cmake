# Finds oneDNN and defines the target DNNL::dnnl. Debian's CMake file of oneDNN also requires the
# development files of OpenCL, which this project does not use.

find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
  message(FATAL_ERROR "oneDNN was not found (Debian: libdnnl-dev); if it is elsewhere, set "
                      "DNNL_INCLUDE_DIR and DNNL_LIBRARY")
endif()
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
