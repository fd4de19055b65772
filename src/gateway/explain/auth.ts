/** Says which request the auth service of a mapping would get, what it decides, and what each decision means. */
import type { AuthDecision, TokenCheck } from '#auth';
import { type AuthService, describeClaims } from '#config';
import { formatSource } from '#foundation';
import { decodeHeader, encodeHeader, type Problem, problems } from '#http';
import { createPortRequest } from '../auth/check-request.ts';
import { type AuthStage, type ConfiguredAuthService, denialOf, setIdentity } from '../auth/stage.ts';
import { describeAuthTarget, type Resolve } from '../resolve-service.ts';
import type { Route } from '../route.ts';
import type { ExplainedRequest } from '../routed-request.ts';
import type { HeaderPart } from './conceal.ts';

export type AuthPart =
  | { readonly asked: false; readonly reason: string }
  | {
      readonly asked: true;
      /** `unknown`: only the auth service, which runs elsewhere, knows. Nothing is sent to it. */
      readonly decision: 'allowed' | 'denied' | 'unknown';
      /** Why, without credentials: `the request has no credentials`. */
      readonly decision_reason: string;
      /** The user that the decision names. Undefined when it names none. */
      readonly user: string | undefined;
      readonly name: string;
      readonly service: string;
      readonly target: string;
      readonly source: string;
      readonly method: string;
      readonly path: string;
      readonly headers: readonly HeaderPart[];
      readonly body: string;
      /** The names in `auth_context_extensions` of the mapping. Empty unless the service is called over gRPC. */
      readonly context: readonly string[];
      readonly timeout_ms: number | undefined;
      /** How long a positive decision is cached; 0 when the service is called for every request. */
      readonly cache_ms: number;
      readonly user_header: string | undefined;
      /** The header in which clients may send an API key, which the service does not get. */
      readonly key_header: string | undefined;
      /** Where tokens are looked for before the service is asked. Undefined when no tokens are accepted. */
      readonly tokens: TokensPart | undefined;
      /** The claims that the mapping requires: `scope: orders`. */
      readonly required_claims: string | undefined;
      readonly on_success: string;
      readonly on_refusal: string;
      readonly on_error: string;
    };

export interface TokensPart {
  /** The names of the JwtProviders. */
  readonly providers: readonly string[];
  /** In order: `the header authorization after "Bearer"`. */
  readonly places: readonly string[];
  /** The headers that claims become. */
  readonly headers: readonly string[];
}

export interface ExplainAuthParts {
  readonly authServices: readonly ConfiguredAuthService[];
  readonly resolve: Resolve;
}

/**
 * The returned function also sets the identity headers, for the stages that follow. It asks the auth service of this
 * process, which counts no login, and no other.
 */
export function createExplainAuth({ authServices, resolve }: ExplainAuthParts) {
  function callPart({ request: { ctx }, attributes, route, client }: ExplainedRequest, { record, preview }: AuthStage) {
    const isRemote = serviceOf(record)?.port === undefined;
    const { requireClaims, authContextExtensions } = route.mapping;
    const check = preview(ctx, attributes);
    return {
      asked: true as const,
      name: record.name,
      service: record.authService,
      target: describeAuthTarget(resolve(record.authService), record),
      source: formatSource(record.source),
      method: check.method,
      path: check.path,
      headers: client.conceal(check.headers, record.addAuthHeaders),
      body: bodyText(record),
      context: isRemote && record.proto === 'grpc' ? authContextExtensions.map(([name]) => name) : [],
      timeout_ms: isRemote ? record.timeoutMs : undefined,
      cache_ms: isRemote && record.includeBody === undefined ? record.cacheMs : 0,
      user_header: record.allowedAuthorizationHeaders[0],
      key_header: record.apiKeyHeader,
      tokens: tokensPart(serviceOf(record)?.tokens),
      required_claims: requireClaims.length === 0 ? undefined : describeClaims(requireClaims),
      ...consequences(record, route, isRemote),
    };
  }

  /** The record of a built-in route is a copy. */
  function serviceOf({ name }: AuthService): ConfiguredAuthService | undefined {
    return authServices.find(({ record }) => record.name === name);
  }

  /** Undefined when only the auth service knows. A service elsewhere is assumed to name the user in its first header. */
  async function decisionOn(
    { request: { ctx }, user }: ExplainedRequest,
    record: AuthService,
  ): Promise<AuthDecision | undefined> {
    const { rehearse, tokens } = serviceOf(record) ?? {};
    const { headers, url = '/' } = ctx.req;
    const ofToken = user === undefined ? await tokens?.check({ headers, url }) : undefined;
    if (ofToken !== undefined) return ofToken;
    if (rehearse !== undefined) return rehearse(createPortRequest(record)(ctx), user);
    if (user === undefined) return undefined;
    const names = record.allowedAuthorizationHeaders.slice(0, 1);
    return { outcome: 'allow', headers: Object.fromEntries(names.map((name) => [name, encodeHeader(user)])) };
  }

  return async function explainAuth(asked: ExplainedRequest) {
    const { request, route, user } = asked;
    const stage = route.auth;
    if (stage === undefined) return { auth: { asked: false as const, reason: whyOpen(route, authServices) } };
    // The request to the auth service does not contain the user.
    const call = callPart(asked, stage);
    const decision = await decisionOn(asked, stage.record);
    const rejection = decision && settle(request, stage, decision);
    // A user who is assumed may have any claims.
    const isRejected = rejection !== undefined && !(user !== undefined && rejection.slug === 'insufficient-claims');
    const found = { decision, rejection: isRejected ? rejection : undefined, assumed: user };
    return { auth: { ...call, ...decisionPart(call, found) }, rejection: found.rejection };
  };
}

/** Returns the Problem that rejects the request, as the stage of a real request would throw it. */
function settle({ ctx }: ExplainedRequest['request'], stage: AuthStage, decision: AuthDecision): Problem | undefined {
  if (decision.outcome === 'deny') return denialOf(decision);
  if (decision.outcome === 'error') return undefined;
  setIdentity(ctx, stage.record.allowedAuthorizationHeaders, decision.headers);
  return stage.refusalOf?.(ctx, decision);
}

interface Decided {
  /** Undefined when it is unknown. */
  readonly decision: AuthDecision | undefined;
  /** The Problem that rejects the request. */
  readonly rejection: Problem | undefined;
  /** The user that is assumed. */
  readonly assumed: string | undefined;
}

type Call = Pick<Extract<AuthPart, { asked: true }>, 'user_header' | 'key_header' | 'headers' | 'target'>;

function decisionPart(call: Call, { decision, rejection, assumed }: Decided) {
  if (decision === undefined || decision.outcome === 'error')
    return {
      decision: 'unknown',
      decision_reason: decision?.reason ?? `only ${call.target} knows, and it is not asked`,
      user: undefined,
    } as const;
  if (decision.outcome === 'deny')
    return { decision: 'denied', decision_reason: whyDenied(decision, call), user: undefined } as const;
  const named = call.user_header && decision.headers[call.user_header];
  const user = named === undefined ? assumed : decodeHeader(named);
  if (rejection !== undefined)
    return { decision: 'denied', decision_reason: whyRefused(rejection, user), user } as const;
  const reason = assumed === undefined ? `the credentials are those of ${user}` : `the user ${user} is assumed`;
  return { decision: 'allowed', decision_reason: reason, user } as const;
}

function whyRefused({ slug }: Problem, user: string | undefined): string {
  return slug === 'insufficient-claims'
    ? `the credentials of ${user} do not have the required claims`
    : `${user} is not an administrator`;
}

/** Repeats neither the user nor the password, which may be in the wrong place. */
function whyDenied(
  { slug, headers: sent }: Extract<AuthDecision, { outcome: 'deny' }>,
  { key_header: keyHeader, headers }: Call,
): string {
  const challenge = [sent['WWW-Authenticate'] ?? []].flat().join();
  if (challenge.includes('invalid_token'))
    return challenge.includes('expired') ? 'the token has expired' : 'the token is not valid';
  if (slug !== 'unauthorized' && slug !== undefined) return clauseOf(problems[slug].meaning);
  const has = (header: string) => headers.some(({ name }) => name.toLowerCase() === header);
  if (keyHeader !== undefined && has(keyHeader)) return 'the API key belongs to no user';
  return has('authorization')
    ? 'no user has these credentials: the name or the password is wrong'
    : 'the request has no credentials';
}

/** Turns a sentence into a clause without a capital letter and a full stop. */
function clauseOf(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '');
}

function tokensPart(tokens: TokenCheck | undefined): TokensPart | undefined {
  if (tokens === undefined) return undefined;
  return { providers: tokens.providers, places: tokens.places, headers: tokens.claimHeaders };
}

function whyOpen({ mapping, transport, source }: Route, services: readonly ConfiguredAuthService[]): string {
  if (transport.location !== undefined) return 'a redirect needs no authentication';
  if (services.length === 0) return 'there is no AuthService record';
  if (source === undefined) return 'this built-in route is open';
  return mapping.bypassAuth ? 'the mapping has bypass_auth: true' : 'the mapping is open';
}

function bodyText({ includeBody }: AuthService): string {
  if (includeBody === undefined) return 'none';
  const { maxBytes, allowPartial } = includeBody;
  return `the first ${maxBytes} bytes; a longer body is ${allowPartial ? 'truncated' : 'rejected with 413'}`;
}

/** Built-in routes always fail closed. */
function consequences(record: AuthService, { source }: Route, isRemote: boolean) {
  const { allowedAuthorizationHeaders, allowedClientHeadersOnSuccess, allowStatus } = record;
  const { failureModeAllow, statusOnError, removeAuthorization } = record;
  const names = allowedAuthorizationHeaders.join(', ');
  const set = names === '' ? '' : ` with ${names} from the response`;
  const clientNames = allowedClientHeadersOnSuccess.join(', ');
  const toClient = clientNames === '' ? '' : `, and the client gets ${clientNames}`;
  const without = removeAuthorization ? ', without Authorization' : '';
  const isOverGrpc = isRemote && record.proto === 'grpc';
  return {
    on_success: isOverGrpc
      ? `after OK, the request continues with the changes in the response${without}`
      : `after ${allowStatus}, the request continues${set}${toClient}${without}`,
    on_refusal: isOverGrpc ? 'a denial is sent to the client' : 'any other status below 500 is sent to the client',
    on_error:
      failureModeAllow && source !== undefined
        ? 'the request continues without an identity'
        : `the client gets ${statusOnError}`,
  };
}
