/** AuthService: every API request is first put to this service. */
import * as z from 'zod';
import type { AuthService } from './configuration.ts';
import { envelope, headerName, serviceReference, strict, timeoutMs, wholeNumber } from './fields.ts';
import { type RecordKind, recordKind } from './record-kind.ts';

/** Headers that frame or address a message: taken away from every client request, they would break it. */
const untouchable = ['connection', 'content-length', 'host', 'transfer-encoding'];

const schema = strict({
  ...envelope,
  auth_service: serviceReference(['http', 'https']),
  proto: z.literal('http').default('http'),
  allowed_authorization_headers: z.array(headerName().check(refuseUntouchable)).default([]),
  timeout_ms: timeoutMs().default(5000),
  status_on_error: strict({ code: wholeNumber(400, 599) }).default({
    code: 503,
  }),
  failure_mode_allow: z.boolean().default(false),
});

const examples = {
  apiVersion: 'gateway/v1',
  name: 'auth',
  auth_service: 'auth',
  proto: 'http',
  allowed_authorization_headers: '[X-Travel-User]',
  timeout_ms: '5000',
  status_on_error: '{ code: 503 }',
  failure_mode_allow: 'true',
} as const;

export const authServiceKind: RecordKind<AuthService> = recordKind(schema, examples, (fields, source) => ({
  kind: 'AuthService',
  name: fields.name,
  authService: fields.auth_service,
  proto: fields.proto,
  allowedAuthorizationHeaders: fields.allowed_authorization_headers,
  timeoutMs: fields.timeout_ms,
  statusOnError: fields.status_on_error.code,
  failureModeAllow: fields.failure_mode_allow,
  source,
}));

function refuseUntouchable({ value, issues }: z.core.ParsePayload<string>): void {
  if (!untouchable.includes(value)) return;
  const params = {
    remedy: 'Remove it: each listed header is taken away from what clients send.',
  };
  issues.push({
    code: 'custom',
    input: value,
    message: `"${value}" frames the request`,
    params,
  });
}
