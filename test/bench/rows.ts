/** The rows of the table, in its order. */
import { booking } from './booking.ts';
import { bookingRows } from './booking-rows.ts';
import { proxyRows } from './proxy-rows.ts';
import { frontdeskOf, ownServer, type Row } from './servers.ts';

const bookingPath = `/v1/hotels/bookings/${booking.id}`;
const label = { 'x-gateway-test-allow': 'bench' };

/** With the log off and on. */
const starts = {
  'in-process': [frontdeskOf('in-process', 'error'), frontdeskOf('in-process', 'info')],
  grpc: [frontdeskOf('grpc', 'error'), frontdeskOf('grpc', 'info')],
} as const;

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
