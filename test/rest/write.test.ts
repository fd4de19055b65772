/** Writing: problems with an extension, and the preconditions of PATCH. Conformance tests cover new and changed items. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createNoteApp, type Note } from './note-app.ts';

let handler: RequestListener;
let notes: Map<number, Note>;

describe('writing', () => {
  beforeEach(() => {
    const created = createNoteApp();
    notes = created.notes;
    handler = new Koa().use(mount('/v1', created.app)).callback();
  });

  describe('createItem', () => {
    it('sends the extension of a problem in every representation', async () => {
      const { body } = await request(handler).post('/v1/notes/').send({ text: 'full' }).expect(409);
      assert.deepEqual(body, { code: 409, message: '409: Conflict', alternatives: [{ shelf: '<next>', room: 3 }] });
      const refusal = (accept: string) =>
        request(handler).post('/v1/notes/').set('Accept', accept).send({ text: 'full' }).expect(409);
      assert.match((await refusal('application/yaml')).text, /alternatives:\n {2}- shelf: <next>\n {4}room: 3/);
      assert.match((await refusal('text/html')).text, /<dt>alternatives<\/dt>.*<th scope="row">&#60;next&#62;</s);
      const { body: rfc9457 } = await refusal('application/json, application/problem+json');
      assert.deepEqual([rfc9457.status, rfc9457.alternatives], [409, body.alternatives]);
    });
  });

  describe('updateItem', () => {
    beforeEach(() => {
      for (const version of [1, 12]) notes.set(version, { id: version, text: 'a', version });
    });

    const patch = (path = '/v1/notes/1') => request(handler).patch(path);
    const tagOf = async (path: string, accept = 'application/json') =>
      String((await request(handler).get(path).set('Accept', accept).expect(200)).headers['etag']);

    it('responds 412 when no entity tag is current, and changes nothing', async () => {
      for (const ifMatch of ['"0-json"', '"2-json"', 'W/"1-json"', '"1"', '"11-json"', '1-json', '', '"12-json"'])
        await patch().set('If-Match', ifMatch).send({ text: 'b' }).expect(412);
      await patch('/v1/notes/12')
        .set('If-Match', '"1-json"')
        .send({ text: 'b' })
        .expect(412, /read it again/);
      assert.deepEqual([notes.get(1)?.text, notes.get(12)?.text], ['a', 'a']);
    });

    for (const [search, accept] of [
      ['', 'application/yaml'],
      ['', 'text/html'],
      ['?fields=id,text', 'application/json'],
    ] as const)
      it(`accepts the entity tag of another representation or selection: ${accept} ${search}`, async () => {
        const ifMatch = await tagOf(`/v1/notes/1${search}`, accept);
        await patch().set('If-Match', ifMatch).send({ text: 'b' }).expect(200).expect('ETag', /^"2-/);
      });

    it('explains that an entity tag must be strong and needs its quotes', async () => {
      await patch()
        .set('If-Match', '1-json')
        .send({ text: 'b' })
        .expect(412, /with the double quotes/);
      await patch()
        .set('If-Match', 'W/"1-json"')
        .send({ text: 'b' })
        .expect(412, /without the leading W\//);
    });

    it('lets the resource skip the precondition for a change that has no effect', () =>
      patch().set('If-Match', '"0-json"').send({ text: 'a' }).expect(200).expect('ETag', /^"1-/));

    it('checks the user, then whether the item exists, then the body, then Accept', async () => {
      const created = request(handler).post('/v1/notes/').type('text/plain');
      await created.set({ 'X-Stranger': '1', Accept: 'image/png' }).send('x').expect(401);
      const missing = () => patch('/v1/notes/9').set('Accept', 'image/png').type('text/plain');
      const found = () => patch().set({ 'If-Match': '"1-json"', Accept: 'image/png' });
      await missing().set('X-Stranger', '1').send('x').expect(401);
      await missing().send('x').expect(404);
      await found().type('text/plain').send('x').expect(415);
      await found().send({ text: 'b' }).expect(406);
      assert.equal(notes.get(1)?.text, 'a');
    });
  });

  describe('the methods of resources that can be written', () => {
    for (const [path, allow, other] of [
      ['/v1/notes/', 'GET, HEAD, OPTIONS, POST', 'patch'],
      ['/v1/notes/1', 'GET, HEAD, OPTIONS, PATCH', 'post'],
    ] as const)
      it(`are listed in responses to OPTIONS and in 405: ${path}`, async () => {
        const { headers } = await request(handler).options(path).expect(204).expect('Allow', allow);
        assert.equal(
          headers['accept-patch'],
          allow.includes('PATCH') ? 'application/json, application/merge-patch+json' : undefined,
        );
        for (const method of ['put', 'delete', other] as const)
          await request(handler)[method](path).expect(405).expect('Allow', allow);
      });
  });
});
