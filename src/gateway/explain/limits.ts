/** Lists the limits that would count a request. */
import type { Label, RateLimitHeaderStyle, RateLimitService } from '#config';
import { formatSource } from '#foundation';
import { decodeHeader, maskAddress } from '#http';
import type { Limiter, Rule } from '#ratelimit';
import { genericKey, type Unit } from '#ratelimit/limit';
import type { RequestAttributes } from '#routing';
import type { ConfiguredAuthService } from '../auth/stage.ts';
import { type DescriptorsOf, sourceCluster } from '../limits/descriptors.ts';
import { describeTarget, type Resolve, resolveLimiter } from '../resolve-service.ts';
import type { Route } from '../route.ts';
import type { ExplainedRequest } from '../routed-request.ts';
import { isCredential, tokenHeadersOf } from './conceal.ts';

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
      /** The headers that tell the client what is left, from the limits that counted the request. */
      readonly response_headers: readonly string[];
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
  readonly unit: Unit;
  readonly unit_multiplier: number;
  readonly algorithm: string;
  readonly burst: number;
  readonly shadow_mode: boolean;
  readonly source: string | undefined;
}

export interface ExplainLimitParts {
  readonly rateLimitService: RateLimitService | undefined;
  readonly limiter?: Limiter | undefined;
  readonly resolve: Resolve;
  readonly authServices: readonly ConfiguredAuthService[];
}

/**
 * `afterAuth` explains the limits before and after authentication together. `beforeAuth` alone is what a request reaches
 * that authentication rejects. A redirect has no limits.
 */
export function createExplainLimit({ rateLimitService: record, limiter, resolve, authServices }: ExplainLimitParts) {
  const tokenHeaders = tokenHeadersOf(authServices);

  function limitsOf(
    record: RateLimitService,
    { attributes, route }: ExplainedRequest,
    reached: 'beforeAuth' | 'afterAuth',
  ): RateLimitPart {
    const { domain } = record;
    if (route.labels.length === 0)
      return { asked: false, reason: `the mapping has no labels for the domain ${domain}` };
    const { beforeAuth = noDescriptors, afterAuth = noDescriptors } = route.descriptors;
    const first = beforeAuth(attributes);
    const second = reached === 'beforeAuth' ? [] : afterAuth(attributes);
    const descriptors = [...first, ...second];
    if (descriptors.length === 0) return { asked: false, reason: whyNone[reached] };
    const shown = shownValues(attributes, route, tokenHeaders);
    const explain = limiter?.explain;
    // Explains two requests, as the gateway sends two, because a limit replaces only others in the same request.
    const limits = explain && [first, second].flatMap((some) => explain({ domain, descriptors: some }));
    return {
      asked: true,
      name: record.name,
      service: record.service,
      source: formatSource(record.source),
      domain,
      decided_by: limits === undefined ? describeTarget(resolveLimiter(resolve, record.service)) : 'this process',
      descriptors: descriptors.map(({ entries }, index) => ({
        entries: entries.map(({ key, value }) => ({ key, value: shown.has(value) ? value : '…' })),
        before_auth: index < first.length,
        limits: limits?.[index]?.map(limitPart),
      })),
      response_headers: headersToClient[record.headers],
      on_over_limit: 'the client gets 429 with Retry-After',
      on_error: record.failureModeDeny ? 'the client gets 503' : 'the request continues',
    };
  }

  const explain = (reached: 'beforeAuth' | 'afterAuth') => (asked: ExplainedRequest) => {
    if (asked.route.transport.location !== undefined) return undefined;
    if (record === undefined)
      return { rate_limit: { asked: false, reason: 'there is no RateLimitService record' } } as const;
    return { rate_limit: limitsOf(record, asked, reached) };
  };
  return { beforeAuth: explain('beforeAuth'), afterAuth: explain('afterAuth') };
}

const noDescriptors: DescriptorsOf = () => [];

const whyNone = {
  beforeAuth: 'its labels count only requests that authentication lets pass',
  afterAuth: 'no label applies to this request',
} as const;

const headersToClient: Readonly<Record<RateLimitHeaderStyle, readonly string[]>> = {
  ietf: ['RateLimit-Policy', 'RateLimit'],
  draft_03: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
  none: [],
};

/** Returns the values that may be shown: parts of the request except credentials, and harmless parts of the mapping. */
function shownValues(
  { method, path, host, client, headers }: RequestAttributes,
  { labels, mapping }: Route,
  tokenHeaders: readonly string[],
) {
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    isCredential(name) || tokenHeaders.includes(name) ? [] : [decodeHeader(String(value))],
  );
  const words = labels.flatMap((group) => group.labels.flatMap((label) => wordOf(label, client)));
  return new Set([method, path, path.toLowerCase(), host, client, sourceCluster, mapping.service, ...sent, ...words]);
}

/** The value of Envoy's `generic_key` is a category of requests. With any other key, the value may be a secret. */
function wordOf(label: Label, client: string): readonly string[] {
  if (label.kind === 'masked_remote_address') return [maskAddress(client, label)];
  return label.kind === 'generic_key' && label.name === genericKey ? [label.value] : [];
}

function limitPart({ currentLimit, unlimited, algorithm, burst, shadow, shownDescriptor, source }: Rule): LimitPart {
  const { requestsPerUnit, unit, unitMultiplier = 1, name } = currentLimit;
  return {
    descriptor: shownDescriptor,
    name,
    unlimited,
    requests_per_unit: requestsPerUnit,
    unit,
    unit_multiplier: unitMultiplier,
    algorithm,
    burst,
    shadow_mode: shadow,
    source: source && formatSource(source),
  };
}
