/* Included before every mlx-c header on Linux.
 *
 * mlx-c's own half.h declares its 16-bit types on ARM only. Elsewhere this header takes its place: it defines
 * half.h's guard, says that both types exist, and maps them to MLX's own types (C++) or to types of the same
 * size and calling convention for the binding generator (C). */
#if !defined(__aarch64__) && !defined(MLX_HALF_H)
#define MLX_HALF_H
#define HAS_FLOAT16
#define HAS_BFLOAT16
#ifdef __cplusplus
#include <mlx/types/half_types.h>
typedef mlx::core::float16_t float16_t;
typedef mlx::core::bfloat16_t bfloat16_t;
#else
#include <stdint.h>
typedef _Float16 float16_t;
typedef uint16_t bfloat16_t;
#endif
#endif
