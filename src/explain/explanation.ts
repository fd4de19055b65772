/** What becomes of a request, as plain data for people and machines. */
import type { ImaginedRequest } from './imagined-request.ts';

/** The request to explain. */
export interface ExplainRequest extends ImaginedRequest {
  /** The user that the auth service is assumed to find; the service itself is not asked. */
  readonly user?: string | undefined;
  /** Also lists the mappings that lose by their path alone. @default false */
  readonly all?: boolean | undefined;
}

/** A part that the request does not reach is undefined. Credentials, and values that a record sets, read `…`. */
export interface Explanation {
  readonly request: RequestPart;
  readonly outcome: Outcome;
  /** The Version record that the path belongs to. */
  readonly version: VersionPart | undefined;
  readonly mapping: MappingPart | undefined;
  /** In the order in which they are tried. */
  readonly candidates: readonly CandidatePart[];
  /** How many more mappings lose by their path alone. */
  readonly candidates_not_listed: number;
  readonly cors: CorsPart | undefined;
  readonly redirect: { readonly status: number; readonly location: string } | undefined;
  readonly auth: AuthPart | undefined;
  readonly rate_limit: RateLimitPart | undefined;
  readonly shadow: ShadowPart | undefined;
  readonly target: TargetPart | undefined;
}

export interface HeaderPart {
  readonly name: string;
  readonly value: string;
}

/** As far as it can be known without asking the auth service, the limiter and the service. */
export type Outcome =
  | {
      readonly kind: 'refused';
      /** `before_routing`: no mapping is looked for. */
      readonly stage: 'before_routing' | 'routing' | 'forwarding';
      readonly status: number;
      readonly problem: string;
      readonly detail: string;
    }
  | { readonly kind: 'preflight' | 'redirect'; readonly status: number }
  | { readonly kind: 'forwarded' };

/** As the gateway reads it. */
export interface RequestPart {
  readonly method: string;
  /** As it was given. */
  readonly url: string;
  /** In its plain form; undefined when the path is ambiguous and refused. */
  readonly path: string | undefined;
  readonly query: string;
  readonly scheme: string;
  readonly host: string;
  /** The client's address, as trusted proxies report it. */
  readonly client: string;
  readonly user: string | undefined;
  /** Names of headers that only an auth service may set. */
  readonly identity_headers: readonly string[];
  /** Those of them that the client sent, and that were removed. */
  readonly stripped: readonly string[];
}

export interface VersionPart {
  readonly name: string;
  readonly prefix: string;
  readonly source: string;
  /** True: every request gets 410. */
  readonly ended: boolean;
  /** On every response. */
  readonly headers: readonly HeaderPart[];
}

export interface MappingPart {
  readonly name: string;
  readonly prefix: string;
  readonly conditions: readonly string[];
  readonly reason: string;
  /** `file:line`; undefined for a route of the server itself. */
  readonly source: string | undefined;
}

export interface CandidatePart extends MappingPart {
  /** Several that match share the requests by weight. */
  readonly outcome: 'matched' | 'shadow' | 'lost';
  /** The criterion that decided. */
  readonly by: string;
}

export interface CorsPart {
  /** Where the rule comes from: the mapping, or the setting `CORS_ORIGINS`. */
  readonly rule: 'mapping' | 'CORS_ORIGINS';
  readonly origins: readonly string[];
  readonly origin: string | undefined;
  readonly allowed: boolean;
  readonly headers: readonly HeaderPart[];
}

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
      /** How long a positive decision is kept; 0: each request is asked about. */
      readonly cache_ms: number;
      readonly user_header: string | undefined;
      readonly on_200: string;
      readonly on_refusal: string;
      readonly on_error: string;
    };

export type RateLimitPart =
  | { readonly asked: false; readonly reason: string }
  | {
      readonly asked: true;
      readonly name: string;
      readonly service: string;
      readonly source: string;
      readonly domain: string;
      /** `this process`, or the address of the service that decides; then only that service knows the limits. */
      readonly decided_by: string;
      readonly descriptors: readonly DescriptorPart[];
      readonly on_over_limit: string;
      readonly on_error: string;
    };

export interface DescriptorPart {
  /** True: it counts before authentication, refused requests too. */
  readonly before_auth: boolean;
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** Undefined: only the service that decides knows them. */
  readonly limits: readonly LimitPart[] | undefined;
}

export interface LimitPart {
  /** As configured, outermost first, without its values: `user › path=…`. */
  readonly descriptor: string;
  readonly name: string | undefined;
  readonly unlimited: boolean;
  readonly requests_per_unit: number;
  readonly unit: string;
  readonly unit_multiplier: number;
  readonly algorithm: string;
  readonly burst: number;
  readonly shadow_mode: boolean;
  readonly source: string | undefined;
}

export interface ShadowPart extends MappingPart {
  readonly url: string;
}

export interface TargetPart {
  readonly kind: 'local' | 'remote';
  readonly service: string;
  /** Origins; empty in this process. */
  readonly addresses: readonly string[];
  readonly method: string;
  /** With its query, as the service sees it. */
  readonly path: string;
  /** All headers that the gateway sends, in the order of sending. */
  readonly headers: readonly (HeaderPart & {
    /** `client`: as the client sent it; `gateway`: added or replaced. */
    readonly by: 'client' | 'gateway';
  })[];
  /** Names that the client sent and that do not reach the service. */
  readonly headers_removed: readonly string[];
  readonly response_headers: { readonly add: readonly HeaderPart[]; readonly remove: readonly string[] };
  /** Undefined for a service in this process. */
  readonly across: AcrossPart | undefined;
}

export interface AcrossPart {
  readonly timeout_ms: EffectivePart;
  readonly connect_timeout_ms: EffectivePart;
  readonly idle_timeout_ms: EffectivePart;
  /** Undefined: no limit. */
  readonly body_bytes_max: number | undefined;
  readonly load_balancer: string;
  readonly retries: {
    readonly on: readonly string[];
    readonly most: number;
    readonly per_try_timeout_ms: number | undefined;
    /** False: a request with this method is not retried once the service may have seen it. */
    readonly applies: boolean;
  };
  readonly circuit_breakers: {
    readonly max_connections: number;
    readonly max_pending_requests: number;
    readonly max_requests: number;
    readonly max_retries: number;
    readonly max_upgrades: number;
  };
  readonly health_check: string | undefined;
  readonly upgrades_allowed: readonly string[];
}

/** In milliseconds; 0: no limit. */
export interface EffectivePart {
  readonly value: number;
  readonly from: 'mapping' | 'setting';
}
