/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/version.h"

#include "build_config.h"
#include "core/registry.h"

void adl_version_print(FILE *out)
{
    fprintf(out, "adloco %s\n", ADL_VERSION);
    const struct adl_part *first = adl_registry()->parts;
    for (const struct adl_part *part = first; part->name; part++) {
        if (part != first)
            fputs(", ", out);
        if (part->version)
            fprintf(out, "%s %s", part->name, part->version);
        else
            fprintf(out, "no %s (%s)", part->name, part->why);
    }
    putc('\n', out);
}
