/* kernel: rmsnorm
   outcome: solved

   Indented by tabs, tabs within lines and after them, and no end of the last line. */
#include	<math.h>	
#	include <stdint.h>
	#define	SQUARE(v)	((v)	*	(v))

void	rmsnorm(const float *x,	const float *weight,	float *out,	int64_t rows,	int64_t cols,	float eps)
{
	for	(int64_t r = 0;	r < rows;	r++) {	
		double	sum = 0;
		for (int64_t c = 0; c < cols; c++)
			sum += SQUARE((double)x[r * cols + c]);
		double	scale = 1 / sqrt(sum / (double)cols + eps);
		for (int64_t c = 0; c < cols; c++)
			out[r * cols + c] = (float)(x[r * cols + c] * scale * weight[c]);
	}
}