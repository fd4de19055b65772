/** The headers with which a client could pass for another client, host, path or method. */
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';

/**
 * Headers that some servers and frameworks trust more than the request line, `Host` and the connection, and that proxies
 * in front set: request-ip (npm), Tornado, Chi (Go) and Java's servers read the addresses, Express, Rails, Symfony,
 * Laravel and ASP.NET the methods, Drupal and Django's packages the hosts. RFC 9440 defines those of client certificates.
 */
const setByProxies: ReadonlySet<string> = new Set([
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
  'client-cert',
  'client-cert-chain',
  'client-ip',
  'fastly-client-ip',
  'forwarded-for',
  'http-client-ip',
  'http-x-forwarded-for',
  'proxy-client-ip',
  'true-client-ip',
  'wl-proxy-client-ip',
  'x-appengine-user-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-forwarded',
  'x-host',
  'x-http-host-override',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-forwarded-for',
  'x-original-host',
  'x-originating-ip',
  'x-remote-addr',
  'x-remote-ip',
]);

/**
 * Headers that not even trusted proxies pass on, because many of them forward what a client sends. CGI turns `proxy` into
 * the variable `HTTP_PROXY` (CVE-2016-5385), Apache treats `new-uri` as `Destination`, and IIS and Symfony prefer
 * `x-original-url` and `x-rewrite-url` to the path.
 */
const setByNoProxy: ReadonlySet<string> = new Set([
  'new-uri',
  'proxy',
  'x-original-url',
  'x-real-ip',
  'x-rewrite-url',
  'x-scheme',
]);

/** True for the name of such a header, in lower case and with dashes. Those of a trusted proxy are believed. */
export function isDisguise(name: string, isFromTrustedProxy: boolean): boolean {
  if (setByNoProxy.has(name)) return true;
  return !isFromTrustedProxy && (setByProxies.has(name) || name.startsWith('x-envoy-'));
}

/** Rejects a header that is forwarded anyway, which may be mistyped, and one that the gateway sets itself. */
export function keptHeaderFault(name: string): Fault | undefined {
  if (isDisguise(name, false)) return undefined;
  return {
    message: `${quote(name)} is not a header that this field can keep`,
    remedy: 'Remove it: most headers are forwarded anyway, and the gateway sets X-Forwarded-* itself.',
  };
}
