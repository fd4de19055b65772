/** The rows for proxied requests, small and large, and for the same requests through other proxies. */
import { isInstalled } from '../support/programs/installed.ts';
import type { ConfigurationKind } from './configuration.ts';
import { startNginx } from './nginx.ts';
import { megabyte } from './pieces.ts';
import { frontdeskOf, ownServer, type Row } from './servers.ts';

interface Exchange {
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly bodyBytes?: number;
}

const exchanges: readonly Exchange[] = [
  { name: '1k', title: 'GET 1 KiB', path: '/proxied/1024' },
  { name: '64k', title: 'GET 64 KiB', path: '/proxied/65536' },
  { name: '1m', title: 'GET 1 MiB', path: `/proxied/${megabyte}` },
  { name: 'post', title: 'POST 1 MiB', path: '/proxied/2', bodyBytes: megabyte },
];

export interface MeasuredProxy {
  readonly name: string;
  readonly title: string;
  readonly start: Row['start'];
}

export const proxies: readonly MeasuredProxy[] = [
  { name: 'http-proxy', title: '@fastify/http-proxy', start: ownServer('http-proxy') },
  { name: 'proxy', title: 'frontdesk', start: frontdeskOf('proxy', 'error') },
  { name: 'proxy-auth', title: 'frontdesk, auth and labels', start: frontdeskOf('proxy-auth', 'error') },
  ...(isInstalled('nginx') ? [{ name: 'nginx', title: 'nginx, auth_request', start: startNginx }] : []),
];

/** Rows that show how the number of other mappings affects a request. */
const crowds: readonly [number, ConfigurationKind][] = [
  [10, 'proxy-among-10'],
  [10_000, 'proxy-among-10000'],
];

export const proxyRows: readonly Row[] = [
  ...exchanges.flatMap(({ name, title, ...exchange }) =>
    proxies.map((proxy) => ({
      ...exchange,
      ...proxy,
      headers: { 'x-gateway-test-allow': 'bench' },
      name: `${proxy.name}-${name}`,
      title: `${title}: ${proxy.title}`,
    })),
  ),
  ...crowds.map(([count, kind]) => ({
    name: `among-${count}`,
    title: `GET 1 KiB: frontdesk, ${count} mappings`,
    path: '/proxied/1024',
    start: frontdeskOf(kind, 'error'),
  })),
];
