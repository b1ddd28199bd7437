/* Gradient hooks: which op completes a leaf's gradient, and the call when it has run. */
#include "tape/hook.h"

void ng_hook(ng_gradient_hook *hook)
{
    hook->reached = hook->complete = false;
    hook->last = NULL;
    hook->leaf->hook = hook;
}

void ng_unhook(ng_gradient_hook *hook)
{
    hook->leaf->hook = NULL;
    hook->leaf->cotangent = NULL;
    hook->leaf->cotangent_owned = false;
}

void ng_hooks_prepare(const ng_node *newest)
{
    for (const ng_node *node = newest; node; node = node->previous)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i]->hook) node->inputs[i]->hook->last = node;
}

void ng_hooks_call(const ng_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        ng_tensor *leaf = node->inputs[i];
        ng_gradient_hook *hook = leaf->hook;
        if (!hook || hook->last != node || hook->complete) continue;
        hook->complete = true;
        hook->reached = leaf->cotangent != NULL;
        leaf->cotangent = NULL;
        leaf->cotangent_owned = false;
        hook->call(hook);
    }
}
