/** The names of the headers that clients must not send, and of those that something in the gateway reads. */
import type { Mapping, RateLimitService } from '#config';
import type { ConfiguredAuthService } from './auth/stage.ts';

interface Records {
  readonly mappings: readonly Mapping[];
  readonly authServices: readonly Pick<ConfiguredAuthService, 'record'>[];
  readonly rateLimitService: Pick<RateLimitService, 'domain'> | undefined;
  readonly identityHeaders: readonly string[];
}

/** The identity headers of all auth services, which are stripped on every route, including open ones. */
export function strippedNames({
  authServices,
  identityHeaders,
}: Pick<Records, 'authServices' | 'identityHeaders'>): string[] {
  return [...authServices.flatMap(({ record }) => record.allowedAuthorizationHeaders), ...identityHeaders];
}

/** The names of the headers that limits, conditions and auth services read, and of those that mappings remove. */
export function namesRead({
  mappings,
  authServices,
  rateLimitService,
}: Omit<Records, 'identityHeaders'>): ReadonlySet<string> {
  const names = new Set([
    ...authServices.flatMap(({ record }) => record.allowedRequestHeaders),
    ...mappings.flatMap(({ sticky }) => (sticky?.kind === 'header' ? sticky.name : [])),
  ]);
  for (const { headers, labels, requestHeaders } of mappings) {
    const { add, remove } = requestHeaders;
    const groups = labels[rateLimitService?.domain ?? ''] ?? [];
    for (const label of groups.flatMap((group) => group.labels)) if (label.kind === 'header') names.add(label.header);
    for (const { name } of [...headers, ...add.filter(({ append }) => !append)]) names.add(name);
    for (const name of remove) names.add(name);
  }
  return names;
}
