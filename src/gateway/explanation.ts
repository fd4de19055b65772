/** What becomes of a request, as plain data for people and machines: the shape of the answer of `explain`. */
import type { ImaginedRequest } from '#http';

/** A request that is asked about. */
export interface Question extends ImaginedRequest {
  /** Who the auth service shall be taken to find; its answer is not asked for. */
  readonly user?: string | undefined;
  /** Lists the mappings as well that lose by their path alone. @default false */
  readonly all?: boolean | undefined;
}

/** A part that the request does not come to is undefined. Values that look like credentials read `…`. */
export interface Explanation {
  readonly request: RequestPart;
  readonly outcome: Outcome;
  readonly mapping: MappingPart | undefined;
  /** In the order in which they are tried. */
  readonly candidates: readonly CandidatePart[];
  /** How many more there are, whose path alone rules them out. */
  readonly candidates_not_listed: number;
  readonly cors: CorsPart | undefined;
  readonly redirect: { readonly status: number; readonly location: string } | undefined;
  readonly auth: AuthPart | undefined;
  readonly rate_limit: RateLimitPart | undefined;
  readonly shadow: ShadowPart | undefined;
  readonly target: TargetPart | undefined;
}

/** Clients send these names and values. */
export interface HeaderPart {
  readonly name: string;
  readonly value: string;
}

/** `service`: as far as can be told before the service is asked. */
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
  /** As it was asked about. */
  readonly url: string;
  /** In its plain form; undefined when it cannot be read in one way only. */
  readonly path: string | undefined;
  readonly query: string;
  readonly scheme: string;
  readonly host: string;
  /** The client's address, as trusted proxies tell it. */
  readonly client: string;
  readonly user: string | undefined;
  /** Names that only an auth service may set. */
  readonly identity_headers: readonly string[];
  /** Of these, what the client sent and lost. */
  readonly stripped: readonly string[];
}

export interface MappingPart {
  readonly name: string;
  readonly prefix: string;
  readonly conditions: readonly string[];
  readonly reason: string;
  /** `file:line`; undefined for a route that the server brings itself. */
  readonly source: string | undefined;
}

export interface CandidatePart extends MappingPart {
  /** Of several that match, each takes its share. */
  readonly outcome: 'matched' | 'shadow' | 'lost';
  /** What decided. */
  readonly by: string;
}

export interface CorsPart {
  /** Whose rule it is: `mapping`, or the setting `CORS_ORIGINS`. */
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
      /** 0: each request is asked about. */
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
      /** `this process`, or the address of the service that decides and alone knows its limits. */
      readonly decided_by: string;
      readonly descriptors: readonly DescriptorPart[];
      readonly on_over_limit: string;
      readonly on_error: string;
    };

export interface DescriptorPart {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** Undefined: only the service that decides knows. */
  readonly limits: readonly LimitPart[] | undefined;
}

export interface LimitPart {
  /** As configured, outermost first: `user › path=/v1/*`. */
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
  /** All that the gateway sends, in the order in which it does. */
  readonly headers: readonly (HeaderPart & {
    /** `client`: as the client sent it; `gateway`: added or replaced. */
    readonly by: 'client' | 'gateway';
  })[];
  /** Names that the client sent and that do not arrive. */
  readonly headers_removed: readonly string[];
  readonly response_headers: { readonly add: readonly HeaderPart[]; readonly remove: readonly string[] };
  /** Undefined in this process, as all below. */
  readonly across: AcrossPart | undefined;
}

export interface AcrossPart {
  readonly timeout_ms: EffectivePart;
  readonly connect_timeout_ms: EffectivePart;
  readonly idle_timeout_ms: EffectivePart;
  readonly body_bytes_max: number;
  readonly load_balancer: string;
  readonly retries: {
    readonly on: readonly string[];
    readonly most: number;
    readonly per_try_timeout_ms: number | undefined;
    /** False: this method is not tried again once the service may have seen it. */
    readonly applies: boolean;
  };
  readonly circuit_breakers: {
    readonly max_connections: number;
    readonly max_pending_requests: number;
    readonly max_requests: number;
    readonly max_retries: number;
  };
  readonly health_check: string | undefined;
  readonly upgrades_allowed: readonly string[];
}

/** 0: without end. */
export interface EffectivePart {
  readonly value: number;
  readonly from: 'mapping' | 'setting';
}
