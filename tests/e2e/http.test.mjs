// MCP over Streamable HTTP with the official SDKs of both eras: the same promises as over stdio.
import { HttpPlace } from "./http.mjs";
import { eraSuite } from "./suite.mjs";

eraSuite("modern", HttpPlace, "HTTP");
eraSuite("legacy", HttpPlace, "HTTP");
