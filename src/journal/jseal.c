/*
 * Seals and their key: see jseal.h.
 *
 * Ed25519 is libsodium's: linked statically it brings what it needs and no more, where libcrypto
 * brings all of itself, whose tables alone cost a starting process more than a millisecond. The
 * files of keys are those that openssl(1) reads and writes.
 */
#include "journal/jseal.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/random.h>

enum {
	SIGNATURE_BYTES = crypto_sign_BYTES,
	SIGNATURE_TEXT = 88,
	PEM_MAX = 4096,
	PUBLIC_BYTES = crypto_sign_PUBLICKEYBYTES,
	SEED_BYTES = crypto_sign_SEEDBYTES,
	PREFIX_MAX = 16,
	BASE64 = sodium_base64_VARIANT_ORIGINAL,
};

struct jkey {
	bool is_private;
	unsigned char secret[crypto_sign_SECRETKEYBYTES];
	unsigned char public[PUBLIC_BYTES];
};

/* --- form --- */

static bool take_number(struct str *s, int base, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i = 0;
	for (; i < s->n && s->p[i] != ' '; i++) {
		unsigned char c = (unsigned char)s->p[i];
		unsigned v = c - '0';
		if (base == 16 && c >= 'a' && c <= 'f')
			v = c - 'a' + 10u;
		else if (c < '0' || c > '9')
			v = 99;
		if (v > 15 || i >= 16)
			return false;
		n = n * (unsigned)base + v;
	}
	bool right = base == 16 ? i == 16 : i > 0 && (i == 1 || s->p[0] != '0');
	if (!right || i == s->n)
		return false;
	*s = (struct str){s->p + i + 1, s->n - i - 1};
	*ret = n;
	return true;
}

static bool take_head(struct str *s, struct str *ret)
{
	struct jchain c;
	if (s->n <= SHA256_HEX || s->p[SHA256_HEX] != ' ')
		return false;
	*ret = (struct str){s->p, SHA256_HEX};
	*s = (struct str){s->p + SHA256_HEX + 1, s->n - SHA256_HEX - 1};
	return jchain_set(&c, *ret) == 0;
}

int jseal_read(struct str line, struct jseal *ret, struct err *err)
{
	struct str s = line;
	struct jseal seal = {.seq = 0};
	bool right = s.n > 2 && s.p[0] == '=' && s.p[1] == ' ' && s.n < JSEAL_LINE_MAX;
	if (right) {
		s = (struct str){s.p + 2, s.n - 2};
		right = take_number(&s, 10, &seal.seq) && take_head(&s, &seal.head) &&
			take_number(&s, 10, &seal.time_ms) && take_number(&s, 16, &seal.run) &&
			take_number(&s, 10, &seal.upto) && take_number(&s, 10, &seal.open) &&
			s.n == SIGNATURE_TEXT;
	}
	if (!right)
		return err_set(err, ERR_CORRUPT, "a seal of the journal is malformed");
	seal.signature = s;
	seal.text = (struct str){line.p, line.n - SIGNATURE_TEXT - 1};
	*ret = seal;
	return 0;
}

/* --- keys: PEM (RFC 7468) around 32 bytes behind a prefix (RFC 8410, 7 and 10) --- */

struct pem_form {
	const char *begin, *end;
	unsigned char prefix[PREFIX_MAX]; /* DER up to the 32 bytes */
	size_t prefix_n;
};
static const struct pem_form private_form = {"-----BEGIN PRIVATE KEY-----\n",
	"\n-----END PRIVATE KEY-----\n",
	{0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20}, 16};
static const struct pem_form public_form = {"-----BEGIN PUBLIC KEY-----\n",
	"\n-----END PUBLIC KEY-----\n", {0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0},
	12};

/* The 32 bytes of a PEM text, which may have blanks before and behind it and at its line ends. */
static bool pem_decode(const struct pem_form *f, struct str pem, unsigned char ret[SEED_BYTES])
{
	unsigned char der[PREFIX_MAX + SEED_BYTES];
	const char *end = NULL, *p;
	size_t n = 0, begin_n = strlen(f->begin) - 1, end_n = strlen(f->end) - 2;
	const char *from = memmem(pem.p, pem.n, f->begin, begin_n);
	if (!from)
		return false;
	p = from + begin_n;
	size_t left = pem.n - (size_t)(p - pem.p);
	bool right = sodium_base642bin(der, sizeof(der), p, left, " \r\n", &n, &end, BASE64) == 0 &&
		     n == f->prefix_n + SEED_BYTES && left - (size_t)(end - p) >= end_n &&
		     memcmp(end, f->end + 1, end_n) == 0 &&
		     memcmp(der, f->prefix, f->prefix_n) == 0;
	if (right)
		memcpy(ret, der + f->prefix_n, SEED_BYTES);
	sodium_memzero(der, sizeof(der));
	return right;
}

static size_t pem_encode(
	const struct pem_form *f, const unsigned char raw[SEED_BYTES], char out[PEM_MAX])
{
	unsigned char der[PREFIX_MAX + SEED_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof(der), BASE64)];
	memcpy(der, f->prefix, f->prefix_n);
	memcpy(der + f->prefix_n, raw, SEED_BYTES);
	(void)sodium_bin2base64(text, sizeof(text), der, f->prefix_n + SEED_BYTES, BASE64);
	int n = snprintf(out, PEM_MAX, "%s%s%s", f->begin, text, f->end);
	sodium_memzero(der, sizeof(der));
	sodium_memzero(text, sizeof(text));
	return (size_t)n;
}

void jkey_free(struct jkey *k)
{
	if (!k)
		return;
	sodium_memzero(k, sizeof(*k));
	free(k);
}

static int decode_key(struct str pem, bool is_private, struct jkey **ret, struct err *err)
{
	unsigned char raw[SEED_BYTES];
	_cleanup_(cleanup_jkey_free) struct jkey *k = calloc(1, sizeof(*k));
	if (!k || sodium_init() < 0)
		return err_oom(err);
	if (!pem_decode(is_private ? &private_form : &public_form, pem, raw))
		return err_set(err, ERR_CORRUPT, "the journal's %s key is no Ed25519 key in PEM",
			is_private ? "private" : "public");
	k->is_private = is_private;
	if (is_private)
		(void)crypto_sign_seed_keypair(k->public, k->secret, raw);
	else
		memcpy(k->public, raw, sizeof(raw));
	sodium_memzero(raw, sizeof(raw));
	*ret = take_ptr(k);
	return 0;
}

int jkey_public(struct str pem, struct jkey **ret, struct err *err)
{
	return decode_key(pem, false, ret, err);
}

static int read_pem(int dir, const char *name, char out[PEM_MAX], size_t *ret_n, mode_t forbidden,
	struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = fs_open(dir, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(err, errno, "opening the journal's '%s'", name);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "looking at the journal's '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & forbidden))
		return err_set(err, ERR_DENIED,
			"the journal's '%s' is open to others or somebody else's", name);
	ssize_t n = fs_read(fd, out, PEM_MAX, 0);
	if (n < 0 || n == PEM_MAX)
		return err_sys(err, n < 0 ? errno : EFBIG, "reading the journal's '%s'", name);
	*ret_n = (size_t)n;
	return 0;
}

int jkey_published(int dir_fd, struct jkey **ret, struct err *err)
{
	char pem[PEM_MAX];
	size_t n;
	int r = read_pem(dir_fd, JSEAL_PUBLIC_FILE, pem, &n, 022, err);
	return r < 0 ? r : jkey_public((struct str){pem, n}, ret, err);
}

/* A file that is whole or not there: written without a name, synced, then named. Somebody else's is
 * kept. */
static int write_once(
	int dir, const char *name, const void *p, size_t n, mode_t mode, struct err *err)
{
	char temp[FS_TEMP_NAME];
	_cleanup_close_ int fd = fs_temp(dir, "new-", temp);
	if (fd < 0)
		return err_sys(err, errno, "making the journal's '%s'", name);
	int failed = fs_write(fd, p, n, 0) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
		     (fs_rename_new(dir, temp, dir, name) < 0 && errno != EEXIST);
	int why = errno;
	(void)unlinkat(dir, temp, 0);
	if (failed || fsync(dir) < 0)
		return err_sys(err, failed ? why : errno, "making the journal's '%s'", name);
	return 0;
}

static int write_pem(int dir, const char *name, const struct pem_form *f,
	const unsigned char raw[SEED_BYTES], mode_t mode, struct err *err)
{
	char pem[PEM_MAX];
	size_t n = pem_encode(f, raw, pem);
	int r = write_once(dir, name, pem, n, mode, err);
	sodium_memzero(pem, sizeof(pem));
	return r;
}

static int make_key(int key_fd, struct err *err)
{
	unsigned char seed[SEED_BYTES];
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_sys(err, errno, "drawing the journal's key");
	int r = write_pem(key_fd, JSEAL_KEY_FILE, &private_form, seed, 0600, err);
	sodium_memzero(seed, sizeof(seed));
	return r;
}

static int read_key(int key_fd, struct jkey **ret, struct err *err)
{
	char pem[PEM_MAX];
	size_t n = 0;
	int r = read_pem(key_fd, JSEAL_KEY_FILE, pem, &n, 077, err);
	if (r < 0)
		return r;
	r = decode_key((struct str){pem, n}, true, ret, err);
	sodium_memzero(pem, sizeof(pem));
	return r;
}

static int publish(const struct jkey *k, int public_fd, struct err *err)
{
	struct stat st;
	if (fs_lstat(public_fd, JSEAL_PUBLIC_FILE, &st) == 0)
		return 0;
	return write_pem(public_fd, JSEAL_PUBLIC_FILE, &public_form, k->public, 0644, err);
}

int jkey_open(int key_fd, int public_fd, struct jkey **ret, struct err *err)
{
	_cleanup_(cleanup_jkey_free) struct jkey *k = NULL;
	int r = read_key(key_fd, &k, err);
	if (r < 0 && err->sys == ENOENT && (r = make_key(key_fd, err)) == 0)
		r = read_key(key_fd, &k, err);
	if (r < 0 || (r = publish(k, public_fd, err)) < 0)
		return r;
	*ret = take_ptr(k);
	return 0;
}

void jkey_fingerprint(const struct jkey *k, struct sha256 *ret)
{
	sha256_of(k->public, sizeof(k->public), ret);
}

/* --- signatures --- */

int jseal_write(const struct jkey *k, const struct jchain *chain, const struct jseal *seal,
	struct buf *out, struct err *err)
{
	unsigned char raw[SIGNATURE_BYTES];
	char text[SIGNATURE_TEXT + 1];
	char line[JSEAL_LINE_MAX];
	int n = snprintf(line, sizeof(line), "= %llu %s %llu %016llx %llu %llu",
		(unsigned long long)seal->seq, chain->head, (unsigned long long)seal->time_ms,
		(unsigned long long)seal->run, (unsigned long long)seal->upto,
		(unsigned long long)seal->open);
	BUG_ON(n < 0 || n + SIGNATURE_TEXT + 2 > JSEAL_LINE_MAX);
	BUG_ON(!k->is_private);
	(void)crypto_sign_detached(raw, NULL, (const unsigned char *)line, (size_t)n, k->secret);
	(void)sodium_bin2base64(text, sizeof(text), raw, sizeof(raw), BASE64);
	buf_put(out, line, (size_t)n);
	buf_putc(out, ' ');
	buf_put(out, text, SIGNATURE_TEXT);
	buf_putc(out, '\n');
	return buf_check(out, "a group of journal records", err);
}

/* One spelling: what decodes must encode to the same text. */
static bool decode(struct str text, unsigned char out[SIGNATURE_BYTES])
{
	char again[SIGNATURE_TEXT + 1];
	size_t n = 0;
	if (text.n != SIGNATURE_TEXT ||
		sodium_base642bin(out, SIGNATURE_BYTES, text.p, text.n, NULL, &n, NULL, BASE64) <
			0 ||
		n != SIGNATURE_BYTES)
		return false;
	(void)sodium_bin2base64(again, sizeof(again), out, SIGNATURE_BYTES, BASE64);
	return memcmp(again, text.p, SIGNATURE_TEXT) == 0;
}

bool jseal_check(const struct jkey *k, const struct jseal *seal)
{
	unsigned char raw[SIGNATURE_BYTES];
	return decode(seal->signature, raw) &&
	       crypto_sign_verify_detached(
		       raw, (const unsigned char *)seal->text.p, seal->text.n, k->public) == 0;
}
