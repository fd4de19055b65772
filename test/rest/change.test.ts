/** Things are changed by PATCH, by whoever has seen what he changes. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { createShelf } from './shelf-app.ts';

function serve() {
  const { app, notes } = createShelf();
  notes.set(1, { id: 1, text: 'a', version: 1 });
  notes.set(12, { id: 12, text: 'a', version: 12 });
  const handler = app.callback();
  const patch = (path = '/notes/1') => request(handler).patch(path);
  const tagOf = async (path: string, accept = 'application/json') =>
    String((await request(handler).get(path).set('Accept', accept).expect(200)).headers['etag']);
  return { handler, notes, patch, tagOf };
}

describe('a change', () => {
  it('is 200 with the item and its new tag, which a GET has as well', async () => {
    const { patch, tagOf } = serve();
    const { body, headers } = await patch()
      .set('If-Match', await tagOf('/notes/1'))
      .send({ text: 'b' })
      .expect(200);
    assert.deepEqual([body.text, headers['etag']], ['b', '"2-json"']);
    assert.equal(await tagOf('/notes/1'), '"2-json"');
  });

  it('needs If-Match, and says so', async () => {
    const { patch, notes } = serve();
    const { body } = await patch().send({ text: 'b' }).expect(428);
    assert.match(body.detail, /If-Match/);
    assert.equal(notes.get(1)?.text, 'a');
  });

  for (const ifMatch of ['"0-json"', '"2-json"', 'W/"1-json"', '"1"', '"11-json"', '1-json', '', '"12-json"']) {
    it(`is 412 when the tag is not current: ${ifMatch}`, async () => {
      const { patch, notes } = serve();
      await patch().set('If-Match', ifMatch).send({ text: 'b' }).expect(412);
      assert.equal(notes.get(1)?.text, 'a');
    });
  }

  it('does not take the beginning of a version for the version', async () => {
    await serve().patch('/notes/12').set('If-Match', '"1-json"').send({ text: 'b' }).expect(412);
  });

  for (const ifMatch of ['*', '"1-json"', '"9-json", "1-json"', 'W/"1-json", "1-json"']) {
    it(`is made when one of the tags is current: ${ifMatch}`, async () => {
      await serve().patch().set('If-Match', ifMatch).send({ text: 'b' }).expect(200);
    });
  }

  it('may be held against any representation that was read, and answered in another', async () => {
    for (const [path, accept] of [
      ['/notes/1', 'application/yaml'],
      ['/notes/1', 'text/html'],
      ['/notes/1?fields=id,text', 'application/json'],
    ] as const) {
      const { patch, tagOf } = serve();
      const answer = await patch()
        .set('If-Match', await tagOf(path, accept))
        .send({ text: 'b' })
        .expect(200);
      assert.equal(answer.headers['etag'], '"2-json"');
    }
    const { patch } = serve();
    const yaml = patch('/notes/1?fields=text').set({ 'If-Match': '"1-json"', Accept: 'application/yaml' });
    const { text } = await yaml.send({ text: 'b' }).expect(200).expect('ETag', '"2-text-yaml"');
    assert.equal(text, 'text: b\n');
  });

  it('that changes nothing is for its maker to allow', async () => {
    await serve().patch().set('If-Match', '"0-json"').send({ text: 'a' }).expect(200).expect('ETag', '"1-json"');
  });

  it('of what is not there is 404, whatever else is wrong', async () => {
    const { patch } = serve();
    await patch('/notes/9').send({ text: 'b' }).expect(404);
    await patch('/notes/9').type('text/plain').send('x').expect(404);
  });

  it('asks who it is first, and then what he accepts', async () => {
    const { patch } = serve();
    await patch('/notes/9').set('X-Nobody', '1').expect(401);
    await patch('/notes/9').set('Accept', 'image/png').expect(406);
  });

  it('is refused with a body that is none', async () => {
    const { patch } = serve();
    const put = () => patch().set('If-Match', '*');
    await put().expect(400);
    await put().type('text/plain').send('x').expect(415).expect('Accept-Patch', 'application/json');
    const { body } = await put().send({ text: 5, id: 2 }).expect(400);
    assert.deepEqual(
      body.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['/text', '/id'],
    );
  });

  it('is made once when several hold the same tag', async () => {
    const { patch, notes } = serve();
    const answers = await Promise.all(
      ['b', 'c', 'd', 'e'].map(async (text) => patch().set('If-Match', '"1-json"').send({ text })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 412, 412, 412]);
    assert.equal(notes.get(1)?.version, 2);
  });
});
