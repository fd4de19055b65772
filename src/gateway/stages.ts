/** The stages of a request after routing, in order: what each one does, and what it says of a request that is not sent. */
import { hash } from 'node:crypto';
import { callsService, type RateLimitService } from '#config';
import { rejectAddress, removeHeaders, requestContext } from '#http';
import { rejectLoop } from '#proxy';
import type { Limiter } from '#ratelimit';
import type { ConfiguredAuthService } from './auth/stage.ts';
import type { PathChecks } from './check-paths.ts';
import type { Disguises } from './disguises.ts';
import { type AuthPart, createExplainAuth } from './explain/auth.ts';
import { createExplainForward, explainShadow, type ForwardParts, type ShadowPart } from './explain/forward.ts';
import { createExplainLimit, type RateLimitPart } from './explain/limits.ts';
import type { DescriptorsOf } from './limits/descriptors.ts';
import type { AskLimiter } from './limits/stage.ts';
import type { Resolve } from './resolve-service.ts';
import type { ExplainedRequest, RoutedRequest } from './routed-request.ts';
import type { StageResult } from './stage-result.ts';

export interface Stage {
  readonly name: string;
  /** Throws a Problem to reject the request. */
  readonly run: (routed: RoutedRequest) => StageResult;
  /**
   * Resolves to what the stage adds to an explanation. Edits the request and throws as `run` does, but calls no other
   * service and counts nothing.
   */
  readonly explain: (asked: ExplainedRequest) => StageParts | undefined | Promise<StageParts>;
}

export interface StageParts extends ForwardParts {
  readonly auth?: AuthPart;
  readonly rate_limit?: RateLimitPart;
  readonly shadow?: ShadowPart | undefined;
  /** The Problem with which the stage rejects the request, if it describes itself as well. Otherwise it throws. */
  readonly rejection?: unknown;
}

export interface StagesParts extends PathChecks {
  readonly disguises: Disguises;
  /** Undefined when there is no rate-limit service. */
  readonly askLimiter: AskLimiter | undefined;
  readonly authServices: readonly ConfiguredAuthService[];
  readonly rateLimitService: RateLimitService | undefined;
  readonly limiter?: Limiter | undefined;
  readonly resolve: Resolve;
  readonly bodyBytesMax: number | undefined;
}

export function createStages(parts: StagesParts): readonly Stage[] {
  const { disguises, checkAmbiguity, checkReferences, askLimiter } = parts;
  const explainLimit = createExplainLimit(parts);

  function limitBy(descriptorsOf: DescriptorsOf | undefined, { request, attributes }: RoutedRequest): StageResult {
    if (descriptorsOf === undefined || askLimiter === undefined) return 'continue';
    request.stage = 'limit';
    return askLimiter(request, descriptorsOf(attributes));
  }

  return [
    ownStage('rejectAddress', rejectRefusedAddress),
    ownStage('removeDisguises', ({ request: { ctx }, route }) =>
      disguises.removeUnkept?.(ctx.req, requestContext(ctx).addresses.trusts(ctx.req), route.mapping),
    ),
    ownStage('rejectEndedVersion', rejectEndedVersion),
    // Before the auth service is asked, because it may be the gateway itself by mistake.
    ownStage('rejectLoopingRequest', ({ request }) => rejectLoop(request.ctx.req)),
    ownStage('rejectAmbiguousPath', ({ attributes, route }) => checkAmbiguity?.(attributes, route)),
    {
      name: 'limitBeforeAuth',
      run: (routed) => limitBy(routed.route.descriptors.beforeAuth, routed),
      explain: explainLimit.beforeAuth,
    },
    { name: 'authenticate', run: authenticate, explain: createExplainAuth(parts) },
    // Limits may count requests by this header, and show and store its values.
    ownStage('replaceKey', ({ request, route }) => {
      const { headers } = request.ctx.req;
      const name = route.auth?.record.apiKeyHeader;
      const key = name === undefined ? undefined : headers[name];
      if (name !== undefined && key !== undefined) headers[name] = digestOf([key].flat().join());
    }),
    {
      name: 'limitAfterAuth',
      run: (routed) => limitBy(routed.route.descriptors.afterAuth, routed),
      explain: explainLimit.afterAuth,
    },
    ownStage('rejectForeignReferences', ({ request, attributes, route }) => {
      request.stage = 'service';
      checkReferences(request.ctx, attributes, route);
    }),
    // After the limits, which may count requests by this header.
    ownStage('removeCredentials', ({ request, route }) => {
      const { removeAuthorization, apiKeyHeader } = route.auth?.record ?? {};
      const { req } = request.ctx;
      if (removeAuthorization === true) delete req.headers.authorization;
      if (apiKeyHeader !== undefined && req.headers[apiKeyHeader] !== undefined)
        removeHeaders(req, new Set([apiKeyHeader]));
    }),
    { name: 'copyToShadow', run: copyToShadow, explain: explainShadow },
    { name: 'forward', run: forward, explain: createExplainForward(parts) },
  ];
}

/** Identifies an API key without revealing it. */
function digestOf(key: string): string {
  return `sha256:${hash('sha256', key, 'hex').slice(0, 16)}`;
}

/** A stage that needs no other service, so that it handles a request that is explained like any other. */
function ownStage(name: string, handle: (routed: RoutedRequest) => void): Stage {
  return {
    name,
    run(routed) {
      handle(routed);
      return 'continue';
    },
    explain(asked) {
      handle(asked);
      return undefined;
    },
  };
}

function rejectRefusedAddress({ request, route: { addressFault } }: RoutedRequest): void {
  if (addressFault === undefined) return;
  const { ctx } = request;
  request.stage = 'address';
  rejectAddress(addressFault(requestContext(ctx).addresses.knownClient(ctx.req)));
  request.stage = 'service';
}

export function rejectEndedVersion({ version }: Pick<RoutedRequest, 'version'>): void {
  const ended = version?.ended();
  if (ended !== undefined) throw ended;
}

function authenticate({ request, attributes, route }: RoutedRequest): StageResult {
  if (route.auth === undefined) return 'continue';
  request.stage = 'auth';
  return route.auth.authenticate(request.ctx, attributes);
}

/** Nobody has checked a request that calls no service, so it is not copied either. */
function copyToShadow({ request, route, shadow }: RoutedRequest): StageResult {
  if (shadow !== undefined && callsService(route.mapping)) shadow.transport.shadow?.(request.ctx);
  return 'continue';
}

function forward({ request, route }: RoutedRequest): StageResult {
  return route.transport.forward(request.ctx);
}
