/** The rows of requests, in the order of the table. */
import { isInstalled } from '../support/programs/installed.ts';
import { booking } from './booking.ts';
import { bookingRows } from './booking-rows.ts';
import { startEnvoyChain } from './envoy.ts';
import { proxyRows } from './proxy-rows.ts';
import { frontdeskOf, ownServer, type Row } from './servers.ts';

const bookingPath = `/v1/hotels/bookings/${booking.id}`;
const label = { 'x-gateway-test-allow': 'bench' };

/** 15 KiB in a hundred headers. Together with the others they almost reach HEADER_BYTES_MAX. */
const fullHeaders = Object.fromEntries(
  Array.from({ length: 100 }, (_, index) => [`x-full-${String(index).padStart(3, '0')}`, 'x'.repeat(140)]),
);

/** A body with the most keys and bytes allowed. No key is a field of a booking, so it is rejected after parsing. */
const fullBody = JSON.stringify(
  Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`full-${index}`, 'x'.repeat(48)])),
).padEnd(64 * 1024);

/** Starts with the log off and on. */
const starts = {
  'in-process': [frontdeskOf('in-process', 'error'), frontdeskOf('in-process', 'info')],
  grpc: [frontdeskOf('grpc', 'error'), frontdeskOf('grpc', 'info')],
} as const;

const envoyRow: Row = {
  name: 'envoy',
  title: 'Envoy, auth, limiter and hotels as four processes',
  path: `/bookings/${booking.id}`,
  headers: label,
  start: startEnvoyChain,
};

/** The rows that cannot be measured on this machine, and why. */
export const missingRows = [
  { name: envoyRow.name, title: envoyRow.title, program: 'envoy' },
  { name: 'nginx-1k', title: 'nginx, auth_request', program: 'nginx' },
].flatMap(({ program, ...row }) =>
  isInstalled(program) ? [] : [{ ...row, missing: `${program} is not on the PATH` }],
);

export const rows: readonly Row[] = [
  { name: 'node-http', title: 'bare node:http', path: '/', start: ownServer('node-http') },
  { name: 'koa', title: 'bare Koa', path: '/', start: ownServer('koa') },
  ...withLogOffAndOn({ name: 'chain', title: 'frontdesk, a booking', path: bookingPath, kind: 'in-process' }),
  {
    name: 'chain-otel',
    title: '… with spans, sent nowhere',
    path: bookingPath,
    start: frontdeskOf('in-process', 'error', {
      NODE_OPTIONS: `--import ${new URL('./servers/spans.js', import.meta.url).href}`,
    }),
  },
  ...withLogOffAndOn({
    name: 'label',
    title: '… with a label, limiter in-process',
    path: bookingPath,
    headers: label,
    kind: 'in-process',
  }),
  ...withLogOffAndOn({
    name: 'label-grpc',
    title: '… with a label, limiter over gRPC',
    path: bookingPath,
    headers: label,
    kind: 'grpc',
  }),
  {
    name: 'http2-call',
    title: 'bare Koa, a call of the limiter by node:http2',
    path: '/',
    start: ownServer('http2-call'),
  },
  ...(isInstalled('envoy') ? [envoyRow] : []),
  {
    name: 'full-headers',
    title: '… with 16 KiB of headers',
    path: bookingPath,
    headers: fullHeaders,
    start: starts['in-process'][0],
  },
  {
    name: 'full-body',
    title: 'a body of 64 KiB and 1,000 keys, refused',
    path: '/v1/hotels/bookings/',
    json: fullBody,
    status: 400,
    start: starts['in-process'][0],
  },
  ...bookingRows,
  ...proxyRows,
];

interface FrontdeskRow extends Omit<Row, 'start'> {
  readonly kind: keyof typeof starts;
}

function withLogOffAndOn({ kind, ...row }: FrontdeskRow): Row[] {
  const [off, on] = starts[kind];
  return [
    { ...row, start: off },
    { ...row, name: `${row.name}-log`, title: `${row.title}, access log`, start: on },
  ];
}
