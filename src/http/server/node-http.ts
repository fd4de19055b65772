/** Node's own `node:http`. */
import { createRequire } from 'node:module';

/**
 * An `import` of node:http would evaluate every export, including `WebSocket`, for which Node loads its built-in fetch.
 * Import types as usual.
 */
export const nodeHttp = createRequire(import.meta.url)('node:http') as typeof import('node:http');
