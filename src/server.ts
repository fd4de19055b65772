/** The composition root: every module, put together in the order in which a request meets them. */
import cors from '@koa/cors';
import Koa, { type Context, type Middleware } from 'koa';
import compose from 'koa-compose';
import { createApi } from '#api';
import { createAuthenticator, createAuthService, createUsers } from '#auth';
import { demoUsersAmong, loadTls, packageVersion, type Tls } from '#config';
import { createDiagnostics, createProbes } from '#diag';
import type { Forward, InternalRoute } from '#gateway';
import {
  createAccessLog,
  createAddresses,
  createExchange,
  createProblemResponses,
  createRepresentations,
  createSafePath,
  isolate,
  type Logger,
  type Problem,
  type ProblemResponsesOptions,
  problem,
} from '#http';
import { createVersions } from '#rest';
import { createCarService } from '#services/car';
import { createHotelService } from '#services/hotel';
import { type Database, loadDemo, openDatabase, StorageUnavailable } from '#storage';
import { createEdge } from './edge.ts';
import { createListeners } from './listeners.ts';
import { type Frontdesk, type FrontdeskOptions, type Settled, settleOptions } from './options.ts';
import { openRateLimiting, type RateLimiting } from './rate-limiting.ts';

/** Rejects with an Error whose message names what is wrong with the options or the configuration, and the remedy. */
export async function createFrontdesk(options: FrontdeskOptions = {}): Promise<Frontdesk> {
  const settled = await settleOptions(options);
  const tls = await loadTls(settled.settings);
  const database = await openStorage(settled);
  let rateLimiting: RateLimiting | undefined;
  try {
    rateLimiting = await openRateLimiting(settled);
    return assemble(settled, { tls, database, rateLimiting });
  } catch (error) {
    await rateLimiting?.close();
    await database?.close();
    throw error;
  }
}

/** What had to be opened. */
interface Opened {
  readonly tls: Tls | undefined;
  readonly database: Database | undefined;
  readonly rateLimiting: RateLimiting;
}

function assemble(settled: Settled, { tls, database, rateLimiting }: Opened): Frontdesk {
  const { settings, configuration, logger, has } = settled;
  const { limiter } = rateLimiting;
  const representations = createRepresentations();
  const responses = { representations, logger, translate: storageProblem };
  const entry = createEntry(settled, responses);

  const users = createUsers(configuration.users);
  const auth = has('auth') ? createAuthService({ authenticator: createAuthenticator({ users }), logger }) : undefined;
  const versions = has('api') && database ? createApi({ ...responses, database }) : {};
  const api = isolate(createVersions(versions));
  const services = isolateAll({
    ...settled.services,
    ...(has('hotel') && database && { hotel: createHotelService({ ...responses, database }) }),
    ...(has('car') && database && { car: createCarService({ ...responses, database }) }),
    ...(has('api') && { api }),
    ...(auth && { auth: auth.app }),
  });

  const startedAtMs = performance.now();
  const internalRoutes: InternalRoute[] = [
    ...Object.keys(versions).map((name) => ({
      name: 'api',
      prefix: `/${name}`,
      rewrite: '',
      authenticated: false,
      run: api,
    })),
    ...createProbes(async () => (await database?.isReady()) ?? true, representations),
    createDiagnostics({
      version: packageVersion(),
      uptimeMs: () => performance.now() - startedAtMs,
      gateway: () => edge.gateway.snapshot(),
      // Read anew at each look: the files may have changed.
      get limits() {
        return rateLimiting.limits();
      },
      get errors() {
        return rateLimiting.errors();
      },
    }),
  ];
  const edge = createEdge(settled, {
    auth,
    limiter,
    services,
    internalRoutes,
    listenerOf: (name) => listeners.addressOf(name),
  });
  const middleware = compose([...entry, edge.gateway.middleware]) as Middleware;
  const app = createHost([...entry, edge.gateway.middleware], logger);
  const listeners = createListeners({
    settings,
    logger,
    tls,
    rateLimiting,
    auth: auth && createHost([...entry, isolate(auth.app)], logger).callback(),
    gateway: servesHttp(settled) ? app.callback() : undefined,
  });
  let closing: Promise<void> | undefined;
  async function closeAll(): Promise<void> {
    rateLimiting.leave();
    await listeners.close();
    await edge.close();
    await rateLimiting.close();
    await database?.close();
  }
  return Object.freeze({
    app,
    middleware,
    demoUsers: demoUsersAmong(configuration.users),
    listen: listeners.open,
    close() {
      closing ??= closeAll();
      return closing;
    },
  });
}

/** What every request passes on its way in, on whichever listener. */
function createEntry({ settings, logger }: Settled, responses: ProblemResponsesOptions): Middleware[] {
  return [
    createExchange(createAddresses(settings)),
    createAccessLog(logger),
    ...(settings.corsOrigins.length === 0 ? [] : [createCors(settings.corsOrigins)]),
    createProblemResponses(responses),
    createSafePath(),
  ];
}

/** What a script of another origin may read beside the safelisted headers. */
const exposed = [
  ...['ETag', 'Link', 'Location', 'Retry-After', 'X-Request-Id', 'RateLimit', 'RateLimit-Policy'],
  ...['Limit', 'Remaining', 'Reset'].flatMap((name) => [`RateLimit-${name}`, `X-RateLimit-${name}`]),
];

/** Preflights end here, before anybody is asked for credentials. */
function createCors(origins: readonly string[]): Middleware {
  return cors({
    origin: (ctx) => (origins.includes('*') ? '*' : (origins.find((origin) => origin === ctx.get('Origin')) ?? '')),
    exposeHeaders: exposed,
  });
}

function isolateAll(apps: Readonly<Record<string, Koa | Middleware>>): Record<string, Forward> {
  return Object.fromEntries(Object.entries(apps).map(([name, app]) => [name, isolate(app)]));
}

/** Koa reports here what failed after the response had begun; a client that left, and so closed its socket, is no failure. */
function createHost(middleware: readonly Middleware[], logger: Logger): Koa {
  const app = new Koa();
  for (const one of middleware) app.use(one);
  return app.on('error', (error: Error, ctx?: Context) => {
    if (ctx?.req.socket.destroyed !== true) logger.error({ err: error }, 'a response broke off');
  });
}

function servesHttp({ has, services }: Settled): boolean {
  return has('gateway') || has('hotel') || has('car') || has('api') || Object.keys(services).length > 0;
}

async function openStorage({
  settings,
  configuration,
  logger,
  clock,
  demo,
  has,
}: Settled): Promise<Database | undefined> {
  if (!has('hotel') && !has('car') && !has('api')) return undefined;
  const database = await openDatabase({ url: settings.databaseUrl, logger });
  try {
    if (demo) await loadDemo(database, configuration.demo, { nowMs: clock() });
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

function storageProblem(thrown: unknown): Problem | undefined {
  if (!(thrown instanceof StorageUnavailable)) return undefined;
  return problem('storage-unavailable', { headers: { 'Retry-After': '1' }, cause: thrown.cause });
}
