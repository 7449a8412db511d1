/* Seals and their key: see jseal.h. Ed25519 is libcrypto's, through the EVP interface. */
#include "journal/jseal.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>

enum { SIGNATURE_BYTES = 64, SIGNATURE_TEXT = 88, PEM_MAX = 4096, PUBLIC_BYTES = 32 };

/* Decoded at first use, since that is what makes libcrypto start its machinery (2 ms): a journal
 * says where its log ends before it has to sign anything. */
struct jkey {
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx;
	bool is_private;
	size_t n; /* of `pem`; 0: decoded, or tried to */
	char pem[PEM_MAX];
};

static void free_bio(BIO **b)
{
	(void)BIO_free(*b);
}

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

/* --- keys --- */

void jkey_free(struct jkey *k)
{
	if (!k)
		return;
	EVP_MD_CTX_free(k->ctx);
	EVP_PKEY_free(k->pkey);
	free(k);
}

static struct jkey *wrap(const char *pem, size_t n, bool is_private)
{
	struct jkey *k = n <= PEM_MAX ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return NULL;
	memcpy(k->pem, pem, n);
	k->n = n;
	k->is_private = is_private;
	return k;
}

static void decode_key(struct jkey *k)
{
	_cleanup_(free_bio) BIO *b = BIO_new_mem_buf(k->pem, (int)k->n);
	if (b && k->is_private)
		k->pkey = PEM_read_bio_PrivateKey(b, NULL, NULL, NULL);
	else if (b)
		k->pkey = PEM_read_bio_PUBKEY(b, NULL, NULL, NULL);
	if (k->pkey && EVP_PKEY_get_base_id(k->pkey) == EVP_PKEY_ED25519)
		k->ctx = EVP_MD_CTX_new();
	explicit_bzero(k->pem, sizeof(k->pem));
	k->n = 0;
}

static int jkey_ready(struct jkey *k, struct err *err)
{
	if (k->n)
		decode_key(k);
	return k->ctx ? 0 : err_set(err, ERR_CORRUPT, "the journal's key is no Ed25519 key");
}

int jkey_public(struct str pem, struct jkey **ret, struct err *err)
{
	_cleanup_(cleanup_jkey_free) struct jkey *k = wrap(pem.p, pem.n, false);
	if (!k)
		return err_set(err, ERR_CORRUPT, "the journal's public key is too long");
	int r = jkey_ready(k, err);
	if (r == 0)
		*ret = take_ptr(k);
	return r;
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

static int write_bio(int dir, const char *name, BIO *b, mode_t mode, struct err *err)
{
	char *p = NULL;
	long n = BIO_get_mem_data(b, &p);
	if (n <= 0)
		return err_oom(err);
	return write_once(dir, name, p, (size_t)n, mode, err);
}

static int make_key(int key_fd, struct err *err)
{
	_cleanup_(free_bio) BIO *b = BIO_new(BIO_s_secmem());
	EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	int made = b && k && PEM_write_bio_PKCS8PrivateKey(b, k, NULL, NULL, 0, NULL, NULL);
	EVP_PKEY_free(k);
	if (!made)
		return err_set(err, ERR_INTERNAL, "the journal's key could not be made");
	return write_bio(key_fd, JSEAL_KEY_FILE, b, 0600, err);
}

static int read_key(int key_fd, struct jkey **ret, struct err *err)
{
	char pem[PEM_MAX];
	size_t n = 0;
	int r = read_pem(key_fd, JSEAL_KEY_FILE, pem, &n, 077, err);
	if (r < 0)
		return r;
	*ret = wrap(pem, n, true);
	explicit_bzero(pem, sizeof(pem));
	return *ret ? 0 : err_oom(err);
}

static int publish(struct jkey *k, int public_fd, struct err *err)
{
	struct stat st;
	if (fs_lstat(public_fd, JSEAL_PUBLIC_FILE, &st) == 0)
		return 0;
	int r = jkey_ready(k, err);
	if (r < 0)
		return r;
	_cleanup_(free_bio) BIO *b = BIO_new(BIO_s_mem());
	if (!b || !PEM_write_bio_PUBKEY(b, k->pkey))
		return err_oom(err);
	return write_bio(public_fd, JSEAL_PUBLIC_FILE, b, 0644, err);
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

void jkey_fingerprint(struct jkey *k, struct sha256 *ret)
{
	unsigned char raw[PUBLIC_BYTES] = {0};
	size_t n = sizeof(raw);
	struct err err;
	if (jkey_ready(k, &err) == 0)
		(void)EVP_PKEY_get_raw_public_key(k->pkey, raw, &n);
	sha256_of(raw, sizeof(raw), ret);
}

/* --- signatures --- */

static int sign(struct jkey *k, const char *p, size_t n, unsigned char out[SIGNATURE_BYTES],
	struct err *err)
{
	size_t len = SIGNATURE_BYTES;
	int r = jkey_ready(k, err);
	if (r < 0)
		return r;
	(void)EVP_MD_CTX_reset(k->ctx);
	if (EVP_DigestSignInit(k->ctx, NULL, NULL, NULL, k->pkey) == 1 &&
		EVP_DigestSign(k->ctx, out, &len, (const unsigned char *)p, n) == 1 &&
		len == SIGNATURE_BYTES)
		return 0;
	return err_set(err, ERR_INTERNAL, "the journal could not be sealed");
}

int jseal_write(struct jkey *k, const struct jchain *chain, const struct jseal *seal,
	struct buf *out, struct err *err)
{
	unsigned char raw[SIGNATURE_BYTES], text[SIGNATURE_TEXT + 1];
	char line[JSEAL_LINE_MAX];
	int n = snprintf(line, sizeof(line), "= %llu %s %llu %016llx %llu %llu",
		(unsigned long long)seal->seq, chain->head, (unsigned long long)seal->time_ms,
		(unsigned long long)seal->run, (unsigned long long)seal->upto,
		(unsigned long long)seal->open);
	BUG_ON(n < 0 || n + SIGNATURE_TEXT + 2 > JSEAL_LINE_MAX);
	int r = sign(k, line, (size_t)n, raw, err);
	if (r < 0)
		return r;
	(void)EVP_EncodeBlock(text, raw, SIGNATURE_BYTES);
	buf_put(out, line, (size_t)n);
	buf_putc(out, ' ');
	buf_put(out, text, SIGNATURE_TEXT);
	buf_putc(out, '\n');
	return buf_check(out, "a group of journal records", err);
}

/* One spelling: what decodes must encode to the same text. */
static bool decode(struct str text, unsigned char out[SIGNATURE_TEXT])
{
	unsigned char again[SIGNATURE_TEXT + 1];
	if (text.n != SIGNATURE_TEXT || EVP_DecodeBlock(out, (const unsigned char *)text.p,
						SIGNATURE_TEXT) != SIGNATURE_TEXT / 4 * 3)
		return false;
	(void)EVP_EncodeBlock(again, out, SIGNATURE_BYTES);
	return memcmp(again, text.p, SIGNATURE_TEXT) == 0;
}

bool jseal_check(struct jkey *k, const struct jseal *seal)
{
	unsigned char raw[SIGNATURE_TEXT];
	struct err err;
	if (!decode(seal->signature, raw) || jkey_ready(k, &err) < 0)
		return false;
	(void)EVP_MD_CTX_reset(k->ctx);
	return EVP_DigestVerifyInit(k->ctx, NULL, NULL, NULL, k->pkey) == 1 &&
	       EVP_DigestVerify(k->ctx, raw, SIGNATURE_BYTES, (const unsigned char *)seal->text.p,
		       seal->text.n) == 1;
}
