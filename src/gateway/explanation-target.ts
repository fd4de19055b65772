/** What arrives at the service of an explained request, and how long it may take: a part of the answer of `explain`. */
import type { HeaderPart } from './explanation.ts';

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
