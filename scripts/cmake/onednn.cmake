# Finds oneDNN and makes DNNL::dnnl of it. Debian's own CMake file for it asks for the development
# files of OpenCL, which nothing here uses.

find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
  message(FATAL_ERROR "oneDNN was not found (Debian: libdnnl-dev); DNNL_INCLUDE_DIR and "
                      "DNNL_LIBRARY may name it")
endif()
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
