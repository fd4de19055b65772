/** Bare Koa and SQLite: a POST durably writes a booking and its night, and a GET reads a page of twenty. */
import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import Koa from 'koa';
import { booking } from '../clients/booking.ts';

const database = new DatabaseSync(process.env['DATABASE'] ?? '');
database.exec(`
  pragma journal_mode = WAL;
  pragma synchronous = FULL;
  create table bookings (id text primary key, user text, hotel_id text, status text, reference text unique,
    starts_at text, ends_at text, room_type text, guests integer, price integer, currency text, policy text,
    created_at text, expires_at text, refund integer, version integer);
  create table nights (hotel_id text, day integer, unit integer, booking_id text, primary key (hotel_id, day, unit));
  create index by_user on bookings (user, id);
`);
const [begin, commit] = [database.prepare('begin immediate'), database.prepare('commit')];
const insertBooking = database.prepare(`insert into bookings values (${Array(16).fill('?').join()})`);
const insertNight = database.prepare('insert into nights values (?, ?, ?, ?)');
const readPage = database.prepare('select * from bookings where user = ? order by id limit 20');
const countAll = database.prepare('select count(*) as total from bookings where user = ?');
let day = 0;

function book(): object {
  const id = randomUUID();
  const now = new Date().toISOString();
  day += 1;
  begin.run();
  insertBooking.run(
    id,
    'demo',
    booking.hotel_id,
    booking.status,
    id.slice(0, 8) + day,
    '2030-01-01',
    '2030-01-02',
    'single',
    1,
    9900,
    'EUR',
    '[]',
    now,
    null,
    null,
    1,
  );
  insertNight.run(booking.hotel_id, day, 0, id);
  commit.run();
  return { ...booking, id };
}

while (day < 20) book();

const app = new Koa();
app.use((ctx) => {
  ctx.status = ctx.method === 'POST' ? 201 : 200;
  ctx.body = ctx.method === 'POST' ? book() : { items: readPage.all('demo'), ...countAll.get('demo') };
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
