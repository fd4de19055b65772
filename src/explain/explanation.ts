/** The explanation of a request as plain data, in which credentials and values of the configuration are concealed. */
import { credentialHeaders } from '#config';
import { decodeHeader } from '#http';
import type { SyntheticRequest } from './synthetic-request.ts';

/** The request to explain. */
export interface ExplainRequest extends SyntheticRequest {
  /** The user that the auth service is assumed to return. The service itself is not called. */
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

/** The outcome, as far as it is known without calling the auth service, the limiter and the service. */
export type Outcome =
  | {
      readonly kind: 'refused';
      /** `before_routing`: the gateway does not look for a mapping. */
      readonly stage: 'before_routing' | 'routing' | 'forwarding';
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
  readonly user: string | undefined;
  /** Names of headers that only an auth service may set. */
  readonly identity_headers: readonly string[];
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

export type RateLimitPart =
  | { readonly asked: false; readonly reason: string }
  | {
      readonly asked: true;
      readonly name: string;
      readonly service: string;
      readonly source: string;
      readonly domain: string;
      /** `this process`, or the address of another service. */
      readonly decided_by: string;
      readonly descriptors: readonly DescriptorPart[];
      readonly on_over_limit: string;
      readonly on_error: string;
    };

export interface DescriptorPart {
  /** True when the descriptor is counted before authentication, for denied requests too. */
  readonly before_auth: boolean;
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** Undefined when only a service outside this process knows the limits. */
  readonly limits: readonly LimitPart[] | undefined;
}

export interface LimitPart {
  /** The configured descriptor, outermost key first, without its values: `user › path=…`. */
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
  /** The origins of the service. Empty for a service in this process. */
  readonly addresses: readonly string[];
  readonly method: string;
  /** The path and query that the service receives. */
  readonly path: string;
  /** All headers that the gateway sends, in order. */
  readonly headers: readonly (HeaderPart & {
    /** `client`: forwarded unchanged. `gateway`: added or replaced. */
    readonly by: 'client' | 'gateway';
  })[];
  /** The names of the client's headers that do not reach the service. */
  readonly headers_removed: readonly string[];
  readonly response_headers: { readonly add: readonly HeaderPart[]; readonly remove: readonly string[] };
  /** Undefined for a service in this process. */
  readonly across: UpstreamPart | undefined;
}

/** Settings for a service over HTTP. */
export interface UpstreamPart {
  readonly timeout_ms: EffectivePart;
  readonly connect_timeout_ms: EffectivePart;
  readonly idle_timeout_ms: EffectivePart;
  /** Undefined when there is no limit. */
  readonly body_bytes_max: number | undefined;
  readonly load_balancer: string;
  readonly retries: {
    readonly on: readonly string[];
    readonly most: number;
    readonly per_try_timeout_ms: number | undefined;
    /** False when a request with this method is not retried once the service may have received it. */
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

/** A time in milliseconds, and its source. 0 means no limit. */
export interface EffectivePart {
  readonly value: number;
  readonly from: 'mapping' | 'setting';
}

/** Expects alternating names and values. Conceals credentials and the values of headers that a record sets. */
export type Conceal = (pairs: readonly string[], set?: readonly Named[]) => readonly HeaderPart[];

/** The name of a header that a record sets. */
export interface Named {
  readonly name: string;
}

export interface ConcealOptions {
  /** The headers of the client's request, as alternating names and values. */
  readonly pairs: readonly string[];
  /** Values that the gateway generates for each request, such as its id. */
  readonly generated: readonly string[];
}

export function createConceal({ pairs, generated }: ConcealOptions): Conceal {
  const generatedOnly = new Set(generated.filter((value) => !pairs.includes(value)));
  return function conceal(shown, set = []) {
    const setNames = new Set(set.map(({ name }) => name.toLowerCase()));
    return partsOf(shown).map(({ name, value }) => {
      if (setNames.has(name.toLowerCase())) return { name, value: '…' };
      if (generatedOnly.has(value)) return { name, value: '(generated for each request)' };
      return { name, value: isCredential(name) ? concealed(value) : decodeHeader(value) };
    });
  };
}

/** Whether clients send credentials in this header. */
export function isCredential(name: string): boolean {
  return credentialHeaders.includes(name.toLowerCase());
}

/** Groups alternating names and values. */
export function partsOf(pairs: readonly string[]): readonly HeaderPart[] {
  return pairs.flatMap((name, index) => (index % 2 === 0 ? [{ name, value: pairs[index + 1] ?? '' }] : []));
}

/** Retains only the scheme: `Basic …`. */
function concealed(value: string): string {
  const [, scheme] = /^([\w-]+) +\S/.exec(value) ?? [];
  return scheme === undefined ? '…' : `${scheme} …`;
}
