/* The codecs with their n-th allocation failing: an error, nothing left behind, outputs untouched.
 */
#include "testing.h"

#include "base/glob.h"
#include "codec/canonical.h"
#include "codec/config.h"
#include "codec/json.h"
#include "codec/toml.h"
#include "codec/yaml.h"
#include "fail_alloc.h"

enum { TEXT_MAX = 1 << 20 };

static int run_json(void *ctx, struct err *err)
{
	json_t *v = NULL;
	int r = json_parse(str_of(ctx), TEXT_MAX, &v, err);
	if (r < 0) {
		assert_null(v);
		return r;
	}
	struct buf out = buf_init(TEXT_MAX);
	r = json_canonical(v, &out, err);
	buf_done(&out);
	json_decref(v);
	return r;
}

static void json_reports_missing_memory(void **state)
{
	(void)state;
	char text[] =
		"{\"b\":[1,2.5,true,null,\"x\\u00e4\\n\"],\"a\\t\":{\"n\\u0000\":-1e3},\"l\":[1,2,"
		"3,4,5,6,7,8,9,10],\"c\":1,\"d\":2,\"e\":3,\"f\":4,\"g\":5,\"h\":6,\"i\":7,\"j\":"
		"8}";
	assert_true(fail_alloc_sweep(run_json, text) > 30);
}

static int run_yaml(void *ctx, struct err *err)
{
	json_t *v = NULL;
	unsigned documents = 7;
	int r = yaml_parse(str_of(ctx), TEXT_MAX, &v, &documents, err);
	if (r < 0) {
		assert_null(v);
		assert_int_equal(documents, 7);
	}
	json_decref(v);
	return r;
}

static void yaml_reports_missing_memory(void **state)
{
	(void)state;
	char text[] =
		"%TAG !e! tag:yaml.org,2002:\n---\na: 1\nb: [x, {c: \"d\\u00e4\"}, !!str 12]\n"
		"? f\n: |\n  text\n---\n- 1.5\n- ~\n";
	assert_true(fail_alloc_sweep(run_yaml, text) > 30);
}

static int run_toml(void *ctx, struct err *err)
{
	struct toml *root = NULL;
	int r = toml_parse(str_of(ctx), TEXT_MAX, &root, err);
	if (r < 0)
		assert_null(root);
	toml_free(root);
	return r;
}

static void toml_reports_missing_memory(void **state)
{
	(void)state;
	char text[16384] = "[a.b]\nx.y = [1, {z = \"\\u00e4\"}]\n[[t]]\nd = 1979-05-27\nlong = '";
	size_t n = strlen(text);
	memset(text + n, 'x', sizeof(text) - n);
	memcpy(text + sizeof(text) - 3, "'\n", 3);
	assert_true(fail_alloc_sweep(run_toml, text) > 4);
}

static int run_config(void *ctx, struct err *err)
{
	struct config c;
	const char *const environment[] = {"CLOISTER_STATE_DIR=/e", "SHANNON_WORKSPACE=/w", NULL};
	const char *const args[] = {"--files-exclude", "*.o {a,b}", NULL};
	unsigned taken;
	int r = config_init(&c, err);
	if (r < 0)
		return r;
	r = config_read(&c, "c.toml", str_of(ctx), err);
	r = r < 0 ? r : config_environment(&c, environment, err);
	r = r < 0 ? r : config_argument(&c, args, &taken, err);
	config_done(&c);
	return r;
}

static void the_configuration_reports_missing_memory(void **state)
{
	(void)state;
	char text[] = "state.dir = '/s'\n[files]\nexclude = ['a', '[b]']\n[quota]\nbytes = '5M'\n";
	assert_true(fail_alloc_sweep(run_config, text) > 10);
}

static int run_glob(void *ctx, struct err *err)
{
	struct glob *g = NULL;
	int r = glob_compile(str_of(ctx), 0, &g, err);
	assert_int_equal(r < 0, g == NULL);
	if (g)
		(void)glob_match(g, STR("a/b/c.d"));
	glob_free(g);
	return r;
}

static void patterns_report_missing_memory(void **state)
{
	(void)state;
	char text[] = "**/{a,b{c,[d-f]}}*?[[:alpha:]]";
	assert_true(fail_alloc_sweep(run_glob, text) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_reports_missing_memory),
		cmocka_unit_test(yaml_reports_missing_memory),
		cmocka_unit_test(toml_reports_missing_memory),
		cmocka_unit_test(the_configuration_reports_missing_memory),
		cmocka_unit_test(patterns_report_missing_memory),
	};
	return cmocka_run_group_tests_name("codec_memory", tests, NULL, NULL);
}
