/** check_alive and check_ready, open to everyone, and what "ready" means. */
import type { InternalRoute } from '#gateway';
import { acceptRead, notReady, type Representations, represent, stopping } from '#http';
import type { Database } from '#storage';
import type { Setup } from './options.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { LiveConfiguration } from './reload.ts';

/** Why the process cannot serve now, as a sentence; undefined: it can. Never rejects. */
export type FindFault = () => Promise<string | undefined>;

/** `check_alive` answers while the process does; `check_ready` only while it can serve. */
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
  /** Undefined: no module of this process needs one. */
  readonly database: Pick<Database, 'findFault'> | undefined;
  readonly rateLimiting: Pick<RateLimiting, 'isReady'>;
  /** Aborted as soon as the process closes. */
  readonly closing: AbortSignal;
}

export function createReadiness({ has }: Pick<Setup, 'has'>, parts: ReadinessParts): FindFault {
  const { configuration, database, rateLimiting, closing } = parts;
  /** False for a gateway that lets requests pass without a decision: it serves without its limiter. */
  function needsLimiter(): boolean {
    const { rateLimitServices } = configuration.current().configuration;
    return !has('gateway') || rateLimitServices.some(({ failureModeDeny }) => failureModeDeny);
  }
  return async function findFault() {
    if (closing.aborted) return stopping;
    if (needsLimiter() && !rateLimiting.isReady()) return 'The rate limiter has no connection to Redis.';
    return database?.findFault();
  };
}
