/* The public pairs of RFC 8785: every input has exactly the output's bytes as its canonical form,
 * which is its own canonical form. */
#include "suite.h"

#include "codec/canonical.h"
#include "codec/json.h"

struct pairs {
	const char *output;
	unsigned number;
};

static bool canonical_is(struct str text, struct str want, struct err *err)
{
	json_t *v = NULL;
	_cleanup_buf_ struct buf out = buf_init(1 << 24);
	if (json_parse(text, SIZE_MAX / 2, &v, err) < 0)
		return false;
	int r = json_canonical_exact(v, &out, err);
	json_decref(v);
	if (r < 0)
		return false;
	(void)err_set(err, ERR_INTERNAL, "got %.300s", buf_str(&out));
	return str_eq((struct str){buf_str(&out), out.len}, want);
}

static int one(void *ctx, const char *path, const char *name)
{
	struct pairs *p = ctx;
	struct err err;
	char out_path[4096];
	size_t n, want_n;
	(void)snprintf(out_path, sizeof(out_path), "%s/%s", p->output, name);
	char *text = suite_read(path, &n), *want = suite_read(out_path, &want_n);
	struct str w = {want, want_n};
	bool ok = canonical_is((struct str){text, n}, w, &err) && canonical_is(w, w, &err);
	free(text);
	free(want);
	return suite_result(&p->number, ok, name, err.text);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 1;
	struct pairs p = {.output = argv[2]};
	int failed = suite_each(argv[1], one, &p);
	printf("1..%u\n", p.number);
	return failed ? 1 : 0;
}
