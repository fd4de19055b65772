/** Node's own `node:http` and `node:http2`, loaded without what most processes never need. */
import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * An `import` of node:http would evaluate every export, including `WebSocket`, for which Node loads its built-in fetch.
 * Import types as usual.
 */
export const nodeHttp = load('node:http') as typeof import('node:http');

/** Call it for the first connection of HTTP/2, because most processes have none. */
export function loadHttp2(): typeof import('node:http2') {
  return load('node:http2') as typeof import('node:http2');
}
