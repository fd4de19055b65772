/** The rows for proxied requests of several sizes, through frontdesk and through other proxies. */
import { isInstalled } from '../../support/programs/installed.ts';
import { mebibyte } from '../clients/body-chunks.ts';
import type { ConfigurationKind } from '../processes/configuration.ts';
import { startNginx } from '../processes/nginx.ts';
import { benchServer, frontdeskWith, type Row } from '../processes/start-servers.ts';

interface Exchange {
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly bodyBytes?: number;
}

const exchanges: readonly Exchange[] = [
  { name: '1k', title: 'proxy a GET of 1 KiB', path: '/proxied/1024' },
  { name: '64k', title: 'proxy a GET of 64 KiB', path: '/proxied/65536' },
  { name: '1m', title: 'proxy a GET of 1 MiB', path: `/proxied/${mebibyte}` },
  { name: 'post', title: 'proxy a POST of 1 MiB', path: '/proxied/2', bodyBytes: mebibyte },
];

export interface MeasuredProxy {
  readonly name: string;
  readonly title: string;
  readonly start: Row['start'];
}

export const proxies: readonly MeasuredProxy[] = [
  { name: 'http-proxy', title: '@fastify/http-proxy', start: benchServer('http-proxy') },
  { name: 'proxy', title: 'frontdesk', start: frontdeskWith('proxy', 'error') },
  { name: 'proxy-auth', title: 'frontdesk with auth and a label', start: frontdeskWith('proxy-auth', 'error') },
  ...(isInstalled('nginx') ? [{ name: 'nginx', title: 'nginx with auth_request', start: startNginx }] : []),
];

/** The numbers of mappings, which show how other mappings affect a request. */
const mappingCounts: readonly [number, ConfigurationKind][] = [
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
  ...mappingCounts.map(([count, kind]) => ({
    name: `among-${count}`,
    title: `proxy a GET of 1 KiB: frontdesk with ${count} mappings`,
    path: '/proxied/1024',
    start: frontdeskWith(kind, 'error'),
  })),
];
