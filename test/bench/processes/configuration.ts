/** Writes a configuration directory: the demo's users and data, and records for one kind of request. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './child.ts';

/**
 * For the hotel module: with an in-process limiter or one over gRPC. For an upstream: its mapping alone, with auth and a
 * label, or among many mappings.
 */
export type ConfigurationKind =
  | ('in-process' | 'grpc' | 'proxy' | 'proxy-auth')
  | ('proxy-among-10' | 'proxy-among-1000' | 'proxy-among-10000');

/** The ports of the processes that the records name. */
export interface ServicePorts {
  readonly upstreamPort: number;
  readonly ratelimitPort: number;
}

/** Creates the directory in `parent` and returns its path. */
export function writeConfiguration(parent: string, kind: ConfigurationKind, ports: ServicePorts): string {
  const directory = join(parent, 'config');
  for (const part of ['services', 'ratelimit']) mkdirSync(join(directory, part), { recursive: true });
  for (const file of ['users.yaml', 'demo.yaml']) copyFileSync(join(root, 'config', file), join(directory, file));
  // JSON is also YAML.
  const records = recordsOf(kind, ports).map((record) => JSON.stringify({ apiVersion: 'gateway/v1', ...record }));
  writeFileSync(join(directory, 'services/bench.yaml'), records.join('\n---\n'));
  writeFileSync(join(directory, 'ratelimit/bench.yaml'), JSON.stringify(limits));
  return directory;
}

/** Limits that count but are never exhausted. They are small integers in V8, like the limits in real files. */
const limits = {
  domain: 'gateway',
  descriptors: [{ key: 'x-gateway-test-allow', rate_limit: { unit: 'hour', requests_per_unit: 1_000_000_000 } }],
};

function recordsOf(kind: ConfigurationKind, { upstreamPort, ratelimitPort }: ServicePorts): object[] {
  const service = `127.0.0.1:${upstreamPort}`;
  const proxied = { kind: 'Mapping', name: 'proxied', prefix: '/proxied', service, allow_upgrade: ['websocket'] };
  switch (kind) {
    case 'proxy':
      return [proxied];
    case 'proxy-among-10':
      return [proxied, ...otherMappings(9, service)];
    case 'proxy-among-1000':
      return [proxied, ...otherMappings(999, service)];
    case 'proxy-among-10000':
      return [proxied, ...otherMappings(9999, service)];
    case 'proxy-auth':
      return [...authAndLimiter('ratelimit'), { ...proxied, labels }];
    case 'in-process':
      return [...authAndLimiter('ratelimit'), hotelRecord];
    case 'grpc':
      return [...authAndLimiter(`grpc://127.0.0.1:${ratelimitPort}`), hotelRecord];
  }
}

function otherMappings(count: number, service: string): object[] {
  return Array.from({ length: count }, (_, index) => ({
    kind: 'Mapping',
    name: `other-${index}`,
    prefix: `/others/${index % 100}/${index}`,
    service,
  }));
}

function authAndLimiter(limiter: string): object[] {
  return [
    { kind: 'AuthService', name: 'auth', auth_service: 'auth', allowed_authorization_headers: ['X-Travel-User'] },
    { kind: 'RateLimitService', name: 'ratelimit', service: limiter },
  ];
}

const header = 'x-gateway-test-allow';
const labels = { gateway: [{ test_allow: [{ [header]: { header, omit_if_not_present: true } }] }] };
export const hotelRecord = { kind: 'Mapping', name: 'hotel', prefix: '/v1/hotels', service: 'hotel', labels };
