/* Run a fuzz target over every file of its corpus folders: what keeps found inputs found in every
 * build. Prints TAP. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16 * 1024 * 1024 };

/* Exactly as large as the file, so that a sanitizer sees one byte too many. */
static int replay(const char *path)
{
	FILE *f = fopen(path, "re");
	long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
	uint8_t *all = size >= 0 && size <= INPUT_MAX ? malloc(size ? (size_t)size : 1) : NULL;
	if (!all)
		return -1;
	rewind(f);
	size_t n = fread(all, 1, (size_t)size, f);
	(void)fclose(f);
	if (n == (size_t)size)
		(void)LLVMFuzzerTestOneInput(all, n);
	free(all);
	return n == (size_t)size ? 0 : -1;
}

static unsigned replay_folder(const char *folder)
{
	unsigned n = 0;
	struct dirent *e;
	DIR *d = opendir(folder);
	if (!d)
		return 0;
	while ((e = readdir(d))) {
		char path[4096];
		(void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.' && replay(path) == 0)
			n++;
	}
	(void)closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	unsigned n = 0;
	for (int i = 1; i < argc; i++)
		n += replay_folder(argv[i]);
	printf("1..1\n%sok 1 - %u inputs of the corpus replayed\n", n ? "" : "not ", n);
	return n ? 0 : 1;
}
