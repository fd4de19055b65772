/** Mapping: the requests that match go to `service`. */
import * as z from 'zod';
import { commaList } from './choices.ts';
import { circuitBreakersSchema } from './circuit-breakers.ts';
import { corsSchema } from './cors.ts';
import { envelope, label, serviceReference, strict, text, timeoutMs, wholeNumber } from './fields.ts';
import type { Mapping } from './gateway-records.ts';
import { createGivenFields } from './given-fields.ts';
import { headerRuleFields, headerRulesOf } from './header-rules.ts';
import { healthChecksSchema, outlierDetectionSchema } from './health-check.ts';
import { hostMatchOf } from './host-match.ts';
import { labelsSchema } from './labels.ts';
import { mappingDefaults } from './mapping-defaults.ts';
import { mappingExamples } from './mapping-examples.ts';
import { headersOf, matchFields, methodOf, prefixMatchOf, queryParametersOf } from './mapping-match.ts';
import { areConsistent, checkMapping } from './mapping-rules.ts';
import { withoutTrailingSlash } from './paths.ts';
import { type RecordKind, recordKind } from './record-kind.ts';
import { redirectOf, targetFields } from './redirect.ts';
import { retryPolicySchema } from './retry-policy.ts';
import { upgradeFault } from './upgrades.ts';

const fields = strict({
  ...envelope,
  ...matchFields,
  service: serviceReference(['http', 'https']),
  ...targetFields,
  weight: wholeNumber(0, 100).optional(),
  shadow: z.boolean().default(false),
  timeout_ms: timeoutMs(0).optional(),
  connect_timeout_ms: timeoutMs().optional(),
  idle_timeout_ms: timeoutMs(0).optional(),
  retry_policy: retryPolicySchema.optional(),
  circuit_breakers: circuitBreakersSchema.optional(),
  health_checks: healthChecksSchema.optional(),
  outlier_detection: outlierDetectionSchema.optional(),
  load_balancer: strict({ policy: z.enum(['round_robin', 'least_request']) }).optional(),
  cors: corsSchema.optional(),
  ...headerRuleFields,
  allow_upgrade: commaList()
    .pipe(z.array(text(upgradeFault).transform((protocol) => protocol.toLowerCase())))
    .optional(),
  labels: labelsSchema.optional(),
  bypass_auth: z.boolean().default(false),
  auth_service: label().optional(),
});

export type MappingFields = z.infer<typeof fields>;

/** Every field that a Mapping may have. */
export const mappingFieldNames: readonly string[] = Object.keys(fields.shape);

const givenFields = createGivenFields(fields.shape);

export const mappingKind: RecordKind<Mapping> = recordKind({
  schema: fields.superRefine(checkMapping, { when: ({ value }) => typeof value === 'object' && value !== null }),
  readOrdinary: readConsistent,
  examples: mappingExamples,
  become: toMapping,
});

function readConsistent(value: unknown): MappingFields | undefined {
  const given = givenFields(value);
  return given !== undefined && areConsistent(given) ? given : undefined;
}

/** Written out: there may be 10,000 of them, which share what most of them do not say. */
function toMapping(given: MappingFields, source: Mapping['source']): Mapping {
  const defaults = mappingDefaults;
  return {
    kind: 'Mapping',
    name: given.name,
    prefix: given.prefix_regex ? given.prefix : withoutTrailingSlash(given.prefix),
    prefixMatch: prefixMatchOf(given),
    caseSensitive: given.case_sensitive,
    host: hostMatchOf(given),
    method: methodOf(given),
    headers: headersOf(given),
    queryParameters: queryParametersOf(given),
    precedence: given.precedence,
    weight: given.weight,
    shadow: given.shadow,
    rewrite: given.rewrite ?? (given.prefix_regex ? '' : defaults.rewrite),
    regexRewrite: given.regex_rewrite,
    hostRewrite: given.host_rewrite,
    redirect: redirectOf(given, given.service),
    service: given.service,
    timeoutMs: given.timeout_ms,
    connectTimeoutMs: given.connect_timeout_ms,
    idleTimeoutMs: given.idle_timeout_ms,
    retryPolicy: given.retry_policy,
    circuitBreakers: given.circuit_breakers ?? defaults.circuitBreakers,
    healthCheck: given.health_checks,
    outlierDetection: given.outlier_detection ?? defaults.outlierDetection,
    loadBalancer: given.load_balancer?.policy ?? defaults.loadBalancer,
    cors: given.cors,
    requestHeaders: headerRulesOf(given, 'request'),
    responseHeaders: headerRulesOf(given, 'response'),
    allowUpgrade: given.allow_upgrade ?? defaults.allowUpgrade,
    labels: given.labels ?? defaults.labels,
    bypassAuth: given.bypass_auth,
    authService: given.auth_service,
    source,
  };
}
