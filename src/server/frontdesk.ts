/** The composition root: every module, put together in the order in which a request meets them. */
import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import Koa, { type Context, type Middleware } from 'koa';
import compose from 'koa-compose';
import { createApi } from '#api';
import { type Authenticator, createAuthService, createReloadingAuthenticator, createUsers } from '#auth';
import { demoUsersAmong, loadTls, packageVersion, type Tls, type User } from '#config';
import { problemPagesPath } from '#diag';
import { createGatewayCounts, createTraffic, type Forward } from '#gateway';
import { createRepresentations, isolate, type Logger, requestLogFields } from '#http';
import { createClusters } from '#proxy';
import { createVersions } from '#rest';
import { createCarService } from '#services/car';
import { createHotelService } from '#services/hotel';
import type { Database } from '#storage';
import { loadTracing, type Tracing } from '#tracing';
import { createAdmin } from './admin.ts';
import { createEdges, type Edges } from './gateway-host.ts';
import { createListeners } from './listeners.ts';
import { createEdge } from './open-gateway.ts';
import { type Frontdesk, type FrontdeskOptions, type Settled, settleOptions } from './options.ts';
import { createOwnRoutes } from './own-routes.ts';
import { createArrival, createEntry } from './pipeline.ts';
import { openRateLimiting, type RateLimiting } from './rate-limiting.ts';
import { createGenerations, type Generations } from './reload.ts';
import { openStorage, storageProblem } from './storing.ts';
import { createUpgrading } from './upgrading.ts';

/** Rejects with an Error whose message names what is wrong with the options or the configuration, and the remedy. */
export async function createFrontdesk(options: FrontdeskOptions = {}): Promise<Frontdesk> {
  const settled = await settleOptions(options);
  const tls = await loadTls(settled.settings);
  const generations = createGenerations(settled);
  const database = await openStorage(settled);
  let rateLimiting: RateLimiting | undefined;
  try {
    rateLimiting = await openRateLimiting(settled, generations);
    const { logger, dormant } = settled;
    const tracing = dormant ? undefined : await loadTracing({ version: packageVersion(), logger });
    const desk = assemble(settled, { tls, database, rateLimiting, generations, tracing });
    if (!settled.dormant) await generations.watch();
    return desk;
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
  readonly generations: Generations;
  /** Undefined: nobody traces. */
  readonly tracing: Tracing | undefined;
}

function assemble(settled: Settled, { tls, database, rateLimiting, generations, tracing }: Opened): Frontdesk {
  const { settings, configuration, logger, clock, has } = settled;
  const { limiter } = rateLimiting;
  const representations = createRepresentations();
  const responses = { representations, logger, toProblem: storageProblem, problemPagesPath };
  const arrival = createArrival(settled, tracing?.middleware);
  const entry = [...arrival, ...createEntry(settled, responses, (ctx) => edges.answersPreflight(ctx))];

  const auth = has('auth')
    ? createAuthService({ authenticator: followUsers(configuration.users, generations), logger })
    : undefined;
  const versions = has('api') && database ? createApi({ ...responses, database }) : {};
  const api = isolate(createVersions(versions));
  const services = isolateAll({
    ...settled.services,
    ...(has('hotel') && database && { hotel: createHotelService({ ...responses, database, clock }) }),
    ...(has('car') && database && { car: createCarService({ ...responses, database, clock }) }),
    ...(has('api') && { api }),
    ...(auth && { auth: auth.app }),
  });

  const withoutTracing = tracing?.untraced;
  const clusters = createClusters({ logger, withoutTracing, ...(settled.dormant && { timer: () => () => {} }) });
  const counts = createGatewayCounts();
  const traffic = createTraffic({ clock });
  const own = createOwnRoutes(generations, {
    versions: Object.keys(versions),
    api,
    database,
    rateLimiting,
    representations,
    traffic,
    clusters,
    counts,
    hasGateway: settled.has('gateway'),
    isClosing: () => closing !== undefined,
    clock,
    edges: () => edges,
  });
  const edges: Edges = createEdges(generations, (current) =>
    createEdge(settled, current, {
      auth,
      limiter,
      services,
      internalRoutes: own.routes,
      listenerOf: (name) => listeners.addressOf(name),
      clusters,
      counts,
      traffic,
    }),
  );
  const middleware = compose([...entry, edges.middleware]) as Middleware;
  const app = createHost([...entry, edges.middleware], logger);
  const admin = createAdmin(settled, responses, own.routes);
  const upgrades = createUpgrading(settled, generations);
  const listeners = createListeners({
    settings,
    logger,
    tls,
    rateLimiting,
    // Its answer hangs on the credentials alone: neither an odd path nor a preflight may get another one.
    auth: auth && createHost([...arrival, isolate(auth.app)], logger).callback(),
    gateway: servesHttp(settled) ? app.callback() : undefined,
    admin: settings.adminPort === undefined ? undefined : createHost(admin, logger).callback(),
    upgrades,
  });
  let closing: Promise<void> | undefined;
  async function closeAll(): Promise<void> {
    rateLimiting.leave();
    own.close();
    await generations.close();
    await Promise.all([listeners.close(), upgrades.close(settings.shutdownTimeoutMs)]);
    await edges.close();
    await clusters.close();
    await rateLimiting.close();
    await database?.close();
  }
  return Object.freeze({
    app,
    middleware,
    demoUsers: demoUsersAmong(configuration.users),
    explain: edges.explain,
    upgradesThrough: (handler: RequestListener = app.callback()) => upgrades.listener(handler),
    listen: listeners.open,
    close() {
      closing ??= closeAll();
      return closing;
    },
  });
}

/** Who was verified stays so, unless the users have changed. */
function followUsers(users: readonly User[], generations: Generations): Authenticator {
  const authenticator = createReloadingAuthenticator({ users: createUsers(users) });
  generations.follow((next) => {
    if (isDeepStrictEqual(next.users, generations.current().configuration.users)) return () => {};
    const store = createUsers(next.users);
    return () => authenticator.reload(store);
  });
  return authenticator;
}

function isolateAll(apps: Readonly<Record<string, Koa | Middleware>>): Record<string, Forward> {
  return Object.fromEntries(Object.entries(apps).map(([name, app]) => [name, isolate(app)]));
}

/** Koa reports here what failed after the response had begun; a client that left, and so closed its socket, is no failure. */
function createHost(middleware: readonly Middleware[], logger: Logger): Koa {
  const app = new Koa();
  for (const one of middleware) app.use(one);
  return app.on('error', (error: Error, ctx?: Context) => {
    if (ctx?.req.socket.destroyed === true) return;
    logger.error({ ...(ctx && requestLogFields(ctx)), err: error }, 'a response broke off');
  });
}

function servesHttp({ has, services }: Settled): boolean {
  return has('gateway') || has('hotel') || has('car') || has('api') || Object.keys(services).length > 0;
}
