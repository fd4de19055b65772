/** The rows that measure requests, in the order of the table. */
import { isInstalled } from '../../support/programs/installed.ts';
import { booking } from '../clients/booking.ts';
import { startEnvoy } from '../processes/envoy.ts';
import { benchServer, frontdeskWith, type Row } from '../processes/start-servers.ts';
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
const starts = {
  'in-process': [frontdeskWith('in-process', 'error'), frontdeskWith('in-process', 'info')],
  grpc: [frontdeskWith('grpc', 'error'), frontdeskWith('grpc', 'info')],
} as const;

const envoyRow: Row = {
  name: 'envoy',
  title: `${readWithLabel}: Envoy, auth, limiter and hotels as four processes`,
  path: `/bookings/${booking.id}`,
  headers: labelHeaders,
  start: startEnvoy,
};

/** The rows that cannot be measured on this machine, and why. */
export const missingRows = [
  { name: envoyRow.name, title: envoyRow.title, program: 'envoy' },
  { name: 'nginx-1k', title: 'proxy a GET of 1 KiB: nginx with auth_request', program: 'nginx' },
].flatMap(({ program, ...row }) =>
  isInstalled(program) ? [] : [{ ...row, missing: `${program} is not on the PATH` }],
);

export const rows: readonly Row[] = [
  { name: 'node-http', title: 'a fixed response: bare node:http', path: '/', start: benchServer('node-http') },
  { name: 'koa', title: 'a fixed response: bare Koa', path: '/', start: benchServer('koa') },
  ...withLogOffAndOn({ name: 'chain', title: 'read a booking: frontdesk', path: bookingPath, kind: 'in-process' }),
  {
    name: 'chain-otel',
    title: 'read a booking: frontdesk with OpenTelemetry',
    path: bookingPath,
    start: frontdeskWith('in-process', 'error', {
      NODE_OPTIONS: `--import ${new URL('../servers/spans.js', import.meta.url).href}`,
    }),
  },
  ...withLogOffAndOn({
    name: 'label',
    title: `${readWithLabel}: frontdesk`,
    path: bookingPath,
    headers: labelHeaders,
    kind: 'in-process',
  }),
  ...withLogOffAndOn({
    name: 'label-grpc',
    title: `${readWithLabel}: frontdesk with a limiter over gRPC`,
    path: bookingPath,
    headers: labelHeaders,
    kind: 'grpc',
  }),
  {
    name: 'http2-call',
    title: 'call the limiter over gRPC: bare Koa with node:http2',
    path: '/',
    start: benchServer('http2-call'),
  },
  ...(isInstalled('envoy') ? [envoyRow] : []),
  {
    name: 'full-headers',
    title: 'read a booking with 16 KiB of headers: frontdesk',
    path: bookingPath,
    headers: fullHeaders,
    start: starts['in-process'][0],
  },
  {
    name: 'full-body',
    title: 'reject a body of 64 KiB with 1,000 keys: frontdesk',
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
    { ...row, name: `${row.name}-log`, title: `${row.title}, access log on`, start: on },
  ];
}
