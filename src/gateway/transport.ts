/** Transports, which deliver requests: to an app in this process, to a service over HTTP, or as a redirect. */
import type { Context } from 'koa';
import {
  type AuthService,
  type Mapping,
  mappingDefaults,
  type Redirect,
  type UpstreamFile,
  type UpstreamTls,
} from '#config';
import type { Logger } from '#foundation';
import { hasBody, type Problem, pathOf, problem, publicBase, requestContext, searchOf } from '#http';
import {
  type Cluster,
  type ClusterSpec,
  type CopyRequest,
  createForward,
  createHeaderRules,
  createRequestHead,
  createShadow,
  type HeaderEdits,
  hostOfOrigin,
  type Identity,
  type UpstreamCounts,
} from '#proxy';
import { createRedirection, createRewrite, keepsPath, type PathRule, rewritePrefixes } from '#routing';
import { headerPairs } from './auth/check-request.ts';
import { authorityOf, describeTarget, type RemoteTarget, type Resolve } from './resolve-service.ts';

export type Handler = (ctx: Context) => Promise<void>;

/** Delivers the requests of one mapping. The rest of the gateway does not depend on the kind of transport. */
export interface Transport {
  /** Sets the response on `ctx`, or throws a Problem. */
  readonly forward: Handler;
  /** Returns the request that the service would receive. Pure. Throws a Problem if the request cannot be forwarded. */
  readonly preview: (ctx: Context) => ServiceRequest;
  /** Describes the target for humans: `in this process`, `http://10.0.0.1:9001`, `redirect (308)`. */
  readonly describe: () => string;
  /** Returns the `Location` of a redirect. Throws a Problem like `preview`. Undefined for other transports. */
  readonly location: ((ctx: Context) => string) | undefined;
  /** `origins`, `cluster` and `timeouts` are undefined except for a service over HTTP. */
  readonly origins: (() => readonly string[]) | undefined;
  readonly cluster: Cluster | undefined;
  readonly timeouts: Timeouts | undefined;
  /** Sends a copy of a request. Undefined unless the mapping is a shadow. */
  readonly shadow: CopyRequest | undefined;
}

export interface ServiceRequest {
  /** Includes the query. */
  readonly path: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

/** In milliseconds; 0 means no limit. */
export interface Timeouts {
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

export interface TransportParts extends Timeouts {
  readonly resolve: Resolve;
  /** Returns the isolated app of a service in this process. Throws TypeError if there is none. */
  readonly appOf: (name: string) => Handler;
  readonly acquireCluster: (spec: ClusterSpec) => Cluster;
  readonly tlsOf: ReturnType<typeof createTlsOf>;
  /** Returns the mapping that handles the same request with another method, if any. */
  readonly mappingOf: (ctx: Context, method: string) => unknown;
  readonly identity: Identity;
  /** The largest request body for a service over HTTP, if the mapping does not set it. Undefined for no limit. */
  readonly bodyBytesMax: number | undefined;
  readonly logger: Logger;
}

/** What a transport takes from its route. */
interface OfRoute {
  /** Counts calls over HTTP. */
  readonly counts: UpstreamCounts;
  /** The mapping's edits of response headers, for a 101, which only the transport can edit. */
  readonly editResponse: HeaderEdits['editResponse'] | undefined;
}

/** Throws TypeError for a service that does not exist. */
export function createTransport(mapping: Mapping, ofRoute: OfRoute, parts: TransportParts): Transport {
  if (mapping.refusal !== undefined) return refused(mapping.refusal);
  if (mapping.gatewayRoute?.fault !== undefined) return withoutBackend(mapping, mapping.gatewayRoute.fault);
  if (mapping.redirect !== undefined) return createRedirect(mapping, mapping.redirect, parts);
  const target = parts.resolve(mapping.service);
  if (target.kind === 'remote') return overHttp(mapping, target, ofRoute, parts);
  if (mapping.shadow)
    throw new TypeError(
      `Mapping ${mapping.name} is a shadow, so it needs a service over HTTP, but "${target.name}" runs in this process`,
    );
  if (mapping.grpc)
    throw new TypeError(
      `Mapping ${mapping.name} has grpc: true, so it needs a service over HTTP/2, but "${target.name}" runs in this process: ` +
        'remove it, or name a service by its address',
    );
  return inProcess(mapping, parts.appOf(target.name));
}

type LocalRule = PathRule & Pick<Mapping, 'requestHeaders'>;

/**
 * `app` must be isolated: it responds to every request, and what it throws is rendered by middleware before the
 * gateway.
 */
export function inProcess(rule: LocalRule, app: Handler): Transport {
  const rewrite = createRewrite(rule);
  const edits = createHeaderRules(rule.requestHeaders);
  const forward = rewritten(rule, app);
  return {
    ...local,
    forward: edits === undefined ? forward : edited(edits.editRequest, forward),
    preview(ctx) {
      const path = rewrite(pathOf(ctx.url));
      if (path === undefined) throw problem('bad-path');
      const headers = headerPairs(ctx.req.headers);
      return { path: path + searchOf(ctx.url), headers: edits?.editList(headers, ctx) ?? headers };
    },
    describe: () => describeTarget({ kind: 'local', name: '' }),
  };
}

/** The fields of a transport that involves no other server. */
const local = {
  location: undefined,
  origins: undefined,
  cluster: undefined,
  timeouts: undefined,
  shadow: undefined,
} as const;

/** Runs the app on the same context with the rewritten path, and restores the path afterwards. */
function rewritten(rule: PathRule, app: Handler): Handler {
  if (keepsPath(rule)) return app;
  const rewrite = createRewrite(rule);
  const { removedPrefix } = rewritePrefixes(rule);
  return async function forwardInProcess(ctx) {
    const { req } = ctx;
    const context = requestContext(ctx);
    const { basePath } = context;
    // Avoids Koa's `path` and `search`, which would parse the whole URL again, and once more after the change.
    const { url = '/' } = req;
    const path = pathOf(url);
    const inner = rewrite(path);
    if (inner === undefined) throw problem('bad-path', { detail: 'The path is ambiguous after the rewrite.' });
    // Cuts the prefix from the path itself, so that links keep the client's spelling of a prefix that ignores case.
    context.basePath = basePath + path.slice(0, removedPrefix.length);
    req.url = inner + searchOf(url);
    try {
      await app(ctx);
    } finally {
      req.url = url;
      context.basePath = basePath;
    }
  };
}

function edited(editRequest: HeaderEdits['editRequest'], forward: Handler): Handler {
  return function forwardEdited(ctx) {
    editRequest(ctx);
    return forward(ctx);
  };
}

function overHttp(mapping: Mapping, target: RemoteTarget, ofRoute: OfRoute, parts: TransportParts): Transport {
  const { identity, logger, acquireCluster } = parts;
  const bodyBytesMax = mapping.maxRequestBytes ?? parts.bodyBytesMax;
  const { path } = target;
  const timeouts = {
    timeoutMs: mapping.timeoutMs ?? parts.timeoutMs,
    connectTimeoutMs: mapping.connectTimeoutMs ?? parts.connectTimeoutMs,
    idleTimeoutMs: mapping.idleTimeoutMs ?? parts.idleTimeoutMs,
  };
  const { timeoutMs, idleTimeoutMs } = timeouts;
  const isUntrusted = mapping.isUntrusted && !target.isConfigured;
  const rules = { ...mapping, isUntrusted, http2: usesHttp2(mapping) };
  const spec = clusterSpec(mapping.service, target, timeouts.connectTimeoutMs, rules, parts.tlsOf(mapping.tls));
  const cluster = acquireCluster(spec);
  const { origins } = target;
  const headOf = createRequestHead({ mapping, path, origins, identity });
  const calls = { mapping, cluster, headOf, logger, timeoutMs };
  return {
    forward: createForward({ ...calls, ...ofRoute, path, idleTimeoutMs, bodyBytesMax }),
    preview(ctx) {
      const { path, headers, host = hostOfOrigin(origins()[0] ?? `//${authorityOf(mapping.service)}`) } = headOf(ctx);
      hasBody(ctx.req, bodyBytesMax ?? Number.POSITIVE_INFINITY);
      return { path, headers: ['host', host, ...headers] };
    },
    describe: () => describeTarget(target) + (mapping.grpc ? ' (gRPC)' : ''),
    location: undefined,
    origins,
    cluster,
    timeouts,
    shadow: mapping.shadow ? createShadow(calls) : undefined,
  };
}

type ClusterRules = Omit<
  ClusterSpec,
  'service' | 'origins' | 'whyEmpty' | 'haveStrangersChosen' | 'serverName' | 'connectTimeoutMs' | 'tls'
>;

/** The `tls` of a record, with the contents of its files. */
export interface ServiceTls {
  readonly serverName: string | undefined;
  readonly files: ClusterSpec['tls'];
}

/** Returns a function that adds the contents of the files to the `tls` of a record. */
export function createTlsOf(files: readonly UpstreamFile[]): (tls: UpstreamTls | undefined) => ServiceTls | undefined {
  const texts = new Map(files.map(({ name, text }) => [name, text]));
  const textOf = (name: string | undefined) => (name === undefined ? undefined : texts.get(name));
  return (tls) => {
    if (tls === undefined) return undefined;
    const { ca, clientCert, clientKey, serverName } = tls;
    return { serverName, files: { ca: textOf(ca), cert: textOf(clientCert), key: textOf(clientKey) } };
  };
}

/** Describes the cluster for a service, following the rules of its mapping. */
export function clusterSpec(
  service: string,
  { origins, whyEmpty, haveStrangersChosen, serverName }: RemoteTarget,
  connectTimeoutMs: number,
  rules: ClusterRules,
  tls?: ServiceTls,
): ClusterSpec {
  const { circuitBreakers, healthCheck, outlierDetection, loadBalancer } = rules;
  const { idleConnectionMs, connectionLifetimeMs, http2, isUntrusted } = rules;
  return {
    service,
    origins,
    whyEmpty,
    isUntrusted,
    haveStrangersChosen,
    serverName: tls?.serverName ?? serverName,
    tls: tls?.files,
    connectTimeoutMs,
    idleConnectionMs,
    connectionLifetimeMs,
    http2,
    circuitBreakers,
    healthCheck,
    outlierDetection,
    loadBalancer,
  };
}

/** gRPC needs HTTP/2. */
export function usesHttp2({ http2, grpc }: Pick<Mapping, 'http2' | 'grpc'>): boolean {
  return http2 || grpc;
}

/** An address that does not accept connections must leave time for another one. */
export function authClusterSpec(
  { authService, timeoutMs, tls, http2, proto }: AuthService,
  target: RemoteTarget,
  { connectTimeoutMs, tlsOf }: Pick<TransportParts, 'connectTimeoutMs' | 'tlsOf'>,
): ClusterSpec {
  const rules = { ...mappingDefaults, http2: http2 || proto === 'grpc' };
  return clusterSpec(authService, target, Math.min(connectTimeoutMs, timeoutMs), rules, tlsOf(tls));
}

/** Answers 503 in place of a mapping whose record is not valid: another mapping could let through what it guards. */
function refused(reason: string): Transport {
  return rejecting('refused (503)', () => problem('not-configured', { cause: new Error(reason) }));
}

/** Answers 500, as the Gateway API wants it. A gRPC call gets UNAVAILABLE, which is that of 503. */
function withoutBackend({ grpc }: Mapping, fault: string): Transport {
  const options = { cause: new Error(fault), ...(grpc && { status: 503 }) };
  return rejecting(`no backend (${grpc ? 503 : 500})`, () => problem('no-backend', options));
}

function rejecting(description: string, createProblem: () => Problem): Transport {
  function reject(): never {
    throw createProblem();
  }
  return { ...local, forward: async () => reject(), preview: reject, describe: () => description };
}

/** The gateway itself sends redirects, without authentication or rate limits. */
function createRedirect(
  mapping: Mapping,
  redirect: Redirect,
  { mappingOf }: Pick<TransportParts, 'mappingOf'>,
): Transport {
  const { status } = redirect;
  const redirection = createRedirection(redirect, mapping);
  const kept = { scheme: undefined, host: undefined, port: undefined, path: undefined };
  const sameUrl = createRedirection({ ...kept, status }, mapping);
  // One of the Gateway API has to redirect in any case.
  const mayRepeat = mapping.gatewayRoute !== undefined;

  /** A client follows a 303 with GET (RFC 9110 section 15.4.4), which another mapping may handle. */
  function isRepeated(ctx: Context): boolean {
    return status !== 303 || ctx.method === 'GET' || ctx.method === 'HEAD' || mappingOf(ctx, 'GET') === mapping;
  }

  function location(ctx: Context): string {
    const attributes = { path: pathOf(ctx.url), search: searchOf(ctx.url) };
    const origin = publicBase(ctx);
    const found = redirection(attributes, origin);
    if (found === undefined) throw problem('bad-path', { detail: 'The path is ambiguous after the redirect.' });
    // For example because a `regex_redirect` does not match the path. The client would repeat the request endlessly.
    if (!mayRepeat && found === sameUrl(attributes, origin) && isRepeated(ctx))
      throw problem('not-found', { detail: 'The redirect for this path leads back to the same URL.' });
    return found;
  }
  return {
    ...local,
    async forward(ctx) {
      ctx.set('Location', location(ctx));
      ctx.body = null;
      ctx.status = status;
    },
    preview: (ctx) => ({ path: ctx.url, headers: headerPairs(ctx.req.headers) }),
    describe: () => `redirect (${status})`,
    location,
  };
}
