/*
 * The public JSON parsing suite: y_ files must be accepted, n_ files refused, i_ files may be
 * either but never crash. Documented exception: y_object_duplicated_key* are refused, since
 * duplicate names are.
 */
#include "suite.h"

#include "codec/json.h"

static int one(void *ctx, const char *path, const char *name)
{
	struct err err;
	json_t *v = NULL;
	size_t n;
	err_clear(&err);
	char *text = suite_read(path, &n);
	bool accepted = json_parse((struct str){text, n}, SIZE_MAX / 2, &v, &err) == 0;
	free(text);
	json_decref(v);
	bool duplicate = strncmp(name, "y_object_duplicated_key", 23) == 0;
	bool ok = name[0] == 'i' || accepted == (name[0] == 'y' && !duplicate);
	return suite_result(ctx, ok, name, accepted ? "it was accepted" : err.text);
}

int main(int argc, char **argv)
{
	unsigned number = 0;
	int failed = argc == 2 ? suite_each(argv[1], one, &number) : 1;
	printf("1..%u\n", number);
	return failed ? 1 : 0;
}
