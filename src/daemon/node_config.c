/* What the processes of a node read of the configuration, and how they write to its log. */
#include "daemon/node.h"

#include "codec/config_file.h"
#include "codec/json_write.h"
#include "sys/clock.h"

#include <stdarg.h>
#include <stdio.h>

static int read_words(
	struct node_words *w, const char *const *words, const char **ret_file, struct err *err)
{
	for (unsigned taken; *words; words += taken) {
		int r = config_argument(&w->config, words, &taken, err);
		if (r < 0)
			return r;
		if (taken)
			continue;
		taken = 1;
		if (strcmp(*words, "--single-user") == 0) {
			w->single_user = true;
		} else if (strncmp(*words, "--config=", 9) == 0) {
			*ret_file = *words + 9;
		} else if (strcmp(*words, "--config") == 0 && words[1]) {
			*ret_file = words[1];
			taken = 2;
		} else {
			return err_set(err, ERR_INVALID_ARGUMENT,
				"serve takes no argument like '%.64s'", *words);
		}
	}
	return 0;
}

int node_config(const char *const *words, struct node_words *ret, struct err *err)
{
	const char *file = NULL;
	*ret = (struct node_words){0};
	int r = config_init(&ret->config, err);
	if (r < 0)
		return r;
	if ((r = read_words(ret, words, &file, err)) < 0 ||
		(r = config_load(&ret->config, file, err)) < 0 ||
		(r = config_environment(&ret->config, (const char *const *)environ, err)) < 0)
		config_done(&ret->config);
	/* What others were told through a network must be true after a power cut. */
	else if (ret->config.source[CONFIG_ID_durability] == CONFIG_DEFAULT)
		ret->config.durability = CONFIG_DURABILITY_POWER;
	return r;
}

static void stamp(char out[32])
{
	struct tm tm;
	int64_t ms = clock_unix_ms();
	time_t t = (time_t)(ms / 1000);
	size_t n = gmtime_r(&t, &tm) ? strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
	(void)snprintf(out + n, 32 - n, ".%03dZ", (int)(ms % 1000));
}

void node_say(const struct node_log *l, const char *level, const char *fmt, ...)
{
	char text[1024], time[32];
	_cleanup_buf_ struct buf b = buf_init(16 * 1024);
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	stamp(time);
	struct str said = {text, utf8_floor(text, strlen(text))};
	if (l->json) {
		buf_putc(&b, '{');
		jw_cstr(&b, "time", time);
		jw_cstr(&b, "level", level);
		jw_cstr(&b, "process", l->who);
		jw_key(&b, "message");
		_cleanup_buf_ struct buf shown = buf_init(8 * sizeof(text));
		text_show(&shown, said, false);
		jw_string(&b, (struct str){buf_str(&shown), shown.len});
		buf_putc(&b, '}');
	} else {
		buf_printf(&b, "%s %s %s: ", time, level, l->who);
		text_show(&b, said, false);
	}
	buf_putc(&b, '\n');
	(void)!write(STDERR_FILENO, buf_str(&b), b.len);
}
