/** The rows for proxied requests of several sizes, through frontdesk and through other proxies. */
import { isInstalled } from '../../support/programs/installed.ts';
import { mebibyte } from '../clients/body-chunks.ts';
import { startNginx } from '../processes/other-proxies.ts';
import { benchServer, frontdeskWith, type Row, type Start } from '../processes/start-servers.ts';
import type { Target } from '../table.ts';

const exchanges: readonly Pick<Row, 'name' | 'title' | 'path' | 'bodyBytes'>[] = [
  { name: '1k', title: 'proxy a GET of 1 KiB', path: '/proxied/1024' },
  { name: '64k', title: 'proxy a GET of 64 KiB', path: '/proxied/65536' },
  { name: '1m', title: 'proxy a GET of 1 MiB', path: `/proxied/${mebibyte}` },
  { name: 'post', title: 'proxy a POST of 1 MiB', path: '/proxied/2', bodyBytes: mebibyte },
];

export interface MeasuredProxy {
  readonly name: string;
  readonly title: string;
  readonly start: Start;
  /** For requests, compared with @fastify/http-proxy. */
  readonly target?: Target;
}

const httpProxy: MeasuredProxy = { name: 'http-proxy', title: '@fastify/http-proxy', start: benchServer('http-proxy') };

export const proxies: readonly MeasuredProxy[] = [
  httpProxy,
  { name: 'proxy', title: 'frontdesk', start: frontdeskWith('proxy'), target: { ratioMax: 1 } },
  {
    name: 'proxy-auth',
    title: 'frontdesk with auth and a label',
    start: frontdeskWith('proxy-auth'),
    target: { ratioMax: 1.1 },
  },
  ...(isInstalled('nginx') ? [{ name: 'nginx', title: 'nginx with auth_request', start: startNginx }] : []),
];

export const proxyRows: readonly Row[] = [
  ...exchanges.flatMap((exchange) =>
    proxies.map((proxy) => ({
      ...exchange,
      ...proxy,
      headers: { 'x-gateway-test-allow': 'bench' },
      name: `${proxy.name}-${exchange.name}`,
      title: `${exchange.title}: ${proxy.title}`,
      peer: proxy === httpProxy ? 'koa' : `http-proxy-${exchange.name}`,
    })),
  ),
  // Shows how other mappings affect a request.
  ...[10, 10_000].map((count) => ({
    name: `among-${count}`,
    title: `proxy a GET of 1 KiB: frontdesk with ${count} mappings`,
    path: '/proxied/1024',
    start: frontdeskWith(count),
  })),
];
