/** Writes a configuration directory: the demo's users and data, and records for one kind of request. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { yamlOf } from '../../support/temporary-files.ts';
import { tokenProvider } from '../clients/tokens.ts';
import { root } from './child.ts';

/**
 * For the hotel module: with an in-process limiter, also with tokens, or one over gRPC. For an upstream: its mapping alone, with auth and a
 * label, or among this number of mappings. For a gRPC service: its mapping.
 */
export type ConfigurationKind = 'in-process' | 'tokens' | 'grpc' | 'proxy' | 'proxy-auth' | 'grpc-proxy' | number;

/** The ports of the processes that the servers under test call. */
export interface Ports {
  readonly upstreamPort: number;
  readonly ratelimitPort: number;
  readonly authPort: number;
}

/** Creates the directory in `parent` and returns its path. */
export function writeConfiguration(parent: string, kind: ConfigurationKind, ports: Partial<Ports> = {}): string {
  const directory = join(parent, 'config');
  for (const part of ['services', 'ratelimit']) mkdirSync(join(directory, part), { recursive: true });
  for (const file of ['users.yaml', 'demo.yaml']) copyFileSync(join(root, 'config', file), join(directory, file));
  writeFileSync(join(directory, 'services/bench.yaml'), yamlOf(...recordsOf(kind, ports)));
  writeFileSync(join(directory, 'ratelimit/bench.yaml'), JSON.stringify(limits));
  return directory;
}

/** Limits that count but are never exhausted. They are small integers in V8, like the limits in real files. */
const limits = {
  domain: 'gateway',
  descriptors: [{ key: 'x-gateway-test-allow', rate_limit: { unit: 'hour', requests_per_unit: 1_000_000_000 } }],
};

/** No server listens on the default port. */
function recordsOf(kind: ConfigurationKind, { upstreamPort = 9, ratelimitPort = 9 }: Partial<Ports>): object[] {
  const service = `127.0.0.1:${upstreamPort}`;
  const proxied = mappingRecord('proxied', '/proxied', service, { allow_upgrade: ['websocket'] });
  switch (kind) {
    case 'proxy':
      return [proxied];
    case 'proxy-auth':
      return [...authAndLimiter('ratelimit'), { ...proxied, labels }];
    case 'grpc-proxy':
      return [mappingRecord('grpc', '/', service, { grpc: true })];
    case 'in-process':
      return [...authAndLimiter('ratelimit'), hotelRecord];
    case 'tokens':
      return [...authAndLimiter('ratelimit', { providers: [tokenProvider.name] }), tokenProvider, hotelRecord];
    case 'grpc':
      return [...authAndLimiter(`grpc://127.0.0.1:${ratelimitPort}`), hotelRecord];
    default:
      return [proxied, ...otherMappings(kind - 1, service)];
  }
}

export function mappingRecord(name: string, prefix: string, service: string, more: object = {}): object {
  return { apiVersion: 'gateway/v1', kind: 'Mapping', name, prefix, service, ...more };
}

export function otherMappings(count: number, service: string, more: object = {}): object[] {
  return Array.from({ length: count }, (_, index) =>
    mappingRecord(`other-${index}`, `/others/${index % 100}/${index}`, service, more),
  );
}

function authAndLimiter(limiter: string, more: object = {}): object[] {
  const auth = { auth_service: 'auth', allowed_authorization_headers: ['X-Travel-User'], ...more };
  return [
    { apiVersion: 'gateway/v1', kind: 'AuthService', name: 'auth', ...auth },
    { apiVersion: 'gateway/v1', kind: 'RateLimitService', name: 'ratelimit', service: limiter },
  ];
}

const header = 'x-gateway-test-allow';
const labels = { gateway: [{ test_allow: [{ [header]: { header, omit_if_not_present: true } }] }] };
export const hotelRecord = mappingRecord('hotel', '/v1/hotels', 'hotel', { labels });
