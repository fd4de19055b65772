/** What "ready" means, for check_ready. */
import type { Database } from '#storage';
import type { Setup } from './options.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { LiveConfiguration } from './reload.ts';

export interface ReadinessParts {
  readonly configuration: LiveConfiguration;
  /** Undefined: no module of this process needs one. */
  readonly database: Pick<Database, 'isReady'> | undefined;
  readonly rateLimiting: Pick<RateLimiting, 'isReady'>;
  /** Aborted as soon as the process closes. */
  readonly closing: AbortSignal;
}

export function createReadiness({ has }: Pick<Setup, 'has'>, parts: ReadinessParts): () => Promise<boolean> {
  const { configuration, database, rateLimiting, closing } = parts;
  /** A gateway that lets requests pass without a decision is of use without its limiter. */
  function needsLimiter(): boolean {
    const { rateLimitServices } = configuration.current().configuration;
    return !has('gateway') || rateLimitServices.some(({ failureModeDeny }) => failureModeDeny);
  }
  return async function isReady() {
    if (closing.aborted || (needsLimiter() && !rateLimiting.isReady())) return false;
    return (await database?.isReady()) ?? true;
  };
}
