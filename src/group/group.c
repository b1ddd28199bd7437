/* A group of one, a group over a link, and what a rank knows of its group. */
#include "core/alloc.h"
#include "group/process_group.h"

static ng_group *group_over(const char *function, const ng_group_link *link)
{
    ng_group *group = ng_calloc(function, 1, sizeof *group);
    ng_process_group *pg = group ? ng_process_group_new(function, link, link->size) : NULL;
    if (!pg) {
        ng_free(group);
        return NULL;
    }
    *group = (ng_group){.pg = pg, .rank = link->rank};
    return group;
}

ng_group *ng_group_alone(void) { return group_over("ng_group_alone", &(ng_group_link){.size = 1}); }

ng_group *ng_group_over(const ng_group_link *link)
{
    static const char function[] = "ng_group_over";
    if (!ng_given(function, "link", link)) return NULL;
    const bool whole = link->size == 1 || (link->send && link->receive && link->test && link->sum);
    if (link->size >= 1 && link->size <= NG_MOST_RANKS && link->rank >= 0 &&
        link->rank < link->size && whole)
        return group_over(function, link);
    ng_fail(NG_EVALUE, "%s: process %d of %d%s, expected 0 <= rank < size and all functions",
            function, link->rank, link->size, whole ? "" : " without all functions");
    return NULL;
}

int ng_group_rank(const ng_group *group)
{
    return ng_given("ng_group_rank", "group", group) ? group->rank : -1;
}

int ng_group_size(const ng_group *group)
{
    return ng_given("ng_group_size", "group", group) ? group->pg->route.ranks : -1;
}

void ng_group_free(ng_group *group)
{
    if (!group) return;
    ng_group_leave(group, "ng_group_free");
    const ng_group_link *link = &group->pg->link;
    if (link->close) link->close(link->with);
    ng_process_group_free(group->pg);
    ng_free(group);
}
