/** A plain Koa app that reads a booking with the same duties as frontdesk, and logs requests if ACCESS_LOG is set. */
import { hash, randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import cors from '@koa/cors';
import Koa, { type Context, type Next } from 'koa';
import mount from 'koa-mount';
import { Router } from 'koa-router';
import Negotiator from 'negotiator';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { booking } from '../clients/booking.ts';

const port = Number(process.env['PORT']);
const origins = ['https://app.example'];

const database = new DatabaseSync(process.env['DATABASE'] ?? '');
database.exec(`
  pragma journal_mode = WAL;
  create table bookings (id text primary key, user text, hotel_id text, status text, reference text, room_type text,
    check_in text, check_out text, guests integer, price integer, currency text, policy text, created_at text,
    expires_at text, version integer);
`);
const policy = JSON.stringify([
  { before: '2030-01-10T00:00:00.000Z', refund: 36000 },
  { before: '2030-01-12T00:00:00.000Z', refund: 18000 },
]);
const createdAt = new Date().toISOString();
database
  .prepare(`insert into bookings values (${Array(15).fill('?').join()})`)
  .run(
    ...[booking.id, 'demo', booking.hotel_id, booking.status, '7Q4M0ZKD', 'double', '2030-01-12', '2030-01-15', 2],
    ...[36000, 'EUR', policy, createdAt, null, 1],
  );
const readBooking = database.prepare('select * from bookings where id = ? and user = ?');

const salt = randomBytes(16);
const derive = promisify<string, Buffer, number, Buffer>(scrypt);
const users = new Map([['demo', await derive('demo', salt, 32)]]);
/** The users of verified Authorization headers, by the digests of these headers. */
const verified = new Map<string, string>();

async function verify(authorization: string): Promise<string | undefined> {
  const encoded = /^basic +(\S+)$/i.exec(authorization)?.[1] ?? '';
  const [, user = '', password = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  const expected = users.get(user);
  return expected && timingSafeEqual(await derive(password, salt, 32), expected) ? user : undefined;
}

async function authenticate(ctx: Context, next: Next): Promise<void> {
  const { headers } = ctx.req;
  delete headers['x-travel-user'];
  const { authorization } = headers;
  if (authorization === undefined) ctx.throw(401);
  const digest = hash('sha256', authorization, 'base64');
  const user = verified.get(digest) ?? (await verify(authorization));
  if (user === undefined) ctx.throw(401);
  verified.set(digest, user);
  headers['x-travel-user'] = user;
  await next();
}

async function identifyRequest(ctx: Context, next: Next): Promise<void> {
  const sent = ctx.get('X-Request-Id');
  ctx.state['requestId'] = /^[\w.-]{1,128}$/.test(sent) ? sent : randomUUID();
  ctx.set({ 'X-Request-Id': ctx.state['requestId'], 'X-Content-Type-Options': 'nosniff' });
  await next();
}

async function renderErrors(ctx: Context, next: Next): Promise<void> {
  try {
    await next();
  } catch (error) {
    const { status = 500, expose = false, message = '' } = Object(error);
    ctx.status = status;
    ctx.body = { code: status, message: expose ? message : 'Internal Server Error' };
    if (!expose) ctx.app.emit('error', error, ctx);
  }
}

const formats: ReadonlyMap<string, (value: object) => string> = new Map([
  ['application/json', JSON.stringify],
  ['application/yaml', stringify],
]);
const types = [...formats.keys()];

function money(amount: unknown, currency: unknown) {
  return { amount: (Number(amount) / 100).toFixed(2), currency };
}

function sendBooking(ctx: Context): void {
  const row = readBooking.get(ctx['params'].id, ctx.get('X-Travel-User'));
  if (row === undefined) ctx.throw(404);
  const type = new Negotiator(ctx.req).mediaType(types) ?? '';
  const format = formats.get(type);
  if (format === undefined) ctx.throw(406);
  const { id, hotel_id, status, reference, room_type, check_in, check_out, guests, created_at, expires_at } = row;
  const steps: readonly { readonly before: string; readonly refund: number }[] = JSON.parse(String(row['policy']));
  const body = format({
    id,
    hotel_id,
    status,
    reference: `${String(reference).slice(0, 4)}-${String(reference).slice(4)}`,
    room_type,
    check_in,
    check_out,
    guests,
    price: money(row['price'], row['currency']),
    created_at,
    expires_at: expires_at ?? undefined,
    cancellation_policy: steps.map(({ before, refund }) => ({ before, refund: money(refund, row['currency']) })),
    url: `${ctx.protocol}://${ctx.host}/v1/hotels/bookings/${id}`,
  });
  ctx.vary('Accept');
  ctx.set({ 'Cache-Control': 'private, no-cache', ETag: `"${row['version']}-${crc32(body).toString(36)}"` });
  ctx.set('Content-Type', type);
  ctx.body = body;
  if (ctx.fresh) ctx.status = 304;
}

const hotels = new Router().get('/bookings/:id', sendBooking as Koa.Middleware);

const app = new Koa();
app.use(identifyRequest);
if (process.env['ACCESS_LOG'] !== undefined) {
  const logger = pino(pino.destination({ minLength: 4096, sync: false }));
  app.use(async (ctx, next) => {
    const startedAt = performance.now();
    const { req, res, method, path, ip: client } = ctx;
    res.once('close', () => {
      const traceId = ctx.get('Traceparent').split('-')[1] ?? randomBytes(16).toString('hex');
      const durationMs = Math.round((performance.now() - startedAt) * 10) / 10;
      const { requestId } = ctx.state;
      const user = req.headers['x-travel-user'];
      const protocol = `HTTP/${req.httpVersion}`;
      const bytes = ctx.length;
      logger.info(
        { requestId, traceId, client, user, method, path, protocol, status: res.statusCode, bytes, durationMs },
        'request',
      );
    });
    await next();
  });
}
app.use(
  cors({ origin: (ctx) => (origins.includes(ctx.get('Origin')) ? ctx.get('Origin') : ''), exposeHeaders: 'ETag' }),
);
app.use(renderErrors);
app.use(authenticate);
app.use(mount('/v1/hotels', hotels.routes() as unknown as Koa.Middleware));

createServer({ keepAliveTimeout: 72_000 }, app.callback()).listen(port, '127.0.0.1');
