/* Cedar's extension values: the parsers take any bytes; what they accept is within its bounds. */
#include "cedar/ext.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ced_slice s = {(const char *)data, size};
	struct ced_ip ip;
	int64_t v;
	if (ced_ip_parse(s, &ip)) {
		if (ip.prefix > (ip.v6 ? 128 : 32) || size > 43)
			abort();
		for (int i = 4; !ip.v6 && i < 16; i++)
			if (ip.bytes[i])
				abort();
	}
	if (ced_decimal_parse(s, &v) && size < 3)
		abort();
	/* Years 0000 to 9999 and a day of offset either way. */
	if (ced_datetime_parse(s, &v) &&
		(v < -62167219200000 - 86400000 || v > 253402300799999 + 86400000))
		abort();
	if (ced_duration_parse(s, &v) && size < 2)
		abort();
	return 0;
}
