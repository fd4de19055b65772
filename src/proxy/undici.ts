/** The HTTP client's library, loaded late: 10 MB and a tenth of the start that a process which proxies nothing has no need of. */
import { createRequire } from 'node:module';

export type Undici = typeof import('undici');

export function loadUndici(): Undici {
  return createRequire(import.meta.url)('undici') as Undici;
}
