/** Says which request the auth service of a mapping would get, and what each of its decisions means. */
import type { Context } from 'koa';
import type { AuthService } from '#config';
import { formatSource } from '#foundation';
import { encodeHeader } from '#http';
import type { ConfiguredAuthService } from '../auth/stage.ts';
import { describeTarget, type Resolve } from '../resolve-service.ts';
import type { Route } from '../route.ts';
import type { ExplainedRequest } from '../routed-request.ts';
import type { HeaderPart } from './conceal.ts';

export type AuthPart =
  | { readonly asked: false; readonly reason: string }
  | {
      readonly asked: true;
      readonly name: string;
      readonly service: string;
      readonly target: string;
      readonly source: string;
      readonly method: string;
      readonly path: string;
      readonly headers: readonly HeaderPart[];
      readonly body: string;
      readonly timeout_ms: number | undefined;
      /** How long a positive decision is cached; 0 when the service is called for every request. */
      readonly cache_ms: number;
      readonly user_header: string | undefined;
      readonly on_success: string;
      readonly on_refusal: string;
      readonly on_error: string;
    };

export interface ExplainAuthParts {
  readonly authServices: readonly ConfiguredAuthService[];
  readonly resolve: Resolve;
}

/** The returned function also sets the identity headers, for the stages that follow. */
export function createExplainAuth({ authServices, resolve }: ExplainAuthParts) {
  function authPart({ request: { ctx }, attributes, route, client }: ExplainedRequest): AuthPart {
    if (route.auth === undefined) return { asked: false, reason: whyOpen(route, authServices) };
    const { record, preview } = route.auth;
    const isRemote = !isLocal(record);
    const check = preview(ctx, attributes);
    return {
      asked: true,
      name: record.name,
      service: record.authService,
      target: describeTarget(resolve(record.authService)),
      source: formatSource(record.source),
      method: check.method,
      path: check.path,
      headers: client.conceal(check.headers, record.addAuthHeaders),
      body: bodyText(record),
      timeout_ms: isRemote ? record.timeoutMs : undefined,
      cache_ms: isRemote && record.includeBody === undefined ? record.cacheMs : 0,
      user_header: record.allowedAuthorizationHeaders[0],
      ...consequences(record, route),
    };
  }

  function isLocal(record: AuthService): boolean {
    return authServices.find((one) => one.record === record)?.port !== undefined;
  }

  /**
   * Sets the identity headers like the auth service's response would. That of this process names the user in all of
   * them, and any other one in the first, as the access log reads it.
   */
  function identifyAs(ctx: Context, record: AuthService, user: string): void {
    const names = record.allowedAuthorizationHeaders;
    for (const name of isLocal(record) ? names : names.slice(0, 1)) ctx.req.headers[name] = encodeHeader(user);
  }

  return function explainAuth(asked: ExplainedRequest) {
    // The request to the auth service does not contain the user.
    const auth = authPart(asked);
    const { request, route, user } = asked;
    if (route.auth !== undefined && user !== undefined) identifyAs(request.ctx, route.auth.record, user);
    return { auth };
  };
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
function consequences(record: AuthService, { source }: Route) {
  const { allowedAuthorizationHeaders, allowedClientHeadersOnSuccess, allowStatus } = record;
  const { failureModeAllow, statusOnError, removeAuthorization } = record;
  const names = allowedAuthorizationHeaders.join(', ');
  const set = names === '' ? '' : ` with ${names} from the response`;
  const clientNames = allowedClientHeadersOnSuccess.join(', ');
  const toClient = clientNames === '' ? '' : `, and the client gets ${clientNames}`;
  return {
    on_success: `after ${allowStatus}, the request continues${set}${toClient}${removeAuthorization ? ', without Authorization' : ''}`,
    on_refusal: 'any other status below 500 is sent to the client',
    on_error:
      failureModeAllow && source !== undefined
        ? 'the request continues without an identity'
        : `the client gets ${statusOnError}`,
  };
}
