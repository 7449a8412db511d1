/* Writes cloister.toml(5) from the table of the configuration to its standard output. */
#include "codec/config.h"

#include <stdio.h>

/* Text into mdoc: backslashes doubled, no line begins with a control character. */
static void put_text(struct buf *b, const char *s)
{
	if (*s == '.' || *s == '\'')
		buf_puts(b, "\\&");
	for (; *s; s++)
		buf_puts(b, *s == '\\' ? "\\e" : (char[]){*s, '\0'});
}

static void put_default(struct buf *b, const struct config_key *k)
{
	bool quoted = k->type != CONFIG_NUMBER && k->type != CONFIG_BOOL;
	if (!*k->fallback)
		return;
	buf_puts(b, "Default:\n");
	if (k->type != CONFIG_GLOBS) {
		buf_printf(b, ".Li %s%s%s .\n", quoted ? "\\(dq" : "", k->fallback,
			quoted ? "\\(dq" : "");
		return;
	}
	for (const char *p = k->fallback; *p;) {
		int n = (int)strcspn(p, " ");
		const char *next = p + n + (p[n] == ' ');
		buf_printf(b, ".Li \\&%.*s %s\n", n, p, *next ? "," : ".");
		p = next;
	}
}

static void put_key(struct buf *b, enum config_id id)
{
	const struct config_key *k = &config_keys[id];
	int64_t factor = 1;
	const char *alias = config_alias(id, &factor);
	buf_printf(b, ".It Ic %s\n", k->key);
	put_text(b, k->sentence);
	buf_puts(b, ".\nA value is ");
	config_expected(k, b);
	buf_puts(b, ".\n");
	put_default(b, k);
	buf_printf(b, ".Pp\nOption\n.Fl -%s ,\nvariable\n.Ev %s", k->flag, k->environment);
	if (alias)
		buf_printf(b, " ,\nor\n.Ev %s%s", alias, factor > 1 ? "\nin MiB" : "");
	buf_puts(b, alias && factor > 1 ? ".\n" : " .\n");
}

static void put_head(struct buf *b)
{
	buf_puts(b, ".\\\" Written from src/base/config.def.\n"
		    ".Dd December 1, 2026\n.Dt CLOISTER.TOML 5\n.Os\n.Sh NAME\n.Nm cloister.toml\n"
		    ".Nd configuration of Cloister\n.Sh DESCRIPTION\n");
	buf_puts(b,
		"The file is TOML 1.0.\nA key with a dot can be written as it stands here or in "
		"a table:\n.Bd -literal -offset indent\n[quota]\nbytes = \"1G\"\nentries = "
		"200000\n.Ed\n.Pp\n");
	buf_puts(b, "An option of the command line wins over the environment, the environment over "
		    "the file, the file over the default.\nUnknown keys and values that do not fit "
		    "are refused, and nothing starts.\nAn empty variable counts as none.\nIn "
		    "variables and options a list has blanks between its elements, and an option "
		    "whose value is true or false may stand alone, meaning true.\n");
	buf_puts(b,
		".Pp\nThe file must belong to root or to who runs Cloister, and nobody else may "
		"be able to write it.\n");
}

static void put_foot(struct buf *b)
{
	buf_puts(b, ".Sh FILES\nThe file that\n.Ev CLOISTER_CONFIG\nnames; else the first there is "
		    "of\n.Bl -tag -width Ds\n"
		    ".It Pa $XDG_CONFIG_HOME/cloister/cloister.toml\n"
		    "By default below\n.Pa ~/.config .\nNot for root.\n"
		    ".It Pa /etc/cloister/cloister.toml\n.El\n"
		    ".Sh SEE ALSO\n.Xr cloister 1\n");
}

int main(void)
{
	_cleanup_buf_ struct buf b = buf_init(1 << 20);
	put_head(&b);
	buf_puts(&b, ".Sh KEYS\n.Bl -tag -width Ds\n");
	for (int id = 0; id < CONFIG_ID_MAX_; id++)
		put_key(&b, (enum config_id)id);
	buf_puts(&b, ".El\n");
	put_foot(&b);
	if (b.failed || fwrite(b.data, 1, b.len, stdout) != b.len || fflush(stdout) != 0)
		return 1;
	return 0;
}
