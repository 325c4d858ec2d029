#include "core/fusion/internal.h"
void fusion_make_movement(fusion_context *context, uint32_t item)
{
    (void)item;
    context->reason = "no movement yet";
}
