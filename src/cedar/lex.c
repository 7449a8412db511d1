/* The lexer. Its one subtlety: a string is kept as written, and what it stands for is made on
 * demand, because only the parser knows whether it is a pattern. */
#include "cedar/lex.h"
#include "cedar/utf8.h"

static const char *const token_name[] = {
#define CED_TOKEN_NAME(name, text) text,
	CED_TOKENS(CED_TOKEN_NAME)
#undef CED_TOKEN_NAME
};

const char *ced_token_name(enum ced_token_kind kind)
{
	return token_name[kind];
}

void ced_lex_init(struct ced_lexer *lex, const char *text, size_t n, struct cedar_error *err)
{
	*lex = (struct ced_lexer){.text = text, .n = n, .line = 1, .column = 1, .err = err};
}

static char peek(const struct ced_lexer *lex, size_t ahead)
{
	return ahead < lex->n - lex->at ? lex->text[lex->at + ahead] : '\0';
}

/* Move over `n` bytes that are no line feeds. */
static void skip(struct ced_lexer *lex, size_t n)
{
	lex->column += ced_utf8_count(lex->text + lex->at, n);
	lex->at += n;
}

static void newline(struct ced_lexer *lex)
{
	lex->at++;
	lex->line++;
	lex->column = 1;
}

static struct ced_pos here(const struct ced_lexer *lex, size_t length)
{
	return (struct ced_pos){(uint32_t)lex->at, (uint32_t)length, lex->line, lex->column};
}

/* The length of the character here when it has the property White_Space (Unicode 15), else 0. */
static size_t space_length(const struct ced_lexer *lex)
{
	unsigned char first = (unsigned char)peek(lex, 0);
	if (first < 0x80)
		return (first >= 9 && first <= 13) || first == ' ';
	size_t length, left = lex->n - lex->at;
	if (ced_utf8_valid(lex->text + lex->at, left < 4 ? left : 4) == 0)
		return 0;
	uint32_t c = ced_utf8_decode(lex->text + lex->at, &length);
	bool space = c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
		     c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
	return space ? length : 0;
}

static void skip_comment(struct ced_lexer *lex)
{
	size_t n = 0;
	while (lex->at + n < lex->n && peek(lex, n) != '\n' && peek(lex, n) != '\r')
		n++;
	skip(lex, n);
}

static void skip_space(struct ced_lexer *lex)
{
	while (lex->at < lex->n) {
		size_t n = space_length(lex);
		if (peek(lex, 0) == '\n')
			newline(lex);
		else if (n)
			skip(lex, n);
		else if (peek(lex, 0) == '/' && peek(lex, 1) == '/')
			skip_comment(lex);
		else
			return;
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_ident_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_ident_char(char c)
{
	return is_ident_start(c) || is_digit(c);
}

static size_t ident_length(const struct ced_lexer *lex, size_t from)
{
	size_t n = from;
	if (is_ident_start(peek(lex, n)))
		while (is_ident_char(peek(lex, n)))
			n++;
	return n - from;
}

static int lex_number(struct ced_lexer *lex, struct ced_token *t)
{
	size_t n = 0;
	uint64_t v = 0;
	bool fits = true;
	for (; is_digit(peek(lex, n)); n++)
		fits &= !__builtin_mul_overflow(v, 10u, &v) &&
			!__builtin_add_overflow(v, (unsigned)(peek(lex, n) - '0'), &v);
	t->kind = CED_TOKEN_NUMBER;
	t->number = v;
	t->pos = here(lex, n);
	if (!fits)
		return ced_fail(
			lex->err, CEDAR_E_VALUE, t->pos, "this number does not fit into 64 bits");
	skip(lex, n);
	return 0;
}

/* What stands inside of quotes is checked here as far as it decides where the string ends. */
static int lex_string(struct ced_lexer *lex, struct ced_token *t)
{
	size_t from = lex->at + 1;
	t->kind = CED_TOKEN_STRING;
	t->pos = here(lex, 1);
	skip(lex, 1);
	for (;;) {
		char c = peek(lex, 0);
		if (lex->at >= lex->n)
			return ced_fail(
				lex->err, CEDAR_E_SYNTAX, t->pos, "this string is not closed");
		if (c == '"')
			break;
		if (c == '\r')
			return ced_fail(lex->err, CEDAR_E_SYNTAX, here(lex, 1),
				"a carriage return in a string is written \\r");
		if (c == '\\' && (peek(lex, 1) == '\n' || peek(lex, 1) == '\r'))
			return ced_fail(lex->err, CEDAR_E_SYNTAX, here(lex, 1),
				"a backslash does not continue a line");
		if (c == '\\' && lex->n - lex->at > 1)
			skip(lex, 1);
		if (peek(lex, 0) == '\n')
			newline(lex);
		else
			skip(lex, 1);
	}
	t->text = (struct ced_slice){lex->text + from, lex->at - from};
	skip(lex, 1);
	t->pos.length = (uint32_t)(lex->at - t->pos.offset);
	return 0;
}

/* Longest first. */
static const struct {
	const char *text;
	enum ced_token_kind kind;
} operators[] = {
	{"::", CED_TOKEN_PATH},
	{"==", CED_TOKEN_EQ},
	{"!=", CED_TOKEN_NE},
	{"<=", CED_TOKEN_LE},
	{">=", CED_TOKEN_GE},
	{"&&", CED_TOKEN_AND},
	{"||", CED_TOKEN_OR},
	{"(", CED_TOKEN_LPAREN},
	{")", CED_TOKEN_RPAREN},
	{"{", CED_TOKEN_LBRACE},
	{"}", CED_TOKEN_RBRACE},
	{"[", CED_TOKEN_LBRACKET},
	{"]", CED_TOKEN_RBRACKET},
	{",", CED_TOKEN_COMMA},
	{";", CED_TOKEN_SEMICOLON},
	{":", CED_TOKEN_COLON},
	{".", CED_TOKEN_DOT},
	{"?", CED_TOKEN_QUESTION},
	{"=", CED_TOKEN_ASSIGN},
	{"<", CED_TOKEN_LT},
	{">", CED_TOKEN_GT},
	{"!", CED_TOKEN_NOT},
	{"+", CED_TOKEN_PLUS},
	{"-", CED_TOKEN_MINUS},
	{"*", CED_TOKEN_STAR},
	{"@", CED_TOKEN_AT},
};

static int lex_operator(struct ced_lexer *lex, struct ced_token *t)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		const char *text = operators[i].text;
		if (peek(lex, 0) != text[0] || (text[1] && peek(lex, 1) != text[1]))
			continue;
		t->kind = operators[i].kind;
		t->text = (struct ced_slice){lex->text + lex->at, text[1] ? 2 : 1};
		t->pos = here(lex, t->text.n);
		skip(lex, t->text.n);
		return 0;
	}
	size_t left = lex->n - lex->at, length = 1;
	if (ced_utf8_valid(lex->text + lex->at, left < 4 ? left : 4) == 0)
		return ced_fail(
			lex->err, CEDAR_E_SYNTAX, here(lex, 1), "these bytes are not UTF-8");
	(void)ced_utf8_decode(lex->text + lex->at, &length);
	return ced_fail(
		lex->err, CEDAR_E_SYNTAX, here(lex, length), "no token begins with this character");
}

static void lex_ident(
	struct ced_lexer *lex, struct ced_token *t, enum ced_token_kind kind, size_t from, size_t n)
{
	t->kind = kind;
	t->text = (struct ced_slice){lex->text + lex->at + from, n};
	t->pos = here(lex, from + n);
	skip(lex, from + n);
}

int ced_lex_next(struct ced_lexer *lex, struct ced_token *ret)
{
	struct ced_token t = {.kind = CED_TOKEN_END};
	int code = 0;
	if (lex->at == 0 && ced_utf8_valid(lex->text, lex->n) < lex->n) {
		struct cedar_error place = {
			.line = CED_LINE_LATER, .offset = ced_utf8_valid(lex->text, lex->n)};
		ced_place(&place, lex->text, lex->n);
		return ced_fail(lex->err, CEDAR_E_SYNTAX,
			(struct ced_pos){(uint32_t)place.offset, 1, place.line, place.column},
			"these bytes are not UTF-8");
	}
	skip_space(lex);
	char c = peek(lex, 0);
	size_t slot = c == '?' ? ident_length(lex, 1) : 0;
	if (lex->at >= lex->n)
		t.pos = here(lex, 0);
	else if (is_ident_start(c))
		lex_ident(lex, &t, CED_TOKEN_IDENT, 0, ident_length(lex, 0));
	else if (slot)
		lex_ident(lex, &t, CED_TOKEN_SLOT, 1, slot);
	else if (is_digit(c))
		code = lex_number(lex, &t);
	else if (c == '"')
		code = lex_string(lex, &t);
	else
		code = lex_operator(lex, &t);
	if (code == 0)
		*ret = t;
	return code;
}

bool ced_is_reserved(struct ced_slice word)
{
	static const char *const reserved[] = {
		"true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar"};
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (ced_slice_is(word, reserved[i]))
			return true;
	return false;
}

bool ced_is_attribute(struct ced_slice word)
{
	if (!word.n || !is_ident_start(word.p[0]))
		return false;
	for (size_t i = 1; i < word.n; i++)
		if (!is_ident_char(word.p[i]))
			return false;
	return !ced_is_reserved(word);
}

bool ced_is_type_name(struct ced_slice text)
{
	for (;;) {
		const char *sep = text.n ? memmem(text.p, text.n, "::", 2) : NULL;
		struct ced_slice part = {text.p, sep ? (size_t)(sep - text.p) : text.n};
		if (!ced_is_attribute(part))
			return false;
		if (!sep)
			return true;
		text.p += part.n + 2;
		text.n -= part.n + 2;
	}
}

/* -- Escapes -------------------------------------------------------------------------------- */

enum { ESCAPE_BAD = -1, ESCAPE_STAR = -2 };

/* After "\x": two digits up to 7f. */
static int32_t hex_escape(struct ced_slice s, size_t *at)
{
	int high = s.n - *at >= 2 ? ced_hex_digit(s.p[*at]) : -1;
	int low = high >= 0 ? ced_hex_digit(s.p[*at + 1]) : -1;
	if (low < 0 || high > 7)
		return ESCAPE_BAD;
	*at += 2;
	return high << 4 | low;
}

/* After "\u": {1 to 6 digits}, with '_' allowed after the first. */
static int32_t unicode_escape(struct ced_slice s, size_t *at)
{
	int32_t v = 0;
	int digits = 0;
	if (*at >= s.n || s.p[(*at)++] != '{')
		return ESCAPE_BAD;
	for (; *at < s.n && s.p[*at] != '}'; (*at)++) {
		int digit = ced_hex_digit(s.p[*at]);
		if (digits && s.p[*at] == '_')
			continue;
		if (digit < 0 || ++digits > 6)
			return ESCAPE_BAD;
		v = v << 4 | digit;
	}
	if (*at >= s.n || !digits || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return ESCAPE_BAD;
	(*at)++;
	return v;
}

/* The escape whose backslash is at `*at`; moves over it. */
static int32_t one_escape(struct ced_slice s, size_t *at)
{
	static const char from_to[][2] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'},
		{'0', '\0'}, {'\'', '\''}, {'"', '"'}};
	char c = s.n - *at > 1 ? s.p[*at + 1] : 'z';
	*at += 2;
	for (size_t i = 0; i < sizeof(from_to) / sizeof(from_to[0]); i++)
		if (c == from_to[i][0])
			return (unsigned char)from_to[i][1];
	if (c == 'x')
		return hex_escape(s, at);
	if (c == 'u')
		return unicode_escape(s, at);
	return c == '*' ? ESCAPE_STAR : ESCAPE_BAD;
}

/* What one string token stands for, piece by piece, for both uses of it. */
struct piece {
	char bytes[4];
	size_t n;
	bool wildcard;
};

static int next_piece(const struct ced_token *t, size_t *at, bool pattern, struct piece *ret,
	struct cedar_error *err)
{
	size_t start = *at;
	struct ced_slice s = t->text;
	if (s.p[start] != '\\') {
		*ret = (struct piece){{s.p[start]}, 1, s.p[start] == '*'};
		(*at)++;
		return 0;
	}
	int32_t c = one_escape(s, at);
	if (c == ESCAPE_BAD || (c == ESCAPE_STAR && !pattern))
		return ced_fail(err, CEDAR_E_SYNTAX, t->pos,
			"\"%.*s\" is not an escape of a string", (int)(s.n - start < 2 ? 1 : 2),
			s.p + start);
	/* A star that is escaped as a character, \x2a, is still a wildcard. */
	ret->wildcard = c == '*';
	ret->n = ced_utf8_encode(c == ESCAPE_STAR ? '*' : (uint32_t)c, ret->bytes);
	return 0;
}

int ced_unescape(struct ced_arena *arena, const struct ced_token *t, struct ced_slice *ret,
	struct cedar_error *err)
{
	if (!t->text.n || !memchr(t->text.p, '\\', t->text.n)) {
		*ret = t->text;
		return 0;
	}
	/* No escape is shorter than the character it stands for. */
	char *to = ced_arena_copy(arena, t->text.p, t->text.n);
	if (!to)
		return ced_arena_fail(arena, err, t->pos);
	size_t n = 0;
	for (size_t at = 0; at < t->text.n;) {
		struct piece piece;
		int code = next_piece(t, &at, false, &piece, err);
		if (code < 0)
			return code;
		memcpy(to + n, piece.bytes, piece.n);
		n += piece.n;
	}
	*ret = (struct ced_slice){to, n};
	return 0;
}

static size_t count_wildcards(const struct ced_token *t)
{
	size_t n = 0;
	struct piece piece;
	for (size_t at = 0; at < t->text.n; n += piece.wildcard)
		if (next_piece(t, &at, true, &piece, NULL) < 0)
			break;
	return n;
}

int ced_unescape_pattern(struct ced_names *names, const struct ced_token *t,
	const struct ced_pattern **ret, struct cedar_error *err)
{
	size_t parts = count_wildcards(t) + 1, n = 0;
	struct ced_pattern *p =
		ced_arena_alloc(names->arena, sizeof(*p) + parts * sizeof(p->parts[0]));
	char *to = ced_arena_copy(names->arena, t->text.p, t->text.n);
	if (!p || !to)
		return ced_arena_fail(names->arena, err, t->pos);
	for (size_t at = 0; at <= t->text.n;) {
		struct piece piece = {.wildcard = true};
		int code = at < t->text.n ? next_piece(t, &at, true, &piece, err) : (at++, 0);
		if (code < 0)
			return code;
		if (!piece.wildcard) {
			memcpy(to + n, piece.bytes, piece.n);
			n += piece.n;
			continue;
		}
		p->parts[p->count] = ced_intern(names, to, n);
		if (!p->parts[p->count++])
			return ced_arena_fail(names->arena, err, t->pos);
		n = 0;
	}
	*ret = p;
	return 0;
}
