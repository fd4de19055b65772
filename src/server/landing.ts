/** The landing page: when no mapping matches `/`, clients get a list of the routes and pages that the user may see. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { type DemoLogin, demoLoginsAmong } from '#config';
import { type Landing, type LandingRoute, type LandingStep, landingData, landingPage, signedOutPage } from '#diag';
import { attributesOf, type RouteSnapshot } from '#gateway';
import {
  type CompressionRule,
  createRepresentations,
  isPage,
  Problem,
  pageHeaders,
  publicBase,
  redirectTo,
  represent,
  requestContext,
  withHtmlPage,
} from '#http';
import { travelModules } from '#travel';
import type { CurrentGateway } from './current-gateway.ts';
import type { Setup } from './options.ts';
import type { LiveConfiguration } from './reload.ts';

export interface LandingParts {
  readonly gateway: Pick<CurrentGateway, 'snapshot'>;
  readonly configuration: Pick<LiveConfiguration, 'current'>;
  /** Undefined if the page is not compressed. */
  readonly compression: CompressionRule | undefined;
}

type Stage = NonNullable<RouteSnapshot['auth']>;

const representations = createRepresentations(withHtmlPage((value) => landingPage(value as Landing)));

export function createLanding({ has, demo }: Pick<Setup, 'has' | 'demo'>, parts: LandingParts): Middleware {
  const { gateway, configuration, compression } = parts;
  const isDemo = demo && has('auth');
  const demoLogins = () => (isDemo ? demoLoginsAmong(configuration.current().configuration.users) : []);
  const apis: ReadonlySet<string> = new Set(travelModules.filter(has));

  async function sendCompressedPage(ctx: Context): Promise<void> {
    compression?.prepare(ctx);
    await sendPage(ctx);
    await compression?.compress(ctx);
  }

  async function sendPage(ctx: Context): Promise<void> {
    const formatter = representations.choose(ctx.req.headers.accept);
    const isBrowser = isPage(formatter);
    const shown = gateway.snapshot().routes.filter(isShown);
    const stage = shown.find(({ auth }) => auth?.record.isDefault)?.auth;
    ctx.vary('Authorization');
    ctx.set('Cache-Control', 'private, no-store');
    if (isBrowser && stage && ctx.search === '?sign-out') return signOut(ctx, stage);
    const isSignedIn = stage === undefined ? false : await signIn(ctx, stage);
    if (isSignedIn === 'done') return;
    const landing = landingOf(ctx, shown, isSignedIn ? stage : undefined, stage !== undefined && !isSignedIn);
    represent(ctx, formatter, isBrowser ? landing : landingData(landing), { title: '' });
  }

  /** `stage` is undefined unless the user has signed in. */
  function landingOf(
    ctx: Context,
    shown: readonly RouteSnapshot[],
    stage: Stage | undefined,
    canSignIn: boolean,
  ): Landing {
    const isVisible = ({ auth, mapping }: RouteSnapshot) =>
      auth === undefined ||
      auth.record === stage?.record ||
      // Everyone knows the routes of the demo.
      (demo && apis.has(mapping.service));
    const routes = shown.filter(isVisible);
    const isSignedIn = stage !== undefined;
    return {
      root: publicBase(ctx),
      user: isSignedIn ? requestContext(ctx).user : undefined,
      isSignedIn,
      canSignIn,
      canSignOut: isSignedIn && sendsPassword(ctx),
      routes: [...new Map(routes.map((route) => [route.prefix, rowOf(route, apis)])).values()],
      hasDiagnostics: gateway.snapshot().routes.some(({ name, internal }) => internal && name === 'diagnostics'),
      ...demoOf(demoLogins(), routes),
    };
  }

  /** For programs, a service that has `/` under other conditions, such as for another host, is missing: a 404 says so. */
  function isOfService(ctx: Context): boolean {
    const isBrowser = isPage(representations.chooseForError(ctx.req.headers.accept));
    return !isBrowser && gateway.snapshot().routes.some((route) => route.prefix === '/' && isShown(route));
  }

  async function sendPageIfUnrouted(ctx: Context, next: Next): Promise<void> {
    try {
      await next();
    } catch (thrown) {
      if (!isUnrouted(ctx, thrown) || isOfService(ctx)) throw thrown;
      // Otherwise relative links would miss the mount path.
      if (isWithoutSlash(ctx)) redirectTo(ctx, `${requestContext(ctx).rootPath}/${ctx.search}`);
      else await sendCompressedPage(ctx);
    }
  }

  // Every request passes through here. Those that are not for the page avoid the cost of another promise.
  return (ctx, next) => (isForPage(ctx) ? sendPageIfUnrouted(ctx, next) : next());
}

function isUnrouted(ctx: Context, thrown: unknown): boolean {
  return requestContext(ctx).mapping === undefined && thrown instanceof Problem && thrown.slug === 'not-found';
}

function isForPage({ req }: Context): boolean {
  const { method, url = '/' } = req;
  return (url === '/' || url.startsWith('/?')) && (method === 'GET' || method === 'HEAD');
}

/** Whether a host has mounted the desk, and the client asked for the mount path itself. */
function isWithoutSlash({ req, originalUrl }: Context): boolean {
  const original = (req as IncomingMessage & { originalUrl?: string }).originalUrl ?? originalUrl;
  return !/^[^?]*\/(?:\?|$)/.test(original);
}

function sendsPassword({ req }: Context): boolean {
  return /^basic /i.test(req.headers.authorization ?? '');
}

/** Returns whether the user has signed in, or `done` when the response of the auth service is sent. */
async function signIn(ctx: Context, { record, authenticate }: Stage): Promise<boolean | 'done'> {
  if (ctx.req.headers.authorization === undefined && ctx.search !== '?sign-in') return false;
  if ((await authenticate(ctx, attributesOf(ctx))) !== 'continue') return 'done';
  // With failure_mode_allow, a request may pass although the auth service did not respond.
  return requestContext(ctx).user !== undefined || !record.failureModeAllow;
}

/**
 * Responds as to a wrong password, with the challenge of the auth service: a browser then forgets the password, which it
 * keeps by realm. A response that is not a challenge, such as a redirect to a login page, is that of the auth service.
 */
async function signOut(ctx: Context, stage: Stage): Promise<void> {
  if (sendsPassword(ctx)) {
    delete ctx.req.headers.authorization;
    const status = await challenge(ctx, stage);
    if (status !== 401) return;
    ctx.status = status;
  }
  ctx.set({ ...pageHeaders(), 'Content-Type': 'text/html; charset=utf-8' });
  ctx.vary('Accept');
  ctx.body = signedOutPage();
}

/** Sets the headers of the response to a request without credentials, and returns its status. */
async function challenge(ctx: Context, { authenticate }: Stage): Promise<number> {
  try {
    if ((await authenticate(ctx, attributesOf(ctx))) === 'continue')
      redirectTo(ctx, `${requestContext(ctx).rootPath}/`);
    return ctx.status;
  } catch (thrown) {
    if (!(thrown instanceof Problem) || thrown.status !== 401) throw thrown;
    for (const [name, value] of Object.entries(thrown.headers ?? {})) ctx.set(name, [value].flat());
    return thrown.status;
  }
}

/** Hides the server's own pages, which are listed separately. */
function isShown({ internal, prefix, mapping }: RouteSnapshot): boolean {
  return !mapping.shadow && !(internal === true && prefix.startsWith('/gateway/'));
}

/** Only the demo's services and the versions of its API have documentation. */
function rowOf(route: RouteSnapshot, apis: ReadonlySet<string>): LandingRoute {
  const { prefix, mapping, auth } = route;
  const { method, prefixMatch, service } = mapping;
  return {
    prefix,
    isLink: prefixMatch !== 'regex' && method === undefined,
    hasDocs: isVersion(route) || apis.has(service),
    needsCredentials: auth !== undefined,
  };
}

function isVersion({ internal, mapping }: RouteSnapshot): boolean {
  return internal === true && mapping.service.startsWith('api-');
}

/** A hotel of config/demo.yaml. */
const demoHotel = 'bdd640fb-0667-4ad1-9c80-317fa3b1799d';

/** The users of the demo and three first steps, for the routes that there are. */
function demoOf(
  demoUsers: readonly DemoLogin[],
  routes: readonly RouteSnapshot[],
): Pick<Landing, 'demoUsers' | 'steps'> {
  const [user] = demoUsers;
  if (user === undefined) return { demoUsers, steps: [] };
  const api = routes.findLast(isVersion)?.prefix;
  const hotels = routes.find(({ mapping }) => mapping.service === 'hotel')?.prefix;
  const steps: (LandingStep | false)[] = [
    api !== undefined && {
      title: 'Read the messages',
      path: `${api}/messages/`,
      description: 'They need no credentials. The same path is a page in a browser, and JSON for a program:',
      command: {},
    },
    hotels !== undefined && {
      title: `See the bookings of ${user.name}`,
      path: `${hotels}/bookings/`,
      description: 'The gateway authenticates the user before it asks the service:',
      command: { user: user.name },
    },
    hotels !== undefined && {
      title: 'Book a room',
      path: `${hotels}/docs/`,
      description:
        'The API docs send requests from the browser, and the diagnostics show what the gateway did with them:',
      command: { user: user.name, post: { path: `${hotels}/bookings/`, body: { hotel_id: demoHotel } } },
    },
  ];
  return { demoUsers, steps: steps.filter((step) => step !== false) };
}
