/** What becomes of a request, as plain data for people and machines: the shape of the answer of `explain`. */
import type { ImaginedRequest } from '#http';
import type { TargetPart } from './explanation-target.ts';

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
  /** That a record speaks of. */
  readonly version: VersionPart | undefined;
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

export interface VersionPart {
  readonly name: string;
  readonly prefix: string;
  readonly source: string;
  /** From then on there is no answer but 410. */
  readonly ended: boolean;
  /** On every response. */
  readonly headers: readonly HeaderPart[];
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
