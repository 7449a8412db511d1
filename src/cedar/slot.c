/*
 * The slot of the current policy set.
 *
 * One word holds the set's address and, above it, how many readers took a reference through this
 * word since the last time they were counted into the set. A reader adds one to the word and has a
 * reference at once: no moment exists at which it knows the set without holding it. While a set is
 * in a slot its own count carries a bias, so that readers who give their references back cannot
 * make it reach zero; taking it out removes the bias and adds the readers in one step.
 */
#include "cedar/policies.h"

#include <assert.h>

enum { ADDRESS_BITS = 48, FOLD_AT = 1 << 14 };

#define ONE_READER (UINT64_C(1) << ADDRESS_BITS)
#define BIAS (INT64_C(1) << 40)

static_assert(sizeof(uintptr_t) == 8, "addresses share a word with a count");

static struct cedar_policies *address(uint64_t word)
{
	return (struct cedar_policies *)(uintptr_t)(word & (ONE_READER - 1));
}

static int64_t readers(uint64_t word)
{
	return (int64_t)(word >> ADDRESS_BITS);
}

void cedar_slot_set(struct cedar_slot *slot, cedar_policies *policies)
{
	if (policies) /* the caller's reference becomes the slot's */
		(void)__atomic_add_fetch(&policies->references, BIAS, __ATOMIC_RELAXED);
	uint64_t old =
		__atomic_exchange_n(&slot->word, (uint64_t)(uintptr_t)policies, __ATOMIC_ACQ_REL);
	if (address(old))
		ced_policies_release(address(old), BIAS + 1 - readers(old));
}

/* Move the readers of the word into the set before the word's count can overflow. Losing a race is
 * harmless: somebody else will do it. */
static void fold(struct cedar_slot *slot, uint64_t word)
{
	struct cedar_policies *set = address(word);
	int64_t n = readers(word);
	uint64_t folded = word - (uint64_t)n * ONE_READER;
	(void)__atomic_add_fetch(&set->references, n, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(
		    &slot->word, &word, folded, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		ced_policies_release(set, n);
}

cedar_policies *cedar_slot_get(struct cedar_slot *slot)
{
	/* An empty slot must not collect readers. */
	if (!address(__atomic_load_n(&slot->word, __ATOMIC_RELAXED)))
		return NULL;
	uint64_t word = __atomic_add_fetch(&slot->word, ONE_READER, __ATOMIC_ACQ_REL);
	if (readers(word) >= FOLD_AT)
		fold(slot, word);
	return address(word);
}
