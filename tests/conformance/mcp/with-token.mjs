// The suite cannot send a token: a proxy that adds one and passes all else on as it is.
import http from "node:http";

const [, , port, token] = process.argv;
const server = http.createServer((q, r) => {
	const up = http.request(
		{ host: "127.0.0.1", port, path: q.url, method: q.method, headers: { ...q.headers, authorization: `Bearer ${token}` } },
		(a) => {
			r.writeHead(a.statusCode, a.headers);
			a.pipe(r);
			a.on("error", () => r.destroy());
		},
	);
	up.on("error", () => r.destroy());
	r.on("close", () => up.destroy());
	q.pipe(up);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
