/** A configuration directory for a benchmark: the demo's users and data, and records for one kind of request. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './child.ts';

/** How a label is decided on, or, with `proxy`, a route to the upstream and nothing else. */
export type ConfigurationKind = 'in-process' | 'grpc' | 'proxy';

export interface Ports {
  readonly upstreamPort: number;
  readonly ratelimitPort: number;
}

/** Gives the directory, made anew inside another. */
export function writeConfiguration(parent: string, kind: ConfigurationKind, ports: Ports): string {
  const directory = join(parent, 'config');
  for (const part of ['services', 'ratelimit']) mkdirSync(join(directory, part), { recursive: true });
  for (const file of ['users.yaml', 'demo.yaml']) copyFileSync(join(root, 'config', file), join(directory, file));
  // JSON is YAML.
  const records = recordsOf(kind, ports).map((record) => JSON.stringify({ apiVersion: 'gateway/v1', ...record }));
  writeFileSync(join(directory, 'services/bench.yaml'), records.join('\n---\n'));
  writeFileSync(join(directory, 'ratelimit/bench.yaml'), JSON.stringify(limits));
  return directory;
}

/** Counted, and never used up. */
const limits = {
  domain: 'gateway',
  descriptors: [{ key: 'x-gateway-test-allow', rate_limit: { unit: 'hour', requests_per_unit: 4_000_000_000 } }],
};

function recordsOf(kind: ConfigurationKind, { upstreamPort, ratelimitPort }: Ports): object[] {
  if (kind === 'proxy') {
    return [{ kind: 'Mapping', name: 'proxied', prefix: '/proxied', service: `127.0.0.1:${upstreamPort}` }];
  }
  const header = 'x-gateway-test-allow';
  return [
    { kind: 'AuthService', name: 'auth', auth_service: 'auth', allowed_authorization_headers: ['X-Travel-User'] },
    {
      kind: 'RateLimitService',
      name: 'ratelimit',
      service: kind === 'grpc' ? `grpc://127.0.0.1:${ratelimitPort}` : 'ratelimit',
    },
    {
      kind: 'Mapping',
      name: 'hotel',
      prefix: '/v1/hotels',
      service: 'hotel',
      labels: { gateway: [{ test_allow: [{ [header]: { header, omit_if_not_present: true } }] }] },
    },
  ];
}
