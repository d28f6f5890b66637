/* Included before mlx-c's C++ sources: std::format from fmt where the standard library has none (g++ before 13). */
#ifdef __cplusplus
#include <version>
#ifdef __cpp_lib_format
#include <format>
#else
#define FMT_HEADER_ONLY
#include <fmt/format.h>
namespace std {
using fmt::format;
}
#endif
#endif
