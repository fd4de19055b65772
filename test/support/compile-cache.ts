/** Caches compiled code between runs of mocha, which cuts the start-up time by a third. */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

export const compileCache = fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url));

// The coverage of functions from the cache is less precise.
if (process.env['NODE_V8_COVERAGE'] === undefined) {
  enableCompileCache(compileCache);
  // For worker threads, which enable the cache themselves.
  process.env['NODE_COMPILE_CACHE'] = compileCache;
}

/** Mocha ends its workers before Node would write the cache. */
export const mochaHooks = Object.freeze({ afterAll: () => flushCompileCache() });
