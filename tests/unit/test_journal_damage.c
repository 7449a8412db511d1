/*
 * Ten thousand random damages of a log, every one found: bits and bytes that change, cuts, lines
 * and groups that are removed, doubled or change places, pieces of another log, whole segments that
 * are gone, a roll back past a position that somebody has kept.
 *
 * CLOISTER_TEST_FULL=1 does all of them, else a twentieth that rotates with CLOISTER_TEST_SEED.
 */
#include "journal_fixture.h"

enum { DAMAGES = 10000, PART = 20, SEGMENTS_MAX = 16, FILE_MAX = 64 * 1024 };

struct image {
	unsigned n;
	size_t size[SEGMENTS_MAX];
	char data[SEGMENTS_MAX][FILE_MAX];
};

static struct jfix fix;
static struct image whole, work;
static struct jposition kept; /* the last one */
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static size_t below(size_t n)
{
	return n ? (size_t)(next_random() % n) : 0;
}

static void load(struct image *im)
{
	struct err err;
	uint32_t first, last;
	assert_int_equal(jwalk_segments(fix.log_fd, &first, &last, &err), 0);
	assert_true(last <= SEGMENTS_MAX);
	im->n = last;
	for (unsigned i = 0; i < last; i++) {
		int fd;
		assert_int_equal(jwalk_open(fix.log_fd, i + 1, O_RDONLY, &fd, &err), 0);
		ssize_t n = read(fd, im->data[i], FILE_MAX);
		assert_true(n > 0 && n < FILE_MAX);
		im->size[i] = (size_t)n;
		close(fd);
	}
}

static void store(const struct image *im)
{
	for (unsigned i = 0; i < SEGMENTS_MAX; i++) {
		char name[JWALK_NAME];
		jwalk_name(i + 1, name);
		(void)unlinkat(fix.log_fd, name, 0);
		if (i >= im->n || !im->size[i])
			continue;
		int fd = openat(fix.log_fd, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
		assert_int_equal(write(fd, im->data[i], im->size[i]), (ssize_t)im->size[i]);
		close(fd);
	}
}

/* The start of a random line, and its length. */
static size_t some_line(unsigned s, size_t *ret_n)
{
	const char *d = work.data[s];
	size_t at = below(work.size[s]);
	while (at > 0 && d[at - 1] != '\n')
		at--;
	const char *nl = memchr(d + at, '\n', work.size[s] - at);
	*ret_n = nl ? (size_t)(nl + 1 - d) - at : work.size[s] - at;
	return at;
}

/* From behind a seal or header to behind the next seal. */
static size_t some_group(unsigned s, size_t *ret_n)
{
	const char *d = work.data[s];
	size_t at, n;
	do
		at = some_line(s, &n);
	while (d[at] != '{');
	while (at > 0 && !(d[at - 1] == '\n' && d[at] == '{' &&
				 (memrchr(d, '\n', at - 1) == NULL ||
					 ((const char *)memrchr(d, '\n', at - 1))[1] != '{')))
		at--;
	const char *p = d + at;
	while (*p != '=')
		p = (const char *)memchr(p, '\n', work.size[s]) + 1;
	*ret_n = (size_t)((const char *)memchr(p, '\n', work.size[s]) + 1 - d) - at;
	return at;
}

static void remove_piece(unsigned s, size_t at, size_t n)
{
	memmove(work.data[s] + at, work.data[s] + at + n, work.size[s] - at - n);
	work.size[s] -= n;
}

static void insert_piece(unsigned s, size_t at, const char *p, size_t n)
{
	static char copy[FILE_MAX];
	memcpy(copy, p, n);
	n = MIN(n, FILE_MAX - work.size[s]);
	memmove(work.data[s] + at + n, work.data[s] + at, work.size[s] - at);
	memcpy(work.data[s] + at, copy, n);
	work.size[s] += n;
}

/* --- damages; each returns what it is called --- */

static void flip_bit(unsigned s)
{
	work.data[s][below(work.size[s])] ^= (char)(1 << below(8));
}

static void set_byte(unsigned s)
{
	work.data[s][below(work.size[s])] = "\n {}\"=#0\0"[below(9)];
}

static void zero_range(unsigned s)
{
	size_t at = below(work.size[s]);
	memset(work.data[s] + at, 0, 1 + below(MIN((size_t)600, work.size[s] - at)));
}

static void cut_end(unsigned s)
{
	work.size[s] = below(work.size[s]);
}

static void remove_line(unsigned s)
{
	size_t n, at = some_line(s, &n);
	remove_piece(s, at, n);
}

static void double_line(unsigned s)
{
	size_t n, at = some_line(s, &n);
	insert_piece(s, at, work.data[s] + at, n);
}

static void swap_lines(unsigned s)
{
	static char line[FILE_MAX];
	size_t n, at = some_line(s, &n), m;
	memcpy(line, work.data[s] + at, n);
	remove_piece(s, at, n);
	if (work.size[s])
		insert_piece(s, some_line(s, &m), line, n);
}

static void remove_group(unsigned s)
{
	size_t n, at = some_group(s, &n);
	remove_piece(s, at, n);
}

static void double_group(unsigned s)
{
	size_t n, at = some_group(s, &n);
	insert_piece(s, at + n, work.data[s] + at, n);
}

static void swap_groups(unsigned s)
{
	static char group[FILE_MAX];
	size_t n, at = some_group(s, &n), m;
	memcpy(group, work.data[s] + at, n);
	remove_piece(s, at, n);
	if (memchr(work.data[s], '{', work.size[s]))
		insert_piece(s, some_group(s, &m), group, n);
}

static void group_of_another_segment(unsigned s)
{
	size_t n, m, to = some_group(s, &m);
	unsigned from = (unsigned)below(work.n);
	size_t at = some_group(from, &n);
	insert_piece(s, to, work.data[from] + at, n);
}

static void remove_segment(unsigned s)
{
	work.size[s] = 0;
	if (s == work.n - 1)
		work.n--;
}

static void swap_segments(unsigned s)
{
	static char copy[FILE_MAX];
	unsigned t = (unsigned)below(work.n);
	size_t n = work.size[s];
	memcpy(copy, work.data[s], n);
	memcpy(work.data[s], work.data[t], work.size[t]);
	work.size[s] = work.size[t];
	memcpy(work.data[t], copy, n);
	work.size[t] = n;
}

/* Back to a seal: what is left was right once. */
static void roll_back(unsigned s)
{
	size_t n, at = some_group(s, &n);
	work.n = s + 1;
	work.size[s] = at;
	if (memchr(work.data[s], '{', at) == NULL && s > 0)
		work.n = s;
}

static const struct {
	const char *name;
	void (*run)(unsigned segment);
} damages[] = {
	{"a bit flipped", flip_bit},
	{"a byte set", set_byte},
	{"bytes zeroed", zero_range},
	{"the end cut off", cut_end},
	{"a line removed", remove_line},
	{"a line doubled", double_line},
	{"lines swapped", swap_lines},
	{"a group removed", remove_group},
	{"a group doubled", double_group},
	{"groups swapped", swap_groups},
	{"a group of another segment", group_of_another_segment},
	{"a segment removed", remove_segment},
	{"segments swapped", swap_segments},
	{"rolled back", roll_back},
};

static bool same(const struct image *a, const struct image *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->size[i] != b->size[i] || memcmp(a->data[i], b->data[i], a->size[i]) != 0)
			return false;
	return true;
}

static int setup(void **state _unused_)
{
	jfix_init(&fix);
	struct jlog *l = jfix_open(&fix, 1, 5000);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(jfix_group(&fix, l, 1 + i % 5, JRECORD_KIND_CALL, "abc"), 0);
	jlog_position(l, &kept);
	jlog_free(l);
	load(&whole);
	return 0;
}

static int teardown(void **state _unused_)
{
	jfix_done(&fix);
	return 0;
}

static void test_whole_log_verifies(void **state _unused_)
{
	struct jverify_result v;
	assert_int_equal(jfix_verify(&fix, &kept, &v), 0);
	assert_true(v.segments > 4);
}

static void damage_once(uint64_t seed, unsigned kind)
{
	struct jverify_result v;
	random_state = (seed + 1) * 0x9e3779b97f4a7c15ull;
	do {
		work = whole;
		damages[kind].run((unsigned)below(work.n));
	} while (same(&work, &whole));
	store(&work);
	if (jfix_verify(&fix, &kept, &v) < 0)
		return;
	print_error("not found: %s, seed %llu\n", damages[kind].name, (unsigned long long)seed);
	fail();
}

static void test_every_damage_is_found(void **state _unused_)
{
	const char *full = getenv("CLOISTER_TEST_FULL"), *given = getenv("CLOISTER_TEST_SEED");
	bool all = full && strcmp(full, "1") == 0;
	uint64_t part = given ? strtoull(given, NULL, 10) % PART : 0, tried = 0;
	for (uint64_t i = 0; i < DAMAGES; i++) {
		if (!all && i % PART != part)
			continue;
		damage_once(i, (unsigned)(i / PART % ARRAY_LEN(damages)));
		tried++;
	}
	print_message("# %llu damages, all found\n", (unsigned long long)tried);
	store(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_log_verifies),
		cmocka_unit_test(test_every_damage_is_found),
	};
	return cmocka_run_group_tests_name("journal damage", tests, setup, teardown);
}
