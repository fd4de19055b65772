/** The authentication stage: calls the auth service of a mapping, then continues or rejects the request. */
import type { Context } from 'koa';
import type { AuthCheck, AuthDecision, AuthRehearsal, TokenCheck } from '#auth';
import type { AuthService, Mapping, RequiredClaim } from '#config';
import { equalPart, type OutageLog } from '#foundation';
import {
  decodeHeader,
  grpcKindOf,
  keyNameHeader,
  type Problem,
  type ProblemSlug,
  problem,
  problems,
  removeHeaders,
  requestContext,
  requestLogFields,
} from '#http';
import { type Cluster, clientIsGone } from '#proxy';
import type { RequestAttributes } from '#routing';
import type { RemoteTarget, Resolve } from '../resolve-service.ts';
import type { Step } from '../stage-result.ts';
import { createAuthBodyReader, heldBytesMax, type ReadAuthBody } from './body.ts';
import { type Answer, type AuthClient, createPortRequest, headerPairs, type RequestEdits } from './check-request.ts';
import { createAuthOverGrpc } from './over-grpc.ts';
import { createAuthOverHttp } from './over-http.ts';
import { holdsClaims } from './required-claims.ts';

/** An AuthService record, and the service itself if it runs in this process. */
export interface ConfiguredAuthService {
  readonly record: AuthService;
  /** Undefined when the service runs elsewhere. */
  readonly port?: AuthCheck | undefined;
  /** What it would decide about a request that is explained. Undefined when it runs elsewhere. */
  readonly rehearse?: AuthRehearsal | undefined;
  /** Decides about requests with a token, wherever the service runs. Undefined when it accepts none. */
  readonly tokens?: TokenCheck | undefined;
}

/** Counts decisions by outcome since the start. `error` counts calls without a decision. */
export interface AuthCounts {
  allowed: number;
  denied: number;
  error: number;
}

export interface AuthStage {
  readonly record: AuthService;
  readonly authenticate: Authenticate;
  readonly preview: AuthClient['preview'];
  /** Undefined when every user may pass. */
  readonly refusalOf: Requirement | undefined;
}

/** Done when the response of the auth service is sent to the client. Throws a Problem for a denial without a body. */
type Authenticate = (ctx: Context, attributes: RequestAttributes) => Step | Promise<Step>;

export interface AuthStages {
  /** Whether there is an auth service for mappings that do not name one. */
  readonly hasDefault: boolean;
  /**
   * Returns undefined when the mapping is open. `forAdmins` rejects other users, and rejects everyone when the auth
   * service fails, even with `failure_mode_allow`. Throws TypeError when a mapping needs an auth service and there is
   * none.
   */
  readonly of: (
    mapping: Pick<Mapping, 'name' | 'bypassAuth' | 'authService' | 'authContextExtensions' | 'requireClaims'>,
    options?: { readonly forAdmins: boolean },
  ) => AuthStage | undefined;
}

export interface AuthStagesParts {
  readonly resolve: Resolve;
  readonly acquireCluster: (record: AuthService, target: RemoteTarget) => Cluster;
  readonly acquireOutageLog: (record: AuthService) => OutageLog;
  /** Counters to increment, for all auth services together. */
  readonly counts: AuthCounts;
  /** The headers that clients must not send, in lower case. */
  readonly identityHeaders: readonly string[];
  /** The names of administrators. */
  readonly adminUsers: readonly string[];
  /** The number of threads with such stages. @default 1 */
  readonly threads?: number;
  /** Called for each request for which an auth service returned no decision. */
  readonly onError: () => void;
}

/** Throws TypeError for services with the same name, or for a service that cannot be called. */
export function createAuthStages(services: readonly ConfiguredAuthService[], parts: AuthStagesParts): AuthStages {
  const stages = new Map(services.map((service) => [service.record.name, createStagesOf(service, parts)]));
  if (stages.size < services.length) throw new TypeError('two auth services have the same name');
  const defaults = services.filter(({ record }) => record.isDefault);
  if (defaults.length > 1)
    throw new TypeError(`${defaults.length} of ${services.length} auth services are the default: only one may be`);
  return Object.freeze({
    hasDefault: defaults.length === 1,
    of(mapping: Parameters<AuthStages['of']>[0], options) {
      const { name, bypassAuth, authService = defaults[0]?.record.name } = mapping;
      if (bypassAuth || (authService === undefined && services.length === 0)) return undefined;
      if (authService === undefined)
        throw new TypeError(
          `Mapping ${name} does not name an auth service, and none of the ${services.length} is the default`,
        );
      const pair = stages.get(authService);
      if (pair === undefined) throw new TypeError(`Mapping ${name}: there is no auth service "${authService}"`);
      if (options?.forAdmins) return pair.forAdmins;
      return pair.of(mapping);
    },
  } satisfies AuthStages);
}

/** With a requirement, the stage rejects everyone while the auth service fails, even with `failure_mode_allow`. */
function createStagesOf({ record, port, tokens }: ConfiguredAuthService, parts: AuthStagesParts) {
  const service = port === undefined ? createRemoteClient(record, parts) : createPortClient(port, record);
  const plain = withTokens(service, tokens);
  const outage = parts.acquireOutageLog(record);
  const { threads = 1 } = parts;
  const readBody = record.includeBody && createAuthBodyReader(record.includeBody, equalPart(heldBytesMax, threads));
  const stageOf = (stageRecord: AuthService, { ask, preview }: AuthClient, refusalOf?: Requirement): AuthStage =>
    Object.freeze({
      record: stageRecord,
      authenticate: createAuthenticate(stageRecord, ask, { ...parts, outage, readBody }, refusalOf),
      preview,
      refusalOf,
    });
  const closed = { ...record, failureModeAllow: false };
  const asConfigured = stageOf(record, plain);
  return {
    forAdmins: stageOf(closed, plain, createRequireAdmin(parts.adminUsers)),
    of({ requireClaims, authContextExtensions: context }: Pick<Mapping, 'requireClaims' | 'authContextExtensions'>) {
      const own = context.length === 0 ? undefined : service.withContext?.(context);
      const client = own === undefined ? plain : withTokens(own, tokens);
      if (requireClaims.length > 0) return stageOf(closed, client, createRequireClaims(requireClaims, tokens));
      return client === plain ? asConfigured : stageOf(record, client);
    },
  };
}

/** The token of a request decides, and the auth service is asked about a request without one. */
function withTokens(client: AuthClient, tokens: TokenCheck | undefined): AuthClient {
  if (tokens === undefined) return client;
  return {
    ...client,
    ask(ctx, attributes, body) {
      const { headers, url = '/' } = ctx.req;
      return tokens.check({ headers, url }) ?? client.ask(ctx, attributes, body);
    },
  };
}

type Allowed = Extract<AuthDecision, { outcome: 'allow' }>;

/** Returns a Problem for a user who is authenticated, but may not pass. */
type Requirement = (ctx: Context, decision: Allowed) => Problem | undefined;

function createRequireClaims(required: readonly RequiredClaim[], tokens: TokenCheck | undefined): Requirement {
  return function requireClaims(_ctx, { claimOf }) {
    if (holdsClaims(required, claimOf)) return undefined;
    return problem('insufficient-claims', {
      headers: tokens === undefined ? {} : { 'WWW-Authenticate': tokens.insufficientScope },
    });
  };
}

function createRequireAdmin(adminUsers: readonly string[]): Requirement {
  const names = new Set(adminUsers);
  return function requireAdmin(ctx, { isAdmin }) {
    return isAdmin === true || names.has(requestContext(ctx).user ?? '') ? undefined : problem('admins-only');
  };
}

function createRemoteClient(record: AuthService, parts: AuthStagesParts): AuthClient {
  const { resolve, acquireCluster, identityHeaders } = parts;
  const target = resolve(record.authService);
  if (target.kind === 'local')
    throw new TypeError(
      `the auth service "${target.name}" runs in this process, but \`authChecks\` has no check for its record "${record.name}"`,
    );
  const remote = { record, cluster: acquireCluster(record, target), path: target.path };
  return record.proto === 'grpc' ? createAuthOverGrpc({ ...remote, identityHeaders }) : createAuthOverHttp(remote);
}

function createPortClient(port: AuthCheck, record: AuthService): AuthClient {
  const requestOf = createPortRequest(record);
  return {
    ask: (ctx) => port(requestOf(ctx)),
    preview(ctx) {
      const { method, url, headers } = requestOf(ctx);
      return { method, path: url, headers: headerPairs(headers) };
    },
  };
}

interface AuthenticateParts extends Pick<AuthStagesParts, 'counts' | 'onError'> {
  readonly outage: OutageLog;
  /** Undefined when the auth service does not receive bodies. */
  readonly readBody: ReadAuthBody | undefined;
}

function createAuthenticate(
  record: AuthService,
  ask: AuthClient['ask'],
  { counts, onError, outage, readBody }: AuthenticateParts,
  refusalOf?: Requirement,
): Authenticate {
  function settle(ctx: Context, decision: Answer): Step {
    if (decision.outcome === 'error') return settleError(ctx, decision);
    outage.answered();
    if (decision.outcome === 'deny') {
      counts.denied += 1;
      deny(ctx, decision);
      return 'done';
    }
    applyAllowed(ctx, decision, record);
    const refusal = refusalOf?.(ctx, decision);
    counts[refusal === undefined ? 'allowed' : 'denied'] += 1;
    if (refusal !== undefined) throw refusal;
    return 'continue';
  }

  /**
   * Stops when the client has disconnected. Otherwise, with `failure_mode_allow`, disconnecting would bypass the check.
   */
  const settleLater = (ctx: Context, decision: Answer) => (clientIsGone(ctx) ? 'done' : settle(ctx, decision));

  function settleError(ctx: Context, { reason, isProvoked }: Extract<AuthDecision, { outcome: 'error' }>): Step {
    counts.error += 1;
    onError();
    const { mapping } = requestContext(ctx);
    const { name, authService: service } = record;
    const allowed = record.failureModeAllow && isProvoked !== true;
    const fields = { mapping, record: name, service, allowed, reason };
    outage.failed({ ...requestLogFields(ctx), ...fields }, 'the auth service returned no decision');
    if (allowed) return 'continue';
    throw problem('auth-unavailable', { status: record.statusOnError, cause: reason });
  }

  function authenticate(ctx: Context, attributes: RequestAttributes): Step | Promise<Step> {
    const decision = ask(ctx, attributes, undefined);
    return decision instanceof Promise ? decision.then((settled) => settleLater(ctx, settled)) : settle(ctx, decision);
  }

  if (readBody === undefined) return authenticate;
  return async function authenticateWithBody(ctx, attributes) {
    const body = await readBody(ctx);
    return body === undefined ? 'done' : settleLater(ctx, await ask(ctx, attributes, body));
  };
}

/** Sets the identity headers from the auth service's response. The first one names the user in the log. */
export function setIdentity(ctx: Context, names: readonly string[], values: Readonly<Record<string, string>>): void {
  const { headers } = ctx.req;
  for (const name of names) {
    const value = values[name];
    if (value !== undefined) headers[name] = value;
  }
  const [userHeader] = names;
  const user = userHeader === undefined ? undefined : headers[userHeader];
  const context = requestContext(ctx);
  context.user = typeof user === 'string' ? decodeHeader(user) : undefined;
  context.apiKey = names.includes(keyNameHeader) ? values[keyNameHeader] : undefined;
}

function applyAllowed(
  ctx: Context,
  { headers, clientHeaders = {}, edits }: Extract<Answer, { outcome: 'allow' }>,
  { allowedAuthorizationHeaders, allowedClientHeadersOnSuccess }: AuthService,
): void {
  if (edits !== undefined) editRequest(ctx, edits);
  setIdentity(ctx, allowedAuthorizationHeaders, headers);
  setClientHeaders(ctx, edits ? Object.keys(clientHeaders) : allowedClientHeadersOnSuccess, clientHeaders);
}

function editRequest({ req }: Context, { remove, set }: RequestEdits): void {
  removeHeaders(req, remove);
  for (const { name, value, action } of set) {
    const present = req.headers[name];
    if (action === (present === undefined ? 'set-if-present' : 'set-if-absent')) continue;
    removeHeaders(req, new Set([name]));
    req.headers[name] =
      action === 'append' && present !== undefined ? `${[present].flat().join(', ')}, ${value}` : value;
  }
}

/** Sets headers on the response, which the service then neither replaces nor repeats, except for cookies. */
function setClientHeaders(
  { res }: Context,
  names: readonly string[],
  values: Readonly<Record<string, string | readonly string[]>>,
): void {
  for (const name of names) {
    const value = values[name];
    if (value === undefined) continue;
    if (name === 'set-cookie') res.appendHeader(name, value);
    else res.setHeader(name, value);
  }
}

type Denial = Extract<AuthDecision, { outcome: 'deny' }>;

/**
 * Sends a denial that has a body unchanged. A denial without a body becomes a Problem with its status, and so does every
 * denial of a gRPC call, whose client could not read the body.
 */
function deny(ctx: Context, decision: Denial): void {
  const { status, headers, body } = decision;
  if (body === undefined || grpcKindOf(ctx.req) !== undefined) throw denialOf(decision);
  // Bypasses Koa, which rejects a repeated `Content-Type`, as the auth service may have sent it.
  for (const [name, value] of Object.entries(headers)) ctx.res.setHeader(name, value);
  ctx.set('Cache-Control', 'no-store');
  ctx.status = status;
  ctx.body = Buffer.from(body);
  if (headers['Content-Type'] === undefined) ctx.remove('Content-Type');
}

/** Returns the Problem of a denial without a body. */
export function denialOf({ status, headers, slug }: Omit<Denial, 'body'>): Problem {
  const known = slug ?? slugOfStatus[status] ?? 'access-denied';
  const why = known === 'login-throttled' ? { detail: problems[known].meaning } : {};
  return problem(known, { status, headers, ...why });
}

const slugOfStatus: Readonly<Record<number, ProblemSlug>> = {
  401: 'unauthorized',
  403: 'access-denied',
  429: 'too-many-requests',
  503: 'auth-unavailable',
};
