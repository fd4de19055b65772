/** The middleware of all listeners, in order, in one array. */
import Koa, { type Context, type Middleware } from 'koa';
import compose from 'koa-compose';
import type { AuthService } from '#auth';
import { createAllowedOrigin } from '#config';
import type { EntrySettings } from '#explain';
import type { Logger } from '#foundation';
import { createSiteCors, type InternalRoute } from '#gateway';
import {
  type Compression,
  type CompressionRule,
  createAccessLog,
  createAddresses,
  createHostCheck,
  createProblemResponses,
  createRequestContext,
  createSafePath,
  hasClientLeft,
  isolate,
  type ProblemResponsesOptions,
  problem,
  replaceStatus,
  requestContext,
  requestLogFields,
  takeOverHttp2,
} from '#http';
import type { Tracing } from '#tracing';
import type { CurrentGateway } from './current-gateway.ts';
import { createLanding, type LandingParts } from './landing.ts';
import type { Setup } from './options.ts';

export interface PipelineParts {
  /** Undefined when tracing is off. */
  readonly tracing: Pick<Tracing, 'middleware'> | undefined;
  readonly problems: ProblemResponsesOptions;
  readonly gateway: Pick<CurrentGateway, 'middleware' | 'answersPreflight' | 'snapshot'>;
  /** Undefined when the auth service does not run in this process. */
  readonly auth: Pick<AuthService, 'app'> | undefined;
  /** The first step of the port that redirects to HTTPS. Undefined without this port. */
  readonly httpsRedirect?: Middleware | undefined;
  /** The internal routes. The admin port serves some of them. */
  readonly routes: readonly InternalRoute[];
  readonly configuration: LandingParts['configuration'];
  /** Its compression is also for the pages and metrics that the gateway does not serve. */
  readonly state: { readonly compression: Pick<Compression, 'createRule'> };
}

/**
 * The gateway is `embedded` in another app or `standalone` on its own port. At `redirect`, it
 * serves what is not redirected to HTTPS.
 */
export type PipelineListener = 'embedded' | 'standalone' | 'redirect' | 'auth' | 'admin';

/** `run` is undefined when the step is turned off or not part of this process. */
export type Step = readonly [name: string, listeners: readonly PipelineListener[], run: Middleware | undefined];

/** The app of each listener. `middleware` is the middleware of `embedded`. */
export interface Pipeline {
  readonly embedded: Koa;
  readonly standalone: Koa;
  readonly redirect: Koa;
  readonly auth: Koa;
  readonly admin: Koa;
  readonly middleware: Middleware;
}

export function createPipeline(setup: Setup, parts: PipelineParts): Pipeline {
  const steps = createSteps(setup, parts);
  const app = (listener: PipelineListener) => createApp(stepsOf(steps, listener), setup.logger);
  const middleware = compose(stepsOf(steps, 'embedded').map(([, , run]) => run)) as Middleware;
  return {
    embedded: app('embedded'),
    standalone: app('standalone'),
    redirect: app('redirect'),
    auth: app('auth'),
    admin: app('admin'),
    middleware,
  };
}

/** The root of an embedded gateway belongs to the host, and that of Gateways to their routes, which decide what is not found. */
function hasOwnHome(listener: PipelineListener, { kubernetesGatewayApi }: Setup['settings']): boolean {
  return listener !== 'embedded' && !kubernetesGatewayApi;
}

/** The listeners that serve the mappings. */
const gateways: readonly PipelineListener[] = ['embedded', 'standalone', 'redirect'];

/** The steps of a request, from first to last. Services of this process add their own steps: see src/rest/app.ts. */
export function createSteps(setup: Setup, parts: PipelineParts): readonly Step[] {
  const { settings, landingPage } = setup;
  const { tracing, problems, gateway, auth, httpsRedirect, routes } = parts;
  const addresses = createAddresses(settings);
  const withHome = landingPage ? gateways : gateways.filter((listener) => hasOwnHome(listener, settings));
  const withoutHome = [...gateways, 'auth' as const, 'admin' as const].filter((one) => !withHome.includes(one));
  const { compression: shared } = parts.state;
  const compression = settings.compress ? shared.createRule({ isOwn: true, withCookies: false }) : undefined;
  return [
    ['HTTP/2 of the host', ['embedded'], takeOverHttp2],
    ['request context', withHome, createRequestContext(addresses, { hasHome: true })],
    ['request context', withoutHome, createRequestContext(addresses)],
    ['tracing', ['embedded', 'standalone', 'redirect', 'auth'], tracing?.middleware],
    // Not on the admin port: monitoring would add a useless line every few seconds.
    ['access log', ['embedded', 'standalone', 'redirect', 'auth'], createLog(setup)],
    ['CORS_ORIGINS', gateways, createCorsOrigins(settings.corsOrigins, gateway.answersPreflight)],
    ['problems', gateways, createProblemResponses(problems)],
    ['problems without pages', ['admin'], createProblemResponses({ ...problems, problemPagesPath: undefined })],
    ...entryChecks.map(([name, create]): Step => [name, [...gateways, 'admin'], create()]),
    ['redirect to HTTPS', ['redirect'], httpsRedirect],
    ['landing page', withHome, createLanding(setup, { ...parts, compression })],
    // The stages in the gateway (limits by address, authentication, other limits, forwarding) are in gateway/stages.ts.
    ['gateway', gateways, gateway.middleware],
    // No path check and no CORS before it: its response must depend on the credentials only.
    ['auth service', ['auth'], auth && isolate(auth.app)],
    ['metrics and probes', ['admin'], createAdminRoutes(routes, compression)],
  ];
}

/** The checks of a request before the gateway, in order. An explanation runs them too. */
const entryChecks = [
  ['host', createHostCheck],
  ['safe path', createSafePath],
] as const;

type ActiveStep = readonly [name: string, listeners: readonly PipelineListener[], run: Middleware];

export function stepsOf(steps: readonly Step[], listener: PipelineListener): readonly ActiveStep[] {
  return steps.filter((step): step is ActiveStep => step[1].includes(listener) && step[2] !== undefined);
}

function createApp(steps: readonly ActiveStep[], logger: Logger): Koa {
  const app = new Koa();
  for (const [, , run] of steps) app.use(run);
  // Errors that occur after the response has started, unless the proxy has already reported them. Koa also reports every
  // connection that breaks.
  return app.on('error', (error: Error, ctx: Context) => {
    const context = requestContext(ctx);
    if (hasClientLeft(ctx.res) || context.problem !== undefined) return;
    context.problem = problem('internal', { cause: error });
    replaceStatus(ctx.res, context.problem.status);
    const { mapping } = context;
    logger.error({ ...requestLogFields(ctx), mapping, err: error }, 'a response failed after it had started');
  });
}

/** Undefined when the access log is off or nothing would be logged at level info. */
function createLog({ settings: { accessLog }, logger }: Setup): Middleware | undefined {
  if (accessLog === 'off' || logger.isLevelEnabled?.('info') === false) return undefined;
  // Lines for people are made of the same fields, by the logger.
  return createAccessLog(logger, accessLog === 'combined' ? 'combined' : 'json');
}

/** The response headers that scripts of other origins may read, in addition to the CORS-safelisted ones. */
const exposedHeaders = [
  'ETag',
  'Link',
  'Location',
  'Retry-After',
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'Deprecation',
  'Idempotent-Replayed',
  'Sunset',
  ...['Limit', 'Remaining', 'Reset'].flatMap((name) => [`RateLimit-${name}`, `X-RateLimit-${name}`]),
];

/** Responds to CORS preflights, which carry no credentials, unless a mapping has a rule for them. */
function createCorsOrigins(
  origins: readonly string[],
  answersPreflight: CurrentGateway['answersPreflight'],
): Middleware | undefined {
  if (origins.length === 0) return undefined;
  const applyCors = createSiteCors(origins, exposedHeaders);
  return function corsOrigins(ctx, next) {
    return answersPreflight(ctx) ? next() : applyCors(ctx, next);
  };
}

/** What explanations need of the steps before the gateway. */
export function createEntrySettings({ settings }: Pick<Setup, 'settings'>): EntrySettings {
  const addresses = createAddresses(settings);
  const allowedOrigin = createAllowedOrigin(settings.corsOrigins);
  return {
    addresses,
    allowedOrigin: (ctx) => allowedOrigin(ctx.get('Origin')),
    checks: entryChecks.map(([, create]) => create()),
  };
}

/** Maps the paths of the admin port to those of internal routes. */
const adminPaths: ReadonlyMap<string, string> = new Map([
  ...['metrics', 'check_alive', 'check_ready'].map((name) => [`/gateway/v0/${name}`, `/gateway/v0/${name}`] as const),
  // The default path of Prometheus.
  ['/metrics', '/gateway/v0/metrics'],
  // The names that Kubernetes uses.
  ['/livez', '/gateway/v0/check_alive'],
  ['/readyz', '/gateway/v0/check_ready'],
]);

/** Serves only routes that are safe without credentials. */
function createAdminRoutes(routes: readonly InternalRoute[], compression: CompressionRule | undefined): Middleware {
  return async function serveAdmin(ctx: Context): Promise<void> {
    const path = adminPaths.get(ctx.path);
    const route = routes.find(({ prefix }) => prefix === path);
    if (path === undefined || route === undefined) throw problem('not-found');
    // Otherwise the log would take a successful scrape for the end of a fault that check_ready reports.
    Object.assign(requestContext(ctx), { mapping: route.name, service: route.name });
    const { url } = ctx;
    ctx.url = path + ctx.search;
    try {
      compression?.prepare(ctx);
      await route.run(ctx);
      await compression?.compress(ctx);
    } finally {
      ctx.url = url;
    }
  };
}
