/** Loads node:http without the memory cost of an `import`. */
import { createRequire } from 'node:module';

/**
 * An `import` evaluates every export, including `WebSocket`, for which Node loads its built-in fetch: 13 MB and a tenth
 * of the startup time. Import types as usual.
 */
export const nodeHttp = createRequire(import.meta.url)('node:http') as typeof import('node:http');
