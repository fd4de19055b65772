/** The order of all middleware, on each listener, in one array. */
import cors from '@koa/cors';
import Koa, { type Context, type Middleware } from 'koa';
import compose from 'koa-compose';
import type { AuthService } from '#auth';
import type { EntrySettings } from '#explain';
import type { InternalRoute } from '#gateway';
import {
  createAccessLog,
  createAddresses,
  createHostCheck,
  createProblemResponses,
  createRequestContext,
  createSafePath,
  isolate,
  type Logger,
  type ProblemResponsesOptions,
  problem,
  requestLogFields,
} from '#http';
import type { Tracing } from '#tracing';
import type { GatewayHost } from './gateway-host.ts';
import { createLanding } from './landing.ts';
import type { Setup } from './options.ts';

export interface PipelineParts {
  /** Undefined: the process has no tracing. */
  readonly tracing: Pick<Tracing, 'middleware'> | undefined;
  readonly problems: ProblemResponsesOptions;
  readonly gateway: Pick<GatewayHost, 'middleware' | 'answersPreflight' | 'snapshot'>;
  /** Undefined: it does not run in this process. */
  readonly auth: Pick<AuthService, 'app'> | undefined;
  /** The server's own, of which the admin port serves a few. */
  readonly routes: readonly InternalRoute[];
}

/** `own`: only where frontdesk itself listens, and not inside a host that has its own pages. */
export type PipelineListener = 'gateway' | 'own' | 'auth' | 'admin';

/** Undefined: not in this process, or no setting asks for it. */
export type Step = readonly [name: string, listeners: readonly PipelineListener[], run: Middleware | undefined];

/** The app of each listener; `gateway` and `middleware` are what a host mounts. */
export interface Pipeline {
  readonly gateway: Koa;
  readonly own: Koa;
  readonly auth: Koa;
  readonly admin: Koa;
  readonly middleware: Middleware;
}

export function createPipeline(setup: Setup, parts: PipelineParts): Pipeline {
  const steps = createSteps(setup, parts);
  const app = (listener: PipelineListener) => createApp(stepsOf(steps, listener), setup.logger);
  const middleware = compose(stepsOf(steps, 'gateway').map(([, , run]) => run)) as Middleware;
  return { gateway: app('gateway'), own: app('own'), auth: app('auth'), admin: app('admin'), middleware };
}

/** What each request goes through, from the first to the last. A service of this process adds its own: see src/rest/app.ts. */
export function createSteps(setup: Setup, parts: PipelineParts): readonly Step[] {
  const { settings } = setup;
  const { tracing, problems, gateway, auth, routes } = parts;
  return [
    ['request context', ['gateway', 'own', 'auth', 'admin'], createRequestContext(createAddresses(settings))],
    ['tracing', ['gateway', 'own', 'auth'], tracing?.middleware],
    // Not on the admin port: a line every few seconds would say only that the process is watched.
    ['access log', ['gateway', 'own', 'auth'], createLog(setup)],
    ['CORS_ORIGINS', ['gateway', 'own'], createSiteCors(settings.corsOrigins, gateway.answersPreflight)],
    ['problems', ['gateway', 'own'], createProblemResponses(problems)],
    ['problems without pages', ['admin'], createProblemResponses({ ...problems, problemPagesPath: undefined })],
    ['host', ['gateway', 'own', 'admin'], createHostCheck()],
    ['safe path', ['gateway', 'own', 'admin'], createSafePath()],
    ['landing page', ['own'], createLanding(setup, gateway)],
    // Its own stages (limits by address, authentication, other limits, forwarding) are one array in gateway/handle.ts.
    ['gateway', ['gateway', 'own'], gateway.middleware],
    // Its answer depends on the credentials alone: neither an odd path nor a preflight may get another one.
    ['auth service', ['auth'], auth && isolate(auth.app)],
    ['metrics and probes', ['admin'], createAdminRoutes(routes)],
  ];
}

type ActiveStep = readonly [name: string, listeners: readonly PipelineListener[], run: Middleware];

export function stepsOf(steps: readonly Step[], listener: PipelineListener): readonly ActiveStep[] {
  return steps.filter((step): step is ActiveStep => step[1].includes(listener) && step[2] !== undefined);
}

function createApp(steps: readonly ActiveStep[], logger: Logger): Koa {
  const app = new Koa();
  for (const [, , run] of steps) app.use(run);
  // Koa reports here what failed after the response had begun; a client that left, and closed its socket, is no failure.
  return app.on('error', (error: Error, ctx?: Context) => {
    if (ctx?.req.socket.destroyed === true) return;
    logger.error({ ...(ctx && requestLogFields(ctx)), err: error }, 'a response was cut off');
  });
}

/** Undefined: it would write nothing. */
function createLog({ settings: { accessLog }, logger }: Setup): Middleware | undefined {
  if (accessLog === 'off' || logger.isLevelEnabled?.('info') === false) return undefined;
  return createAccessLog(logger, accessLog);
}

/** What a script of another origin may read beside the safelisted headers. */
const exposedHeaders = [
  ...['ETag', 'Link', 'Location', 'Retry-After', 'X-Request-Id', 'RateLimit', 'RateLimit-Policy'],
  ...['Deprecation', 'Idempotent-Replayed', 'Sunset'],
  ...['Limit', 'Remaining', 'Reset'].flatMap((name) => [`RateLimit-${name}`, `X-RateLimit-${name}`]),
];

/** Answers preflights before any credentials are asked for, but for those that a mapping has a rule for. */
function createSiteCors(
  origins: readonly string[],
  answersPreflight: GatewayHost['answersPreflight'],
): Middleware | undefined {
  if (origins.length === 0) return undefined;
  const answer = cors({ origin: (ctx) => allowedOrigin(origins, ctx), exposeHeaders: exposedHeaders });
  return function siteCors(ctx, next) {
    return answersPreflight(ctx) ? next() : answer(ctx, next);
  };
}

/** `''`: none. */
function allowedOrigin(origins: readonly string[], ctx: Context): string {
  return origins.includes('*') ? '*' : (origins.find((origin) => origin === ctx.get('Origin')) ?? '');
}

/** The settings of the steps before the gateway, for explanations. */
export function createEntrySettings({ settings }: Pick<Setup, 'settings'>): EntrySettings {
  const addresses = createAddresses(settings);
  return { addresses, allowedOrigin: (ctx) => allowedOrigin(settings.corsOrigins, ctx) };
}

/** What the admin port serves, by the path of the route that answers. */
const adminPaths: ReadonlyMap<string, string> = new Map([
  ...['metrics', 'check_alive', 'check_ready'].map((name) => [`/gateway/v0/${name}`, `/gateway/v0/${name}`] as const),
  // Where Prometheus looks by default.
  ['/metrics', '/gateway/v0/metrics'],
  // As Kubernetes and its tools name them.
  ['/livez', '/gateway/v0/check_alive'],
  ['/readyz', '/gateway/v0/check_ready'],
]);

/** Without credentials, and so nothing that reveals more. */
function createAdminRoutes(routes: readonly InternalRoute[]): Middleware {
  return async function serveAdmin(ctx: Context): Promise<void> {
    const path = adminPaths.get(ctx.path);
    const route = routes.find(({ prefix }) => prefix === path);
    if (path === undefined || route === undefined) throw problem('not-found');
    const { url } = ctx;
    ctx.url = path + ctx.search;
    try {
      await route.run(ctx);
    } finally {
      ctx.url = url;
    }
  };
}
