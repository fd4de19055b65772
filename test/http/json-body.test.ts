import Koa from 'koa';
import request from 'supertest';
import { createProblemResponses, readJsonBody, silentLogger } from '#http';

const app = new Koa();
app.use(createProblemResponses({ logger: silentLogger }));
app.use(async (ctx) => {
  ctx.body = { length: JSON.stringify(await readJsonBody(ctx)).length };
});
const server = app.callback();

const nested = (levels: number, [open, close]: readonly [string, string]) =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;
const keys = (count: number) => `{${Array.from({ length: count }, (_, index) => `"${index}":1`).join()}}`;

describe('A JSON body of a service', () => {
  const check = (what: string, body: string, status: number, detail?: RegExp) =>
    it(`${what}: ${status}`, () =>
      request(server)
        .post('/')
        .set('Content-Type', 'application/json')
        .send(body)
        .expect(status)
        .expect(detail ?? /"length":/));

  check('of 64 KiB', '{}'.padEnd(65_536), 200);
  check('longer than 64 KiB', '{}'.padEnd(65_537), 413, /may have 65536 bytes at most/);
  check('with arrays of 32 levels', nested(32, ['[', ']']), 200);
  check('with arrays of 33 levels', nested(33, ['[', ']']), 400, /32 levels deep at most/);
  check('with objects of 32 levels', nested(32, ['{"a":', '}']), 200);
  check('with objects of 33 levels', nested(33, ['{"a":', '}']), 400, /32 levels deep at most/);
  check('with 60,000 brackets that are never closed', '['.repeat(60_000), 400, /32 levels deep at most/);
  check('with 1,000 keys', keys(1000), 200);
  check('with 1,001 keys', keys(1001), 400, /1000 keys at most/);
  check('with 1,001 keys in two objects', `[${keys(500)},${keys(501)}]`, 400, /1000 keys at most/);
  check('with brackets, colons and quotes in a string', JSON.stringify('[{:"\\'.repeat(2000)), 200);
  check('with brackets after an escaped backslash', `["\\\\",${nested(33, ['[', ']'])}]`, 400, /32 levels deep/);
});
