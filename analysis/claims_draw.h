/* SPDX-License-Identifier: Apache-2.0 */
/* What the pictures of claims share. A picture is drawn from a gnuplot script in a temporary
 * file, which begins with a frame. */
#ifndef ADL_ANALYSIS_CLAIMS_DRAW_H
#define ADL_ANALYSIS_CLAIMS_DRAW_H

#include "analysis/claims.h"

/* Text within gnuplot's double quotes. */
void adl_claims_quoted(const char *text, FILE *script);
/* The terminal, in pixels, and the look of everything; path: where gnuplot writes. */
void adl_claims_frame(const char *path, double width, double height, FILE *script);
/* Draws the script, which writes part, into path. */
enum adl_status adl_claims_finish(FILE *script, const char *path, const char *part,
                                  struct adl_err *err);

/* Writes the script of the laws that the claim's questions fit, a panel each, with the points of
 * the first seed; *n panels, and none where it stays 0. sweep: the directory of the runs. */
enum adl_status adl_claims_write_laws(const struct adl_claim_result *result,
                                      const struct adl_results *results, const char *sweep,
                                      const char *part, FILE *script, size_t *n,
                                      struct adl_err *err);

#endif
