/** JSON bodies: which ones are accepted, their validation, and bodies that another stage has already read. */
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import Koa, { type Context, type Middleware } from 'koa';
import request from 'supertest';
import { z } from 'zod';
import { createBodySchema, createProblemResponses, type Fault, Problem, readJsonBody } from '#http';
import { createAuthBodyReader } from '../../src/gateway/auth/body.ts';
import { testServers } from '../support/serve.ts';
import { sendRaw } from '../support/wire/raw-client.ts';

const bytesMax = 65_536;

/** Responds with the body that it read. */
function echo(before: Middleware = (_ctx, next) => next()) {
  const app = new Koa()
    .use(createProblemResponses())
    .use(before)
    .use(async (ctx: Context) => {
      ctx.body = { read: await readJsonBody(ctx) };
    });
  return app.callback();
}

const post = (type = 'application/json', handler = echo()) => request(handler).post('/').set('Content-Type', type);

describe('readJsonBody', () => {
  const servers = testServers();

  it('accepts a JSON merge patch in a PATCH only, and lists both media types in Accept-Patch', async () => {
    const types = 'application/json, application/merge-patch+json';
    const patch = (type: string) => request(echo()).patch('/').set('Content-Type', type).send('{"a":1}');
    for (const type of ['application/json', 'application/merge-patch+json', 'Application/Merge-Patch+JSON'])
      await patch(type).expect(200, { read: { a: 1 } });
    const { body } = await patch('text/plain').expect(415).expect('Accept-Patch', types).expect('Accept', types);
    assert.equal(body.detail, 'Send the body as application/json or application/merge-patch+json.');
    await post('application/merge-patch+json').send('{}').expect(415).expect('Accept', 'application/json');
  });

  for (const [body, place] of [
    ['{"pin":1234,}', 'line 1, column 13 must have a name in double quotes'],
    ['{\n  "pin": 1234\n  "user": 5\n}', 'line 3, column 3 must have a comma or a closing brace'],
    ['{\r\n"😀": tru}', 'line 2, column 6 must have a value'],
    ['{"pin" 1234}', 'line 1, column 8 must have a colon'],
    ['{"pin":"1234', 'line 1, column 13 must have a closing quote'],
    ['["a\\x1234"]', 'line 1, column 4 must have a valid escape'],
    ['["a\n1234"]', 'line 1, column 4 must have an escape instead of a control character'],
    ['[1 2]', 'line 1, column 4 must have a comma or a closing bracket'],
    ['{"pin":01234}', 'line 1, column 9 must have a comma or a closing brace'],
    ['{"pin":1234}}', 'line 1, column 13 must have the end of the text'],
    ['  ', 'line 1, column 3 must have a value'],
  ])
    it(`says where ${JSON.stringify(body)} is not JSON, without quoting it`, async () => {
      const response = await post().send(body).expect(400);
      assert.equal(response.body.detail, `The body is not JSON text: ${place}.`);
    });

  it('says which byte of the body is not UTF-8', async () => {
    for (const [bytes, place] of [
      [[0x5b, 0x22, 0xe9, 0x22, 0x5d], 3],
      [[0xef, 0xbb, 0xbf, 0x22, 0xef, 0xbf, 0xbd, 0xff, 0x22], 8],
    ] as const) {
      const sent = post();
      sent.write(Buffer.from(bytes));
      const { body } = await sent.expect(400);
      assert.equal(body.detail, `The body is not UTF-8: byte ${place} is invalid.`);
    }
  });

  it('rejects a key that an object has twice, however it is escaped, with a pointer to it', async () => {
    const check = async (body: string, ...pointers: readonly string[]) => {
      const response = await post().send(body).expect(400);
      assert.deepEqual(
        response.body.errors,
        pointers.map((pointer) => ({ pointer, detail: 'is given more than once' })),
      );
    };
    await check('{"a":1,"b":2,"a":1}', '/a');
    await check('{"a":1,"\\u0061":2}', '/a');
    await check('{"__proto__":1,"__proto__":2}', '/__proto__');
    await check('[0,{"a/b":{"~":[],"c":{"":1},"~":{}}}]', '/1/a~1b/~0');
    await check('{"":1,"":2,"x":{"y":1,"y":1,"y":1}}', '/', '/x/y', '/x/y');
    await check(`{${'"secret":1,'.repeat(50)}"x":1}`, ...Array.from({ length: 20 }, () => '/secret'));
  });

  it('accepts the same key in different objects, and keys that differ in case', async () => {
    const read = { a: { a: 1, A: 2 }, b: [{ a: 1 }, { a: 1 }], c: '"a":1,"a":1' };
    await post().send(JSON.stringify(read)).expect(200, { read });
  });

  it('rejects a content coding', async () => {
    const packed = post().set('Content-Encoding', 'gzip');
    packed.write(gzipSync('{}'));
    await packed.expect(415).expect('Accept', 'application/json').expect('Accept-Encoding', 'identity');
    await post().set('Content-Encoding', 'identity').send('{}').expect(200);
  });

  it('does not distinguish upper and lower case in the type', () =>
    post('Application/JSON; Charset=UTF-8').send('{}').expect(200));

  it('reports a missing body whatever its type', async () => {
    for (const type of ['application/json', 'text/plain'])
      assert.match((await post(type).expect(400)).body.detail, /missing/);
  });

  it('rejects a chunked body that is too large, and the client receives the response', async () => {
    const chunk = `2000\r\n${' '.repeat(0x2000)}\r\n`;
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { port } = await servers.http(echo());
    assert.match(await sendRaw(port, `${head}${chunk.repeat(9)}0\r\n\r\n`), /^HTTP\/1\.1 413 [\s\S]*Connection: close/);
    const fits = `${head.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}${chunk.repeat(7)}2\r\n{}\r\n0\r\n\r\n`;
    assert.match(await sendRaw(port, fits), /^HTTP\/1\.1 200 /);
  });

  it('reads a body that a stage has read, partly or completely, and put back', async () => {
    for (const peeked of [1, bytesMax]) {
      const before: Middleware = async (ctx, next) => {
        await createAuthBodyReader({ maxBytes: peeked, allowPartial: true })(ctx);
        return next();
      };
      for (const read of [{ a: 1 }, [1]])
        await post(undefined, echo(before)).send(JSON.stringify(read)).expect(200, { read });
      await post(undefined, echo(before))
        .send(' '.repeat(bytesMax + 1))
        .expect(413);
    }
  });

  it('reads the rawBody of a host application, and responds with 500 without one', async () => {
    const sendTo = (keep: (text: string) => unknown, place: 'request' | 'req' = 'request') => {
      const before: Middleware = async (ctx, next) => {
        const chunks = await ctx.req.toArray();
        Object.assign(ctx[place], { rawBody: keep(chunks.join('')) });
        return next();
      };
      return post(undefined, echo(before)).send('{"a":1}');
    };
    await sendTo((text) => text).expect(200, { read: { a: 1 } });
    await sendTo((text) => Buffer.from(text)).expect(200, { read: { a: 1 } });
    // Stored by a `verify` function of Express's parsers.
    await sendTo((text) => Buffer.from(text), 'req').expect(200, { read: { a: 1 } });
    await sendTo(() => undefined).expect(500);
  });

  const nested = (levels: number, [open, close]: readonly [string, string]) =>
    `${open.repeat(levels)}1${close.repeat(levels)}`;
  const keys = (count: number) => `{${Array.from({ length: count }, (_, index) => `"${index}":1`).join()}}`;
  const check = (what: string, body: string, status: number, expected: RegExp = /"read":/) =>
    it(`responds with ${status} to a body ${what}`, () => post().send(body).expect(status).expect(expected));

  check('of 64 KiB', '{}'.padEnd(65_536), 200);
  check('longer than 64 KiB', '{}'.padEnd(65_537), 413, /may have at most 65536 bytes/);
  check('with arrays of 32 levels', nested(32, ['[', ']']), 200);
  check('with arrays of 33 levels', nested(33, ['[', ']']), 400, /at most 32 levels deep/);
  check('with objects of 32 levels', nested(32, ['{"a":', '}']), 200);
  check('with objects of 33 levels', nested(33, ['{"a":', '}']), 400, /at most 32 levels deep/);
  check('with 60,000 unclosed brackets', '['.repeat(60_000), 400, /at most 32 levels deep/);
  check('with 1,000 keys', keys(1000), 200);
  check('with 1,001 keys', keys(1001), 400, /at most 1000 keys/);
  check('with 1,001 keys in two objects', `[${keys(500)},${keys(501)}]`, 400, /at most 1000 keys/);
  check('with brackets, colons and quotes in a string', JSON.stringify('[{:"\\'.repeat(2000)), 200);
  check('with brackets after an escaped backslash', `["\\\\",${nested(33, ['[', ']'])}]`, 400, /32 levels deep/);
});

const checkBody = createBodySchema(
  z.strictObject({
    name: z.string(),
    nights: z.int().min(1).optional(),
    guest: z.strictObject({ age: z.int() }).optional(),
    tags: z.array(z.string()).optional(),
  }),
);

function faultsOf(body: unknown): readonly Fault[] {
  try {
    checkBody(body);
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem && error.slug === 'bad-body' && error.status === 400);
    return error.errors ?? [];
  }
}

const pointersOf = (body: unknown) => faultsOf(body).map(({ pointer }) => pointer);

describe('createBodySchema', () => {
  it('lists each fault with a JSON pointer at any depth, and reports missing fields', () => {
    const body = { nights: 0, guest: { age: 'old' }, tags: ['a', 5] };
    assert.deepEqual(pointersOf(body).toSorted(), ['/guest/age', '/name', '/nights', '/tags/1']);
    assert.deepEqual(faultsOf({}), [{ pointer: '/name', detail: 'is missing' }]);
    assert.match(faultsOf({ name: 5 })[0]?.detail ?? '', /^must be a string$/);
    for (const whole of [null, [], 'text', 5]) assert.deepEqual(pointersOf(whole), ['']);
  });

  it('rejects unknown fields and lists the known ones', () => {
    const [fault] = faultsOf({ name: 'a', nigths: 2 });
    assert.deepEqual(fault, { pointer: '/nigths', detail: 'is not a known field; known: name, nights, guest, tags' });
    for (const name of ['__proto__', 'constructor', 'toString']) {
      assert.deepEqual(pointersOf(JSON.parse(`{"name":"a","${name}":{"x":1}}`)), [`/${name}`]);
      assert.deepEqual(pointersOf(JSON.parse(`{"name":"a","guest":{"age":1,"${name}":1}}`)), [`/guest/${name}`]);
    }
  });

  it('rejects text that a database cannot store', () => {
    for (const name of ['a\0b', '\ud800', 'x\udc00y']) assert.deepEqual(pointersOf({ name }), ['/name']);
    assert.deepEqual(pointersOf({ name: 'a', tags: ['\0'] }), ['/tags/0']);
    assert.deepEqual(checkBody({ name: '\u{1f600}' }), { name: '\u{1f600}' });
  });

  it('lists at most 20 faults, with shortened names', () => {
    const names = Array.from({ length: 5000 }, (_, index) => [`${'long'.repeat(200)}${index}`, 1]);
    const faults = faultsOf(Object.fromEntries(names));
    assert.equal(faults.length, 20);
    assert.ok(JSON.stringify(faults).length < 5000);
  });

  it('checks a body of any depth', () => {
    assert.deepEqual(pointersOf(JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`)), ['']);
    assert.deepEqual(pointersOf(JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`)).slice(0, 1), ['/name']);
  });
});
