/** Things are made by POST, and made once. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createShelf } from './shelf-app.ts';

function serve() {
  const { app, notes, kept } = createShelf();
  const handler = new Koa().use(mount('/v1', app)).callback();
  const post = (path = '/v1/notes/') => request(handler).post(path);
  return { handler, notes, kept, post };
}

describe('a creation', () => {
  it('is 201 with the place, the tag and the item as a GET of it gives them', async () => {
    const server = new Koa().use(mount('/v1', createShelf().app)).listen(0, '127.0.0.1');
    const { headers, body } = await request(server).post('/v1/notes/').send({ text: 'a' }).expect(201);
    const location = String(headers['location']);
    assert.match(location, /^http:\/\/127\.0\.0\.1:\d+\/v1\/notes\/1$/);
    assert.deepEqual(body, { id: 1, text: 'a', url: location, size: { characters: 1 } });
    const read = await request(server).get(new URL(location).pathname).expect(200, body);
    for (const name of ['etag', 'content-type', 'vary', 'cache-control']) {
      assert.equal(headers[name], read.headers[name], name);
    }
    server.close();
  });

  for (const [accept, tag] of [
    ['application/yaml', 'yaml'],
    ['text/html', 'html'],
  ] as const) {
    it(`is answered in the representation that is asked for: ${accept}`, async () => {
      const { post } = serve();
      const { headers } = await post().set('Accept', accept).send({ text: 'a' }).expect(201);
      assert.match(String(headers['content-type']), new RegExp(`^${accept}`));
      assert.equal(headers['etag'], `"1-${tag}"`);
    });
  }

  it('shows the fields that are asked for, and has their tag', async () => {
    const { post } = serve();
    await post('/v1/notes/?fields=id').send({ text: 'a' }).expect(201, { id: 1 }).expect('ETag', '"1-id-json"');
  });

  it('makes nothing when the request is wrong in any way', async () => {
    const { post, notes } = serve();
    await post().set('Accept', 'image/png').send({ text: 'a' }).expect(406);
    await post('/v1/notes/?fields=colour').send({ text: 'a' }).expect(400);
    await post().type('text/plain').send('{"text":"a"}').expect(415);
    await post().expect(400);
    await post().set('Idempotency-Key', '""').send({ text: 'a' }).expect(400);
    await post().set('X-Nobody', '1').send({ text: 'a' }).expect(401);
    const { body } = await post().send({ text: '', colour: 'red' }).expect(400);
    assert.deepEqual(body.errors.map(({ pointer }: { pointer: string }) => pointer).sort(), ['/colour', '/text']);
    assert.equal(notes.size, 0);
  });

  it('asks who it is before it reads what he wants', async () => {
    await serve().post().set('X-Nobody', '1').type('text/plain').send('x').expect(401);
  });

  it('gives a repeated request the answer of the first, marked, whatever has become of the item', async () => {
    const { post, notes } = serve();
    const send = () => post().set('Idempotency-Key', '"k"').set('Host', 'notes.test');
    const first = await send().send({ text: 'a' }).expect(201);
    assert.equal(first.headers['idempotent-replayed'], undefined);
    notes.set(1, { id: 1, text: 'b', version: 2 });
    const again = await send().send('{ "text": "a" }').type('json').expect(201).expect('Idempotent-Replayed', 'true');
    assert.deepEqual(again.body, first.body);
    for (const name of ['location', 'etag', 'content-type']) assert.equal(again.headers[name], first.headers[name]);
    assert.equal(notes.size, 1);
    await send().send({ text: 'c' }).expect(422);
  });

  it('tells what else there is in every representation of the error', async () => {
    const { post } = serve();
    const { body } = await post().send({ text: 'full' }).expect(409);
    assert.deepEqual(body, { code: 409, message: '409: Conflict', alternatives: [{ shelf: '<next>', room: 3 }] });
    const told = (accept: string) => post().set('Accept', accept).send({ text: 'full' }).expect(409);
    assert.match((await told('application/yaml')).text, /alternatives:\n {2}- shelf: <next>\n {4}room: 3/);
    assert.match(
      (await told('text/html')).text,
      /<dt>alternatives<\/dt><dd><ol><li><dl><dt>shelf<\/dt><dd>&#60;next&#62;</,
    );
    const { body: rfc9457 } = await told('application/json, application/problem+json');
    assert.deepEqual([rfc9457.status, rfc9457.alternatives], [409, body.alternatives]);
  });

  it('to the collection without its slash is sent on as a POST', async () => {
    await serve().post('/v1/notes').send({ text: 'a' }).expect(308).expect('Location', '/v1/notes/');
  });
});

describe('the methods of what can be made and changed', () => {
  const table: readonly (readonly [string, string])[] = [
    ['/v1/notes/', 'GET, HEAD, OPTIONS, POST'],
    ['/v1/notes/1', 'GET, HEAD, OPTIONS, PATCH'],
  ];

  for (const [path, allow] of table) {
    it(`are told by OPTIONS and 405: ${path}`, async () => {
      const { handler } = serve();
      await request(handler).options(path).expect(204).expect('Allow', allow);
      for (const method of ['put', 'delete', path.endsWith('/') ? 'patch' : 'post'] as const) {
        await request(handler)[method](path).expect(405).expect('Allow', allow);
      }
    });
  }
});
