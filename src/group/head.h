/* What a member has called for, and how it stands. */
#ifndef NG_GROUP_HEAD_H
#define NG_GROUP_HEAD_H

#include "group/team.h"

enum { NG_HEAD_TEXT = 232 }; /* cut */

typedef struct {
    int32_t how, fast;
    int64_t count;
    int32_t status, member;  /* not NG_OK: who has failed */
    char text[NG_HEAD_TEXT]; /* of the failure; or the call's */
} ng_head;

ng_head ng_head_failed(ng_status status, int member, const char *text);

/* What both have called for, or the failure of the first of them, or of both, if they call for
 * different things. */
void ng_head_add(ng_head *head, const ng_head *other);

#endif
