/* Elementary functions of one double. Random numbers, schedules and optimizers call these and not
 * the C library, so that their results have the same bits everywhere. */
#ifndef NG_CORE_FUNCTIONS_H
#define NG_CORE_FUNCTIONS_H

double ng_ln(double x);
double ng_power(double x, double y);
double ng_sine(double x);
double ng_cosine(double x);

/* sin x and cos x for |x| > SINE_END (elementary.h). */
double ng_sine_of_large(double x);
double ng_cosine_of_large(double x);

#endif
