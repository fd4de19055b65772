/** JSON bodies over real sockets: what is taken, what is refused, and what a refusal says. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import Koa, { type Context, type Middleware } from 'koa';
import request from 'supertest';
import { z } from 'zod';
import {
  answerClientErrors,
  bodyFromHost,
  createBodySchema,
  createProblemResponses,
  type Fault,
  hasBody,
  isBodyUnread,
  markBodyRestored,
  Problem,
  readJsonBody,
} from '#http';
import { readAuthBody } from '../../src/gateway/auth/body.ts';
import { inviteBodies } from '../../src/http/server/node-fixes.ts';
import { withServer } from './raw-exchange.ts';

const bytesMax = 64;

/** Answers with what it read; `seen` hears of what the log is told. */
function echo({ before, seen = [] }: { before?: Middleware; seen?: unknown[] } = {}) {
  const app = new Koa();
  const tell = (fields: object) => void seen.push(fields);
  app.use(createProblemResponses({ logger: { info: tell, warn: tell, error: tell } }));
  if (before !== undefined) app.use(before);
  app.use(async (ctx) => {
    ctx.body = { read: await readJsonBody(ctx, bytesMax) };
  });
  return app.callback();
}

const post = (handler = echo()) => request(handler).post('/');

describe('readJsonBody', () => {
  for (const type of [
    'application/json',
    'Application/JSON ; charset=UTF-8',
    'application/json;charset="utf-8"',
    'application/json; profile=x',
  ]) {
    it(`reads ${type}`, () =>
      post()
        .set('Content-Type', type)
        .send('{"a":"é"}')
        .expect(200, { read: { a: 'é' } }));
  }

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'application/merge-patch+json',
    'application/json; charset=latin1',
    'json',
    ';',
  ]) {
    it(`refuses ${type}, and says what it takes`, async () => {
      const { body } = await post()
        .set('Content-Type', type)
        .send('{}')
        .expect(415)
        .expect('Accept', 'application/json');
      assert.equal(body.message, '415: Unsupported Media Type');
      assert.ok(body.detail.length > 0);
    });
  }

  it('says to a PATCH what a patch may be', async () => {
    const patch = request(echo()).patch('/').set('Content-Type', 'text/plain');
    await patch.send('{}').expect(415).expect('Accept-Patch', 'application/json');
  });

  it('refuses what is packed', async () => {
    const packed = post().set({ 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
    packed.write(gzipSync('{}'));
    await packed.expect(415).expect('Accept', 'application/json').expect('Accept-Encoding', 'identity');
    await post().set({ 'Content-Type': 'application/json', 'Content-Encoding': 'identity' }).send('{}').expect(200);
  });

  for (const text of ['{', '{"a":}', '{}{}', "{'a':1}", 'undefined', '\u00a0{}']) {
    it(`refuses what is no JSON: ${text}`, async () => {
      const { body } = await post().set('Content-Type', 'application/json').send(text).expect(400);
      assert.match(body.detail, /not JSON/);
    });
  }

  it('refuses what is no UTF-8', async () => {
    const latin = post().set('Content-Type', 'application/json');
    latin.write(Buffer.from('"\u00e9"', 'latin1'));
    const { body } = await latin.expect(400);
    assert.match(body.detail, /UTF-8/);
  });

  it('refuses a missing body, of whatever type', async () => {
    for (const type of ['application/json', 'text/plain']) {
      const { body } = await post().set('Content-Type', type).expect(400);
      assert.match(body.detail, /missing/);
    }
  });

  it('takes a body of the greatest length, and refuses one byte more', async () => {
    const text = (length: number) => '{}'.padEnd(length);
    await post().set('Content-Type', 'application/json').send(text(bytesMax)).expect(200);
    const { body } = await post()
      .set('Content-Type', 'application/json')
      .send(text(bytesMax + 1))
      .expect(413);
    assert.match(body.detail, /64 bytes/);
  });

  it('counts a body whose length nobody told, and the answer arrives', async () => {
    const chunk = `8\r\n${' '.repeat(8)}\r\n`;
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    await withServer({ handler: echo() }, async ({ send }) => {
      assert.match(await send(`${head}${chunk.repeat(9)}0\r\n\r\n`), /^HTTP\/1\.1 413 [\s\S]*Connection: close/);
      const fits = `${head.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}${chunk.repeat(7)}2\r\n{}\r\n0\r\n\r\n`;
      assert.match(await send(fits), /^HTTP\/1\.1 200 /);
    });
  });

  it('does not invite a body that it refuses', async () => {
    const ask = (type: string, length: number) =>
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
    await withServer({ handler: echo() }, async ({ send, open, server }) => {
      inviteBodies(server);
      assert.match(await send(ask('text/plain', 2)), /^HTTP\/1\.1 415 /);
      assert.match(await send(ask('application/json', bytesMax + 1)), /^HTTP\/1\.1 413 /);
      const socket = open().setEncoding('utf8');
      socket.write(ask('application/json', 2));
      const [invitation] = await once(socket, 'data');
      assert.match(invitation, /^HTTP\/1\.1 100 /);
      socket.write('{}');
      const [answer] = await once(socket, 'data');
      assert.match(answer, /^HTTP\/1\.1 200 /);
    });
  });

  it('is quiet about a client that leaves in the middle', async () => {
    const seen: unknown[] = [];
    const settled: Promise<void>[] = [];
    const before: Middleware = (_ctx, next) => {
      const reading = next();
      settled.push(reading.catch(() => undefined) as Promise<void>);
      return reading;
    };
    await withServer({ handler: echo({ before, seen }) }, async ({ open, server }) => {
      answerClientErrors(server);
      const arrived = once(server, 'request');
      const socket = open();
      socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"a"');
      const [, response] = await arrived;
      socket.destroy();
      await once(response, 'close');
      await Promise.all(settled);
      assert.equal(settled.length, 1);
      assert.deepEqual(seen, []);
    });
  });

  it('reads what somebody has looked into and put back, all of it or the beginning', async () => {
    for (const peeked of [1, bytesMax]) {
      const before: Middleware = async (ctx, next) => {
        await readAuthBody(ctx, { maxBytes: peeked, allowPartial: true });
        return next();
      };
      for (const body of ['{"a":1}', '[1]']) {
        const answer = await post(echo({ before })).set('Content-Type', 'application/json').send(body).expect(200);
        assert.deepEqual(answer.body.read, JSON.parse(body));
      }
      await post(echo({ before })).set('Content-Type', 'application/json').send(' '.repeat(500)).expect(413);
    }
  });

  it('finds what a host has read before, and says so where it is gone', async () => {
    const hostReads = (kept: (text: string) => unknown): Middleware =>
      async function parser(ctx, next) {
        let text = '';
        for await (const chunk of ctx.req) text += chunk;
        Object.assign(ctx.request, { rawBody: kept(text) });
        return next();
      };
    const json = (handler: ReturnType<typeof echo>) =>
      post(handler).set('Content-Type', 'application/json').send('{"a":1}');
    await json(echo({ before: hostReads((text) => text) })).expect(200, { read: { a: 1 } });
    await json(echo({ before: hostReads((text) => Buffer.from(text)) })).expect(200, { read: { a: 1 } });
    await json(echo({ before: hostReads(() => undefined) })).expect(500);
  });
});

describe('hasBody', () => {
  it('goes by the length and the transfer coding', () => {
    assert.equal(hasBody({}, 10), false);
    assert.equal(hasBody({ 'content-length': '0' }, 10), false);
    assert.equal(hasBody({ 'content-length': '10' }, 10), true);
    assert.equal(hasBody({ 'transfer-encoding': 'Chunked' }, 10), true);
  });

  it('refuses unread what is too large or packed', () => {
    assert.throws(() => hasBody({ 'content-length': '11' }, 10), { slug: 'body-too-large' });
    assert.throws(() => hasBody({ 'transfer-encoding': 'gzip, chunked' }, 10), { slug: 'bad-request' });
  });
});

describe('bodyFromHost', () => {
  const read = (rawBody: unknown, headers: object = {}) =>
    bodyFromHost({ request: { rawBody }, req: { headers } } as unknown as Context, 10);

  it('is what the parser kept', () => {
    assert.equal(read('{}'), '{}');
    assert.equal(read('é', { 'content-length': '2' }), 'é');
  });

  it('is lost where that is not the body as it came', () => {
    assert.throws(() => read(undefined), { slug: 'body-consumed' });
    assert.throws(() => read({ a: 1 }), { slug: 'body-consumed' });
    assert.throws(() => read('{}', { 'content-length': '3' }), { slug: 'body-consumed' });
    assert.throws(() => read('{}', { 'content-encoding': 'gzip' }), { slug: 'body-consumed' });
    assert.throws(() => read('12345678901'), { slug: 'body-too-large' });
  });
});

describe('isBodyUnread', () => {
  it('is true until somebody reads, and again once it is put back', async () => {
    const seen: boolean[] = [];
    const server = createServer((req, res) => {
      seen.push(isBodyUnread(req));
      req.once('data', (chunk: Buffer) => {
        seen.push(isBodyUnread(req));
        req.pause();
        req.unshift(chunk);
        markBodyRestored(req);
        seen.push(isBodyUnread(req));
        res.end();
      });
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { method: 'POST', body: 'x' });
    server.closeAllConnections();
    server.close();
    assert.deepEqual(seen, [true, false, true]);
  });
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
  it('gives what the schema makes of the body', () => {
    assert.deepEqual(checkBody({ name: 'a', nights: 2 }), { name: 'a', nights: 2 });
  });

  it('names every fault by a JSON pointer, at any depth', () => {
    const body = { nights: 0, guest: { age: 'old' }, tags: ['a', 5] };
    assert.deepEqual(pointersOf(body).toSorted(), ['/guest/age', '/name', '/nights', '/tags/1']);
  });

  it('says of a field that it is missing, and of another that it is of another type', () => {
    assert.deepEqual(faultsOf({}), [{ pointer: '/name', detail: 'is missing' }]);
    assert.match(faultsOf({ name: 5 })[0]?.detail ?? '', /expected string, received number/);
  });

  it('points to the whole for what is no object', () => {
    for (const body of [null, [], 'text', 5]) assert.deepEqual(pointersOf(body), ['']);
  });

  it('refuses unknown fields, and names the known ones', () => {
    const [fault] = faultsOf({ name: 'a', nigths: 2 });
    assert.deepEqual(fault, { pointer: '/nigths', detail: 'is no field here; known: name, nights, guest, tags' });
    for (const name of ['__proto__', 'constructor', 'toString']) {
      assert.deepEqual(pointersOf(JSON.parse(`{"name":"a","${name}":{"x":1}}`)), [`/${name}`]);
      assert.deepEqual(pointersOf(JSON.parse(`{"name":"a","guest":{"age":1,"${name}":1}}`)), [`/guest/${name}`]);
    }
  });

  it('refuses text that a database cannot hold', () => {
    for (const name of ['a\0b', '\ud800', 'x\udc00y']) assert.deepEqual(pointersOf({ name }), ['/name']);
    assert.deepEqual(pointersOf({ name: 'a', tags: ['\0'] }), ['/tags/0']);
    assert.deepEqual(checkBody({ name: '\u{1f600}' }), { name: '\u{1f600}' });
  });

  it('stays short, however much is wrong', () => {
    const names = Array.from({ length: 5000 }, (_, index) => [`${'long'.repeat(200)}${index}`, 1]);
    const faults = faultsOf(Object.fromEntries(names));
    assert.equal(faults.length, 20);
    assert.ok(JSON.stringify(faults).length < 5000);
  });

  it('bears any depth of nesting', () => {
    assert.deepEqual(pointersOf(JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`)), ['']);
    assert.deepEqual(pointersOf(JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`)).slice(0, 1), ['/name']);
  });
});
