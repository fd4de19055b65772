/** Mapping: requests whose path starts with `prefix` go to `service`. */
import * as z from 'zod';
import type { Mapping } from './configuration.ts';
import { envelope, serviceReference, strict, text, timeoutMs } from './fields.ts';
import { labelsSchema } from './labels.ts';
import { prefixFault, rewriteFault, withoutTrailingSlash } from './paths.ts';
import { type RecordKind, recordKind } from './record-kind.ts';

const schema = strict({
  ...envelope,
  prefix: text(prefixFault).transform(withoutTrailingSlash),
  rewrite: text(rewriteFault).transform(withoutTrailingSlash).default('/'),
  service: serviceReference(['http', 'https']),
  labels: labelsSchema.default({}),
  timeout_ms: timeoutMs().optional(),
  connect_timeout_ms: timeoutMs().optional(),
  bypass_auth: z.boolean().default(false),
});

const examples = {
  apiVersion: 'gateway/v1',
  name: 'hotel',
  prefix: '/v1/hotels',
  rewrite: '/ (or "" to leave the path alone)',
  service: 'hotel',
  labels: '{ gateway: [{ user: [{ x-travel-user: { header: X-Travel-User } }] }] }',
  header: 'X-Travel-User',
  omit_if_not_present: 'true',
  default: '"none"',
  timeout_ms: '3000',
  connect_timeout_ms: '3000',
  bypass_auth: 'true',
} as const;

export const mappingKind: RecordKind<Mapping> = recordKind(schema, examples, (fields, source) => ({
  kind: 'Mapping',
  name: fields.name,
  prefix: fields.prefix,
  rewrite: fields.rewrite,
  service: fields.service,
  labels: fields.labels,
  timeoutMs: fields.timeout_ms,
  connectTimeoutMs: fields.connect_timeout_ms,
  bypassAuth: fields.bypass_auth,
  source,
}));
