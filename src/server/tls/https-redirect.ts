/** Redirects requests at HTTP_REDIRECT_PORT to HTTPS, but only to hosts that this server is known to serve. */
import type { Context, Middleware, Next } from 'koa';
import { allCertificates, type Mapping, type Tls } from '#config';
import { createOncePerMinute } from '#foundation';
import { namesFor, pathOf, problem, requestContext, searchOf } from '#http';
import type { Setup } from '../options.ts';
import type { LiveConfiguration } from '../reload.ts';
import type { CurrentTls } from './certificates.ts';

export interface HttpsRedirectParts {
  readonly configuration: Pick<LiveConfiguration, 'current'>;
  readonly tls: CurrentTls;
  /** The `host:port` of each open listener. */
  readonly listenerAddresses: ReadonlyMap<string, string>;
}

/** Where an authority looks for the answer to its challenge (RFC 8555 section 8.3), over HTTP. */
const challengePath = '/.well-known/acme-challenge/';

/**
 * Passes on two kinds of requests: those of authorities, which look for the answers to their challenges over HTTP, and
 * those that reached a trusted proxy over HTTPS, for which a redirect would lead here again. Undefined without this port.
 */
export function createHttpsRedirect(setup: Setup, parts: HttpsRedirectParts): Middleware | undefined {
  const { settings, logger } = setup;
  if (settings.httpRedirectPort === undefined) return undefined;
  const isKnown = createIsKnown(parts);
  const mayWarn = createOncePerMinute();
  const requiresCertificate = settings.tlsClientCa !== undefined && settings.tlsClientAuth !== 'request';

  /** Without this, a proxy that is not trusted, and calls this port for requests over HTTPS, would cause a loop. */
  function rejectUntrusted(): never {
    const remedy = 'set TRUSTED_PROXIES to its address, or let it call PORT';
    if (mayWarn()) logger.warn({}, `a proxy that is not trusted says that requests come over HTTPS: ${remedy}`);
    throw problem('bad-request', { detail: 'The request came over HTTPS, so a redirect to HTTPS would not end.' });
  }

  function redirect(ctx: Context): void {
    const host = requestContext(ctx).addresses.host(ctx.req);
    if (!isKnown(host)) throw problem('not-found', { detail: 'This port does not redirect to this host.' });
    const port = settings.httpRedirectTo ?? portOf(parts.listenerAddresses.get('gateway'));
    const { url, method } = ctx;
    ctx.set('Location', `https://${host}${port === 443 ? '' : `:${port}`}${pathOf(url)}${searchOf(url)}`);
    ctx.body = null;
    // A client may repeat any other method as GET after a 301 (RFC 9110 section 15.4.2).
    ctx.status = method === 'GET' || method === 'HEAD' ? 301 : 308;
  }

  return async function redirectToHttps(ctx: Context, next: Next): Promise<void> {
    const { addresses } = requestContext(ctx);
    if (pathOf(ctx.url).startsWith(challengePath)) return next();
    if (addresses.scheme(ctx.req) === 'https') {
      if (!requiresCertificate) return next();
      throw problem('not-found', {
        detail: 'This port serves no requests, because it asks for no client certificate.',
      });
    }
    return claimsHttps(ctx) ? rejectUntrusted() : redirect(ctx);
  };
}

function portOf(address = ''): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}

/** Whether a proxy says that its client uses HTTPS, which counts for the loop alone if the proxy is not trusted. */
function claimsHttps({ req: { headers } }: Context): boolean {
  return /\b(?:https|wss)\b/i.test(`${headers['x-forwarded-proto'] ?? ''}`);
}

/** Returns a function that says whether a certificate is for the host, or a Mapping. */
function createIsKnown({ configuration, tls }: HttpsRedirectParts): (host: string) => boolean {
  let hosts: ReadonlySet<string> = new Set();
  let mappings: readonly Mapping[] | undefined;
  let certificates: Tls | undefined;
  return function isKnown(host) {
    const current = configuration.current().configuration.mappings;
    if (mappings !== current || certificates !== tls.current) {
      [mappings, certificates] = [current, tls.current];
      hosts = knownHosts(mappings, certificates);
    }
    return namesFor(host).some((name) => hosts.has(name));
  };
}

/**
 * The hosts as they are, `*.shop.example` for a certificate, which is valid for one label, and `**.shop.example` for a
 * Mapping, which is for several. Others, such as `shop.*` or a regex, could match the hosts of strangers.
 */
function knownHosts(mappings: readonly Mapping[], tls: Tls | undefined): ReadonlySet<string> {
  const hosts = new Set(tls === undefined ? [] : allCertificates(tls).flatMap((one) => one.hosts));
  for (const { host } of mappings) {
    if (host?.kind === 'exact') hosts.add(host.value);
    if (host?.kind === 'suffix' && host.value.startsWith('.')) hosts.add(`**${host.value}`);
  }
  return hosts;
}
