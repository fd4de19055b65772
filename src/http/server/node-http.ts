/** The values of node:http, without what an import of it loads. */
import { createRequire } from 'node:module';

/**
 * An `import` reads every export, and with `WebSocket` among them Node loads its own fetch: 13 MB, and a tenth of the start
 * of a process. Types are imported as usual.
 */
export const nodeHttp = createRequire(import.meta.url)('node:http') as typeof import('node:http');
