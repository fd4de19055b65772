/** The rows that measure requests, in the order of the table. */
import { isInstalled } from '../../support/programs/installed.ts';
import { booking } from '../clients/booking.ts';
import { freshToken, rememberedToken } from '../clients/tokens.ts';
import { startEnvoy } from '../processes/other-proxies.ts';
import { benchServer, frontdeskWith, type Row } from '../processes/start-servers.ts';
import type { TableRow } from '../table.ts';
import { bookingRows } from './booking-rows.ts';
import { proxyRows } from './proxy-rows.ts';

const readWithLabel = 'read a booking with a rate-limit label';
const bookingPath = `/v1/hotels/bookings/${booking.id}`;
const labelHeaders = { 'x-gateway-test-allow': 'bench' };

/** A hundred headers with 15 KiB. Together with the others they almost reach HEADER_BYTES_MAX. */
const fullHeaders = Object.fromEntries(
  Array.from({ length: 100 }, (_, index) => [`x-full-${String(index).padStart(3, '0')}`, 'x'.repeat(140)]),
);

/** A body with the most keys and bytes allowed. No key is a field of a booking, so it is rejected after parsing. */
const fullBody = JSON.stringify(
  Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`full-${index}`, 'x'.repeat(48)])),
).padEnd(64 * 1024);

/** Starts frontdesk with the access log off and on. */
const withAccessLog = { LOG_LEVEL: 'info' };
/** The plain app applies CORS too. */
const withCors = { CORS_ORIGINS: 'https://app.example' };
const starts = {
  'in-process': [frontdeskWith('in-process', withCors), frontdeskWith('in-process', { ...withCors, ...withAccessLog })],
  grpc: [frontdeskWith('grpc'), frontdeskWith('grpc', withAccessLog)],
} as const;

const plain = { title: 'read a booking: a plain Koa app with the same duties', path: bookingPath };
const startPlain = benchServer('plain-koa');
const plainRows: readonly Row[] = [
  { ...plain, name: 'plain', start: startPlain },
  {
    ...plain,
    name: 'plain-log',
    title: `${plain.title}, and pino`,
    start: benchServer('plain-koa', { ACCESS_LOG: 'on' }),
  },
  { ...plain, name: 'plain-cold', title: `${plain.title}, with cold caches`, coldCaches: true, start: startPlain },
];

const envoyRow = {
  name: 'envoy',
  title: `${readWithLabel}: Envoy, auth, limiter and hotels as four processes`,
  peer: 'label',
  target: { ratioMin: 5 },
};
const nginxRow = { name: 'nginx-1k', title: 'proxy a GET of 1 KiB: nginx with auth_request', peer: 'http-proxy-1k' };

/** The rows that cannot be measured on this machine, and why. */
export const missingRows: readonly TableRow[] = [
  { program: 'envoy', row: envoyRow },
  { program: 'nginx', row: nginxRow },
].flatMap(({ program, row }) =>
  isInstalled(program) ? [] : [{ figure: undefined, unit: '', missing: `${program} is not on the PATH`, ...row }],
);

export const rows: readonly Row[] = [
  { name: 'node-http', title: 'a fixed response: bare node:http', path: '/', start: benchServer('node-http') },
  { name: 'koa', title: 'a fixed response: bare Koa', path: '/', start: benchServer('koa') },
  ...plainRows,
  ...withLogOffAndOn(
    {
      name: 'chain',
      title: 'read a booking: frontdesk',
      kind: 'in-process',
      peer: 'plain',
      matchesPeer: true,
      target: { ratioMax: 1 },
    },
    { peer: 'plain-log', matchesPeer: true, target: { ratioMax: 1 } },
  ),
  {
    name: 'chain-cold',
    title: 'read a booking with cold caches: frontdesk',
    path: bookingPath,
    coldCaches: true,
    start: starts['in-process'][0],
    peer: 'plain-cold',
    target: { ratioMax: 1.15 },
  },
  {
    name: 'chain-otel',
    title: 'read a booking: frontdesk with OpenTelemetry',
    path: bookingPath,
    start: frontdeskWith('in-process', {
      NODE_OPTIONS: `--import ${new URL('../servers/spans.js', import.meta.url).href}`,
    }),
  },
  ...tokenRows(),
  ...withLogOffAndOn({
    name: 'label',
    title: `${readWithLabel}: frontdesk`,
    headers: labelHeaders,
    kind: 'in-process',
    peer: 'chain',
    target: { extraMax: 5 },
  }),
  ...withLogOffAndOn({
    name: 'label-grpc',
    title: `${readWithLabel}: frontdesk with a limiter over gRPC`,
    headers: labelHeaders,
    kind: 'grpc',
    peer: 'chain',
    target: { extraMax: 70 },
  }),
  {
    name: 'http2-call',
    title: 'call the limiter over gRPC: bare Koa with node:http2',
    path: '/',
    start: benchServer('http2-call'),
  },
  ...(isInstalled('envoy')
    ? [{ ...envoyRow, path: `/bookings/${booking.id}`, headers: labelHeaders, start: startEnvoy }]
    : []),
  {
    name: 'full-headers',
    title: 'read a booking with 16 KiB of headers: frontdesk',
    path: bookingPath,
    headers: fullHeaders,
    start: starts['in-process'][0],
    peer: 'chain',
  },
  {
    name: 'full-body',
    title: 'reject a body of 64 KiB with 1,000 keys: frontdesk',
    path: '/v1/hotels/bookings/',
    json: fullBody,
    status: 400,
    start: starts['in-process'][0],
    peer: 'chain',
  },
  ...bookingRows,
  ...proxyRows,
];

/** Compared with a password. The headers are getters, because a token must be new when a server starts. */
function tokenRows(): readonly Row[] {
  const common = { path: bookingPath, start: frontdeskWith('tokens'), peer: 'chain' };
  return [
    {
      ...common,
      name: 'token',
      title: 'read a booking with a token (RS256) that is remembered: frontdesk',
      get headers() {
        return { authorization: rememberedToken() };
      },
    },
    {
      ...common,
      name: 'token-fresh',
      title: 'read a booking with a token (RS256) that is verified each time: frontdesk',
      get headers() {
        return { authorization: freshToken() };
      },
    },
  ];
}

interface FrontdeskRow extends Omit<Row, 'start' | 'path'> {
  readonly kind: keyof typeof starts;
}

/** @param withLog fields of the row with the access log on. By default it is compared with bare Koa. */
function withLogOffAndOn(
  { kind, peer, matchesPeer = false, target, ...row }: FrontdeskRow,
  withLog: Pick<Row, 'peer' | 'matchesPeer' | 'target'> = {},
): Row[] {
  const [off, on] = starts[kind];
  const path = bookingPath;
  const comparison = { matchesPeer, ...(peer && { peer }), ...(target && { target }) };
  return [
    { ...row, path, start: off, ...comparison },
    { ...row, path, name: `${row.name}-log`, title: `${row.title}, access log on`, start: on, ...withLog },
  ];
}
