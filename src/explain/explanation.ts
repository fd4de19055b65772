/** The explanation of a request as plain data, in which credentials and values of the configuration are concealed. */
import type { AttachedPolicy } from '#config';
import type { AuthPart, HeaderPart, RateLimitPart, RedirectPart, ShadowPart, TargetPart } from '#gateway';
import type { SyntheticRequest } from './synthetic-request.ts';

/** The request to explain. */
export interface ExplainRequest extends SyntheticRequest {
  /**
   * The user that the auth service is assumed to return. Without one, the auth service of this process checks the
   * credentials in `headers`, and what another one decides is unknown.
   */
  readonly user?: string | undefined;
  /** Also lists mappings whose path does not match. @default false */
  readonly all?: boolean | undefined;
}

/** Parts that the request does not reach are undefined. Credentials and values that a record sets are shown as `…`. */
export interface Explanation {
  readonly request: RequestPart;
  readonly outcome: Outcome;
  /** The Version record that the path belongs to. */
  readonly version: VersionPart | undefined;
  readonly mapping: MappingPart | undefined;
  /** In the order in which they are tried. */
  readonly candidates: readonly CandidatePart[];
  /** The number of further mappings, whose path does not match. */
  readonly candidates_not_listed: number;
  readonly cors: CorsPart | undefined;
  readonly redirect: RedirectPart | undefined;
  readonly auth: AuthPart | undefined;
  readonly rate_limit: RateLimitPart | undefined;
  readonly shadow: (MappingPart & ShadowPart) | undefined;
  readonly target: TargetPart | undefined;
}

/** The outcome, as far as it is known without calling another auth service, the limiter and the service. */
export type Outcome =
  | {
      readonly kind: 'refused';
      /** `before_routing`: the gateway does not look for a mapping. */
      readonly stage: 'before_routing' | 'routing' | 'authentication' | 'forwarding';
      readonly status: number;
      readonly problem: string;
      readonly detail: string;
    }
  | { readonly kind: 'preflight' | 'redirect'; readonly status: number }
  | { readonly kind: 'forwarded' };

/** The request as the gateway interprets it. */
export interface RequestPart {
  readonly method: string;
  /** The URL exactly as it was given. */
  readonly url: string;
  /** The sanitised path. Undefined when the path is ambiguous, so that the request is rejected. */
  readonly path: string | undefined;
  readonly query: string;
  readonly scheme: string;
  readonly host: string;
  /** The client's address, as trusted proxies report it. */
  readonly client: string;
  /** The user that is assumed. */
  readonly user: string | undefined;
  /** Names of headers that only an auth service may set. */
  readonly identity_headers: readonly string[];
  /** Names of headers in which clients send credentials, whose values are not shown. */
  readonly credential_headers: readonly string[];
  /** The identity headers that the client sent, and that the gateway removes. */
  readonly stripped: readonly string[];
}

export interface VersionPart {
  readonly name: string;
  readonly prefix: string;
  readonly source: string;
  /** True when every request gets 410. */
  readonly ended: boolean;
  /** The headers on every response. */
  readonly headers: readonly HeaderPart[];
}

export interface MappingPart {
  readonly name: string;
  readonly prefix: string;
  readonly conditions: readonly string[];
  readonly reason: string;
  /** `file:line`. Undefined for a built-in route. */
  readonly source: string | undefined;
  /** The RoutePolicies of a route of the Gateway API, each with the fields that it decides about. Undefined for records. */
  readonly policies: readonly AttachedPolicy[] | undefined;
}

export interface CandidatePart extends MappingPart {
  /** Several candidates are `matched` when they share the requests by weight. */
  readonly outcome: 'matched' | 'shadow' | 'lost';
  /** The deciding criterion. */
  readonly by: string;
}

export interface CorsPart {
  /** The source of the rule: the mapping, or the setting `CORS_ORIGINS`. */
  readonly rule: 'mapping' | 'CORS_ORIGINS';
  readonly origins: readonly string[];
  readonly origin: string | undefined;
  readonly allowed: boolean;
  readonly headers: readonly HeaderPart[];
}
