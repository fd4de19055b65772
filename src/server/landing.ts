/** The landing page: when no mapping matches `/`, browsers get a list of the routes that the user may see. */
import type { Context, Middleware, Next } from 'koa';
import { type LandingRoute, landingPage } from '#diag';
import { attributesOf, type RouteSnapshot } from '#gateway';
import { createRepresentations, Problem, pageHeaders, requestContext } from '#http';
import { travelModules } from '#travel';
import type { CurrentGateway } from './current-gateway.ts';
import type { Setup } from './options.ts';

const representations = createRepresentations();

export function createLanding({ has }: Pick<Setup, 'has'>, gateway: Pick<CurrentGateway, 'snapshot'>): Middleware {
  const apis: ReadonlySet<string> = new Set(travelModules.filter(has));

  async function sendPage(ctx: Context): Promise<void> {
    const routes = gateway.snapshot().routes.filter(isShown);
    const stage = routes.find(({ auth }) => auth?.record.isDefault)?.auth;
    const signsIn = ctx.req.headers.authorization !== undefined || ctx.search === '?sign-in';
    if (signsIn && stage && (await stage.authenticate(ctx, attributesOf(ctx))) !== 'continue') return;
    // With failure_mode_allow, a request may pass although the auth service did not respond.
    const isKnown = signsIn && (requestContext(ctx).user !== undefined || stage?.record.failureModeAllow === false);
    const visible = routes.filter(({ auth }) => auth === undefined || (isKnown && auth.record === stage?.record));
    const byPrefix = new Map(visible.map((route) => [route.prefix, rowOf(route, apis)]));
    const hasDiagnostics = gateway.snapshot().routes.some(({ name, internal }) => internal && name === 'diagnostics');
    ctx.vary('Accept');
    ctx.vary('Authorization');
    ctx.set({ ...pageHeaders(), 'Cache-Control': 'private, no-store', 'Content-Type': 'text/html; charset=utf-8' });
    ctx.body = landingPage({
      routes: [...byPrefix.values()],
      canSignIn: stage !== undefined && !isKnown,
      hasDiagnostics,
    });
  }

  async function sendPageIfUnrouted(ctx: Context, next: Next): Promise<void> {
    try {
      await next();
    } catch (thrown) {
      const isUnrouted = requestContext(ctx).mapping === undefined;
      if (!isUnrouted || !(thrown instanceof Problem) || thrown.slug !== 'not-found') throw thrown;
      await sendPage(ctx);
    }
  }

  // Every request passes through here. Those that are not for the page avoid the cost of another promise.
  return (ctx, next) => (isForBrowser(ctx) ? sendPageIfUnrouted(ctx, next) : next());
}

function isForBrowser({ req }: Context): boolean {
  const { method, url = '/' } = req;
  if ((url !== '/' && !url.startsWith('/?')) || (method !== 'GET' && method !== 'HEAD')) return false;
  return representations.chooseForError(req.headers.accept).type === 'text/html';
}

/** Hides the server's own pages, which are listed separately. */
function isShown({ internal, prefix, mapping }: RouteSnapshot): boolean {
  return !mapping.shadow && !(internal === true && prefix.startsWith('/gateway/'));
}

/** Only the demo's services and the versions of its API have documentation. */
function rowOf({ prefix, internal, mapping, auth }: RouteSnapshot, apis: ReadonlySet<string>): LandingRoute {
  const { method, prefixMatch, service } = mapping;
  const isVersion = internal === true && service.startsWith('api-');
  return {
    prefix,
    isLink: prefixMatch !== 'regex' && method === undefined,
    hasDocs: isVersion || apis.has(service),
    needsCredentials: auth !== undefined,
  };
}
