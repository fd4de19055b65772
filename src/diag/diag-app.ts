/** The gateway's own endpoints: diagnostics for people and machines, and two probes for whatever watches the process. */
import type { Context } from 'koa';
import {
  answerMethod,
  builtInFormatters,
  createRepresentations,
  exchangeOf,
  problem,
  type Representations,
  redirectTo,
  represent,
} from '#http';
import { diagnosticsFormatter } from './page.ts';
import { type DiagnosticsParts, readDiagnostics } from './snapshot.ts';

/** An endpoint under its whole path, for the gateway's table. */
export interface Endpoint {
  readonly name: string;
  readonly prefix: string;
  /** Endpoints see the path as it is. */
  readonly rewrite: '';
  readonly authenticated: boolean;
  readonly run: (ctx: Context) => Promise<void>;
}

export const root = '/gateway/v0';

/** `/gateway/v0/diag/`, behind the auth service. */
export function createDiagnostics(parts: DiagnosticsParts): Endpoint {
  const representations = createRepresentations([
    ...builtInFormatters.filter(({ type }) => type !== diagnosticsFormatter.type),
    diagnosticsFormatter,
  ]);
  const prefix = `${root}/diag`;
  return {
    name: 'diagnostics',
    prefix,
    rewrite: '',
    authenticated: true,
    async run(ctx) {
      if (ctx.path === prefix) return redirectTo(ctx, `${exchangeOf(ctx).basePath}${prefix}/${ctx.search}`);
      if (!isRead(ctx, `${prefix}/`)) return;
      represent(ctx, representations.choose(ctx.req.headers.accept), readDiagnostics(parts), {
        title: 'frontdesk diagnostics',
      });
    },
  };
}

/** `check_alive` answers while the process does; `check_ready` only while it can serve. Both are open. */
export function createProbes(isReady: () => Promise<boolean>, representations: Representations): readonly Endpoint[] {
  const probe = (name: string, state: string, holds: () => Promise<boolean>): Endpoint => ({
    name,
    prefix: `${root}/${name}`,
    rewrite: '',
    authenticated: false,
    async run(ctx) {
      if (!isRead(ctx, `${root}/${name}`)) return;
      if (!(await holds())) throw problem('not-ready', { headers: { 'Retry-After': '1' } });
      ctx.set('Cache-Control', 'no-store');
      represent(ctx, representations.choose(ctx.req.headers.accept), { status: state }, { title: state });
    },
  });
  return [probe('check_alive', 'alive', async () => true), probe('check_ready', 'ready', isReady)];
}

const allowed = ['GET', 'HEAD', 'OPTIONS'];

/** An endpoint has exactly one path, and is only read. False: the question was what else it takes, and is answered. */
export function isRead(ctx: Context, path: string): boolean {
  if (ctx.path !== path) throw problem('not-found');
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return true;
  answerMethod(ctx, allowed);
  return false;
}
