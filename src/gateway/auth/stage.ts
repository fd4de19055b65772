/** Which auth service a mapping asks, and what its decision means: go on, refuse, or 503. */
import type { Context } from 'koa';
import type { AuthCheck, AuthDecision } from '#auth';
import type { AuthService, Mapping } from '#config';
import { type OutageLog, type ProblemSlug, problem, requestContext, requestLogFields } from '#http';
import { type Cluster, clientIsGone } from '#proxy';
import type { RequestAttributes } from '#routing';
import { createIdentity, type Identity } from '../identity.ts';
import type { RemoteTarget, Resolve } from '../target.ts';
import { readAuthBody } from './body.ts';
import { type AuthClient, createPortRequest, headerPairs } from './check-request.ts';
import { createAuthOverHttp } from './over-http.ts';

/** An AuthService record, and the service itself where it runs in this process. */
export interface ConfiguredAuthService {
  readonly record: AuthService;
  /** Undefined: the service is asked across HTTP. */
  readonly port?: AuthCheck | undefined;
}

/** How often each decision was made since the start; `error`: there was none. */
export interface AuthCounts {
  allowed: number;
  denied: number;
  error: number;
}

export interface AuthStage {
  readonly record: AuthService;
  readonly authenticate: Authenticate;
  readonly preview: AuthClient['preview'];
}

/** True: the request goes on. False: the client has its answer, or is gone. Throws the Problem of a refusal without a body. */
type Authenticate = (ctx: Context, attributes: RequestAttributes) => boolean | Promise<boolean>;

export interface AuthStages {
  /** Whether a mapping that names no auth service has one. */
  readonly hasDefault: boolean;
  /**
   * Undefined: the mapping is open. `forAdmins`: refuses other users, and refuses all whenever the auth service gives no
   * answer, with `failure_mode_allow` too. Throws TypeError for a mapping without an auth service that is not open.
   */
  readonly of: (
    mapping: Pick<Mapping, 'name' | 'bypassAuth' | 'authService'>,
    options?: { readonly forAdmins: boolean },
  ) => AuthStage | undefined;
}

export interface AuthStagesParts {
  readonly resolve: Resolve;
  readonly holdCluster: (record: AuthService, target: RemoteTarget) => Cluster;
  readonly holdOutageLog: (record: AuthService) => OutageLog;
  /** Counted up, for all auth services together. */
  readonly counts: AuthCounts;
  /** Names that an auth service gives to administrators. */
  readonly adminUsers: readonly string[];
  /** Called for each request that an auth service gave no answer to. */
  readonly onUnanswered: () => void;
}

/** Throws TypeError for services that have the same name, or that cannot be asked. */
export function createAuthStages(services: readonly ConfiguredAuthService[], parts: AuthStagesParts): AuthStages {
  const stages = new Map(services.map((service) => [service.record.name, createPair(service, parts)]));
  if (stages.size < services.length) throw new TypeError('two auth services have the same name');
  const defaults = services.filter(({ record }) => record.isDefault);
  if (defaults.length > 1)
    throw new TypeError(`${defaults.length} of ${services.length} auth services are the default: make it one`);
  return Object.freeze({
    hasDefault: defaults.length === 1,
    of({ name, bypassAuth, authService = defaults[0]?.record.name }: Parameters<AuthStages['of']>[0], options) {
      if (bypassAuth || (authService === undefined && services.length === 0)) return undefined;
      if (authService === undefined)
        throw new TypeError(`Mapping ${name} names no auth service, and none of ${services.length} is the default`);
      const pair = stages.get(authService);
      if (pair === undefined) throw new TypeError(`Mapping ${name}: there is no auth service "${authService}"`);
      return options?.forAdmins ? pair.forAdmins : pair.asConfigured;
    },
  } satisfies AuthStages);
}

function createPair({ record, port }: ConfiguredAuthService, parts: AuthStagesParts) {
  const client = port === undefined ? createRemoteClient(record, parts) : createPortClient(port, record);
  const outage = parts.holdOutageLog(record);
  const stageOf = (stageRecord: StageRecord, requireRole?: RequireRole): AuthStage =>
    Object.freeze({
      record,
      authenticate: createAuthenticate(stageRecord, client.ask, { ...parts, outage }, requireRole),
      preview: client.preview,
    });
  const requireAdmin = createRequireAdmin(parts.adminUsers);
  return {
    asConfigured: stageOf(record),
    forAdmins: stageOf({ ...record, failureModeAllow: false }, requireAdmin),
  };
}

/** Throws the Problem of a user who may not pass. */
type RequireRole = (ctx: Context, isAdmin: boolean | undefined) => void;

function createRequireAdmin(adminUsers: readonly string[]): RequireRole {
  const names = new Set(adminUsers);
  return function requireAdmin(ctx, isAdmin) {
    if (isAdmin !== true && !names.has(requestContext(ctx).user ?? '')) throw problem('admins-only');
  };
}

function createRemoteClient(record: AuthService, { resolve, holdCluster }: AuthStagesParts): AuthClient {
  const target = resolve(record.authService);
  if (target.kind === 'local')
    throw new TypeError(`the auth service "${target.name}" is in this process but was not handed in`);
  return createAuthOverHttp({ record, cluster: holdCluster(record, target), path: target.path });
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

type StageRecord = Pick<
  AuthService,
  'failureModeAllow' | 'statusOnError' | 'includeBody' | 'allowedAuthorizationHeaders'
>;

function createAuthenticate(
  record: StageRecord,
  ask: AuthClient['ask'],
  { counts, onUnanswered, outage }: Pick<AuthStagesParts, 'counts' | 'onUnanswered'> & { readonly outage: OutageLog },
  requireRole?: RequireRole,
): Authenticate {
  const identity = createIdentity(record.allowedAuthorizationHeaders);

  function settle(ctx: Context, decision: AuthDecision): boolean {
    if (decision.outcome !== 'error') outage.answered();
    if (decision.outcome === 'allow') {
      counts.allowed += 1;
      setIdentity(ctx, identity, decision.headers);
      requireRole?.(ctx, decision.isAdmin);
      return true;
    }
    if (decision.outcome === 'deny') {
      counts.denied += 1;
      return refuse(ctx, decision);
    }
    counts.error += 1;
    onUnanswered();
    return settleUnanswered(ctx, decision.reason);
  }

  /** Ends the request of a client that is gone: otherwise disconnecting early would get a request past `failure_mode_allow`. */
  const settleLater = (ctx: Context, decision: AuthDecision) => !clientIsGone(ctx) && settle(ctx, decision);

  function settleUnanswered(ctx: Context, reason: string): boolean {
    const fields = { reason, allowed: record.failureModeAllow };
    outage.failed({ ...requestLogFields(ctx), ...fields }, 'the auth service gave no answer');
    if (record.failureModeAllow) return true;
    throw problem('auth-unavailable', {
      status: record.statusOnError,
      headers: { 'Retry-After': '1' },
      cause: reason,
    });
  }

  function authenticate(ctx: Context, attributes: RequestAttributes): boolean | Promise<boolean> {
    const decision = ask(ctx, attributes, undefined);
    return decision instanceof Promise ? decision.then((settled) => settleLater(ctx, settled)) : settle(ctx, decision);
  }

  const { includeBody } = record;
  if (includeBody === undefined) return authenticate;
  return async function authenticateWithBody(ctx, attributes) {
    const body = await readAuthBody(ctx, includeBody);
    return body !== undefined && settleLater(ctx, await ask(ctx, attributes, body));
  };
}

function setIdentity(ctx: Context, identity: Identity, headers: Readonly<Record<string, string>>): void {
  identity.set(ctx.req.headers, headers);
  requestContext(ctx).user = identity.userOf(ctx.req.headers);
}

/** Sends a refusal with a body as it is; a refusal without one becomes the error body of its status. */
function refuse(ctx: Context, decision: Extract<AuthDecision, { outcome: 'deny' }>): false {
  const { status, headers, body } = decision;
  const { slug = slugOfStatus[status] ?? 'access-denied' } = decision;
  if (body === undefined) throw problem(slug, { status, headers });
  // Koa refuses a second `Content-Type`, which the auth service may have sent.
  for (const [name, value] of Object.entries(headers)) ctx.res.setHeader(name, value);
  ctx.set('Cache-Control', 'no-store');
  ctx.status = status;
  ctx.body = Buffer.from(body);
  if (headers['Content-Type'] === undefined) ctx.remove('Content-Type');
  return false;
}

const slugOfStatus: Readonly<Record<number, ProblemSlug>> = {
  401: 'unauthorized',
  403: 'access-denied',
  429: 'too-many-requests',
  503: 'auth-unavailable',
};
