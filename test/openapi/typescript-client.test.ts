/** A client of strict TypeScript that openapi-typescript, if installed, generates: it compiles without casts, and works. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { desksOf } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { documentPrefixes, readDocument, writeDocument } from './written-documents.ts';

const run = promisify(execFile);
const packages = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** Lists, books, confirms and cancels, and handles every error. It prints what it has seen. */
const client = `
import createClient from 'openapi-fetch';
import type { components, paths } from './v1-hotels.d.ts';
import type { paths as messagePaths } from './v1.d.ts';

type Booking = components['schemas']['HotelBooking'];
type Problem = components['schemas']['Problem'];

const [gateway = ''] = process.argv.slice(2);
const headers = { Authorization: 'Basic ' + btoa('demo:demo') };
const hotels = createClient<paths>({ baseUrl: gateway + '/v1/hotels', headers });
const strangers = createClient<paths>({ baseUrl: gateway + '/v1/hotels' });
const messages = createClient<messagePaths>({ baseUrl: gateway + '/v1' });

function explain({ code, message, detail, errors = [] }: Problem): string {
  if (code === 401) return 'log in';
  if (code === 404) return 'gone';
  if (code === 409) return 'not possible: ' + (detail ?? message);
  if (code === 412) return 'read it again';
  if (code === 422) return 'the key was used before';
  if (code === 429 || code === 503) return 'later';
  return errors.map(({ pointer, parameter, detail }) => (pointer ?? parameter) + ' ' + detail).join();
}

async function book(key: string, body: components['schemas']['HotelBookingRequest']): Promise<[Booking, string] | string> {
  const { data, error, response } = await hotels.POST('/bookings/', {
    params: { header: { 'Idempotency-Key': key } },
    body,
  });
  if (data !== undefined) return [data, response.headers.get('etag') ?? ''];
  if ('alternatives' in error && error.alternatives !== undefined)
    return 'sold out, but not ' + error.alternatives.map(({ price, room_type }) => room_type + ' for ' + price.amount)[0];
  return explain(error);
}

async function change(id: string, tag: string, status: 'confirmed' | 'cancelled'): Promise<string> {
  const { data, error } = await hotels.PATCH('/bookings/{id}', {
    params: { path: { id }, header: { 'If-Match': tag } },
    body: { status },
  });
  if (error !== undefined) return explain(error);
  return data.refund === undefined ? data.status : data.status + ' with a refund in ' + data.refund.currency;
}

const list = await hotels.GET('/', { params: { query: { city: 'Berlin', sort: ['name'], limit: 2 } } });
const hotel = list.data?.items[0];
if (hotel === undefined) throw new Error(list.error?.message ?? 'no hotel in Berlin');
const stay = { hotel_id: hotel.id, check_in: '2032-01-01', check_out: '2032-01-02' };
const [held, made] = [await book('held', { ...stay, hold: true }), await book('made', stay)];
if (typeof held === 'string' || typeof made === 'string') throw new Error('no booking');
const [booking, tag] = made;
const suite = { ...stay, hotel_id: '972a8469-1641-4f82-8b9d-2434e465e150', room_type: 'suite' };
await book('suite', suite);
const unknown = { params: { path: { id: crypto.randomUUID() } } };
const seen = {
  listed: [hotel.city, typeof hotel.room_types[0]?.price.amount, typeof list.data?.total],
  held: [held[0].status, typeof held[0].expires_at, await change(held[0].id, held[1], 'confirmed')],
  made: [booking.status, await change(booking.id, tag, 'cancelled')],
  soldOut: await book('suite-2', suite),
  reused: await book('made', { ...stay, guests: 2 }),
  invalid: await book('invalid', { hotel_id: 'none', guests: 0 }),
  stale: await change(held[0].id, held[1], 'cancelled'),
  forbidden: await change(booking.id, '*', 'confirmed'),
  unknown: explain((await hotels.GET('/bookings/{id}', unknown)).error ?? { code: 0, message: '' }),
  anonymous: explain((await strangers.GET('/bookings/')).error ?? { code: 0, message: '' }),
  message: typeof (await messages.GET('/messages/{id}', { params: { path: { id: '1' } } })).data?.content,
};
process.stdout.write(JSON.stringify(seen));
`;

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  module: 'nodenext',
  target: 'es2023',
  types: ['node'],
  skipLibCheck: false,
  allowImportingTsExtensions: true,
};

describe('a generated TypeScript client', function () {
  this.timeout(60_000);
  if (!isInstalled('openapi-typescript')) return void it('needs openapi-typescript on the PATH');
  const openDesk = desksOf(testServers(after));
  const writeFiles = temporaryFiles();
  let cwd: string;
  let gatewayUrl: string;

  before(async () => {
    cwd = await writeFiles({ 'client.mts': client, 'tsconfig.json': JSON.stringify({ compilerOptions }) });
    await mkdir(join(cwd, 'node_modules'));
    for (const name of ['openapi-fetch', 'openapi-typescript-helpers', '@types'])
      await symlink(join(packages, name), join(cwd, 'node_modules', name));
    gatewayUrl = (await (await openDesk()).listen()).gateway.url;
    for (const prefix of documentPrefixes) {
      const file = await writeDocument(cwd, prefix, await readDocument(gatewayUrl, prefix));
      await run('openapi-typescript', [file, '-o', file.replace('.json', '.d.ts')], { cwd });
    }
  });

  it('compiles without a cast', async () => {
    const { stdout } = await run(join(packages, '.bin/tsc'), ['-p', cwd]).catch((error) => error);
    assert.equal(stdout, '');
  });

  it('lists, books, confirms and cancels, and handles each error', async () => {
    const { stdout } = await run(process.execPath, ['client.mts', gatewayUrl], { cwd });
    assert.deepEqual(JSON.parse(stdout), {
      listed: ['Berlin', 'string', 'number'],
      held: ['pending', 'string', 'confirmed'],
      made: ['confirmed', 'cancelled with a refund in EUR'],
      soldOut: 'sold out, but not double for 134.00',
      reused: 'the key was used before',
      invalid: '/hotel_id must be a UUID,/guests must be at least 1',
      stale: 'read it again',
      forbidden: 'not possible: The booking is cancelled and can no longer change.',
      unknown: 'gone',
      anonymous: 'log in',
      message: 'string',
    });
  });
});
