/** The endpoints `/gateway/v0/limits/show` and `/gateway/v0/limits/reset`, for the limits of one client. */
import type { Context } from 'koa';
import { z } from 'zod';
import type { InternalRoute } from '#gateway';
import { createBodySchema, handleOtherMethod, jsonFormatter, notReady, problem, readJsonBody } from '#http';
import { type ClientLimits, CountersUnavailable, InvalidRequest } from '#ratelimit';

const prefix = '/gateway/v0/limits';

const checkBody = createBodySchema(
  z.strictObject({
    domain: z.string(),
    entries: z.array(z.strictObject({ key: z.string(), value: z.string() })).min(1),
  }),
);

/**
 * Responds to a POST of `{ domain, entries: [{ key, value }] }` with the limits that match. `clientLimits` is undefined
 * if the limiter runs in another process.
 */
export function createLimitsEndpoint(clientLimits: ClientLimits | undefined): InternalRoute {
  return {
    name: 'limits',
    prefix,
    forAdmins: true,
    async run(ctx) {
      const act = actionAt(ctx.path);
      if (ctx.method !== 'POST') return handleOtherMethod(ctx, ['POST', 'OPTIONS']);
      rejectWebPages(ctx);
      if (clientLimits === undefined) throw problem('not-found', { detail: elsewhere });
      const client = checkBody(await readJsonBody(ctx));
      const limits = await act(clientLimits, client).catch(rethrow);
      ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': jsonFormatter.contentType });
      ctx.body = jsonFormatter.format({ limits }, '');
    },
  };
}

const elsewhere = 'Another process runs the rate limiter. If its counters are in Redis, set REDIS_URL for the command.';

type Action = (limits: ClientLimits, client: Parameters<ClientLimits['show']>[0]) => ReturnType<ClientLimits['show']>;

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  [`${prefix}/show`, (limits, client) => limits.show(client)],
  [`${prefix}/reset`, (limits, client) => limits.reset(client)],
]);

function actionAt(path: string): Action {
  const action = actions.get(path);
  if (action === undefined) throw problem('not-found');
  return action;
}

/** A browser sends the password of an administrator along with requests that a page makes. */
function rejectWebPages({ req: { headers } }: Context): void {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)
    throw problem('bad-request', { detail: 'Requests from web pages are not allowed.' });
}

function rethrow(error: unknown): never {
  if (error instanceof InvalidRequest) throw problem('not-found', { detail: error.message });
  if (error instanceof CountersUnavailable) throw notReady('The rate limiter cannot count in Redis.');
  throw error;
}
