/** The probes check_alive and check_ready, which need no credentials, and the definition of "ready". */
import type { InternalRoute } from '#gateway';
import { acceptRead, notReady, type Representations, represent, stopping } from '#http';
import type { Database } from '#storage';
import type { Setup } from './options.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { LiveConfiguration } from './reload.ts';

/** Resolves to a sentence that says why the process cannot serve requests, or to undefined if it can. Never rejects. */
export type FindFault = () => Promise<string | undefined>;

/** `check_alive` succeeds while the process runs, `check_ready` only while it can serve requests. */
export function createProbes(findFault: FindFault, representations: Representations): readonly InternalRoute[] {
  const probe = (name: string, status: string, find: FindFault): InternalRoute => {
    const prefix = `/gateway/v0/${name}`;
    return {
      ...{ name, prefix, forAdmins: false },
      async run(ctx) {
        if (!acceptRead(ctx, prefix)) return;
        const detail = await find();
        if (detail !== undefined) throw notReady(detail);
        ctx.set('Cache-Control', 'no-store');
        represent(ctx, representations.choose(ctx.req.headers.accept), { status }, { title: title(status) });
      },
    };
  };
  return [probe('check_alive', 'alive', async () => undefined), probe('check_ready', 'ready', findFault)];
}

function title(status: string): string {
  return status.charAt(0).toUpperCase() + status.slice(1);
}

export interface ReadinessParts {
  readonly configuration: LiveConfiguration;
  /** Undefined when no module of this process needs a database. */
  readonly database: Pick<Database, 'findFault'> | undefined;
  readonly rateLimiting: Pick<RateLimiting, 'isReady'>;
  /** Aborted when the process starts to close. */
  readonly closing: AbortSignal;
}

export function createReadiness({ has }: Pick<Setup, 'has'>, parts: ReadinessParts): FindFault {
  const { configuration, database, rateLimiting, closing } = parts;
  /** False for a gateway that fails open: it forwards requests when the limiter is unavailable. */
  function needsLimiter(): boolean {
    const { rateLimitServices } = configuration.current().configuration;
    return !has('gateway') || rateLimitServices.some(({ failureModeDeny }) => failureModeDeny);
  }
  return async function findFault() {
    if (closing.aborted) return stopping;
    if (needsLimiter() && !rateLimiting.isReady()) return 'The rate limiter cannot count in Redis.';
    return database?.findFault();
  };
}
