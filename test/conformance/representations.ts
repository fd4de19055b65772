/** Representations: JSON, YAML or HTML by `Accept`, each with its own entity tag. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { callAsDemo, hotelBooking, type OpenDesk } from './desk.ts';

const booking = `/v1/hotels/bookings/${hotelBooking}`;
const resources = ['/v1/messages/1', '/v2/messages/', '/v1/hotels', booking];

/** Paths for which a version, a service and the gateway itself respond 404. */
const absent = ['/v1/messages/999', '/v1/accounts/none/messages/', '/v1/hotels/bookings/none', '/v9/messages/1'];

const json = 'application/json';
const yaml = 'application/yaml';
const problem = 'application/problem+json';
const html = 'text/html; charset=utf-8';

/** `Accept`, the media type of a normal response, and that of an error. */
const choices: readonly (readonly [string | undefined, string, string])[] = [
  [undefined, json, json],
  ['*/*', json, json],
  [yaml, yaml, yaml],
  ['application/json;q=0, */*', yaml, problem],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', html, html],
  ['application/json, application/problem+json', json, problem],
];

export function representationCases(desk: OpenDesk): void {
  const get = (path: string, accept?: string) => {
    const sent = callAsDemo(desk, path).set('Accept-Encoding', 'identity');
    return accept === undefined ? sent : sent.set('Accept', accept);
  };

  describe('representations', () => {
    for (const [accept, type, errorType] of choices) {
      it(`are ${type} (errors: ${errorType}) for Accept: ${accept ?? 'nothing'}`, async () => {
        for (const path of resources) await get(path, accept).expect(200).expect('Content-Type', type);
        for (const path of absent) await get(path, accept).expect(404).expect('Content-Type', errorType);
      });
    }

    it('end with a line break unless they are HTML, counted in Content-Length, also of HEAD', async () => {
      for (const path of [...resources, ...absent])
        for (const accept of [json, yaml, problem]) {
          const { text, headers, status } = await get(path, accept);
          assert.match(text, /[^\n]\n$/, `${path} for ${accept}`);
          assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
          if (status !== 200) continue;
          const head = await callAsDemo(desk, path, 'head').set({ Accept: accept, 'Accept-Encoding': 'identity' });
          assert.deepEqual(
            [head.headers['content-length'], head.headers['etag']],
            [headers['content-length'], headers['etag']],
          );
        }
    });

    it('have the same content in YAML and in JSON', async () => {
      for (const path of resources) assert.deepEqual(parse((await get(path, yaml)).text), (await get(path, json)).body);
    });

    it('contain no scripts in HTML, and have a Content-Security-Policy that forbids them', async () => {
      for (const path of [...resources, ...absent]) {
        const { text, headers } = await get(path, 'text/html');
        assert.match(text, /^<!doctype html>/i);
        assert.doesNotMatch(text, /<script/i);
        assert.match(headers['content-security-policy'] ?? '', /default-src 'none'/);
      }
    });

    it('respond 406 to other media types, with a list of the available ones', async () => {
      for (const path of resources) {
        await get(path, problem).expect(406).expect('Content-Type', problem);
        const { body } = await get(path, 'image/png').expect(406).expect('Content-Type', json);
        assert.deepEqual([body.code, body.message], [406, '406: Not Acceptable']);
        for (const type of [json, yaml, 'text/html']) assert.ok(body.detail.includes(type));
      }
    });

    it('respond 404 when there is no resource, also to a client that accepts only types for errors or none at all', async () => {
      for (const path of absent) {
        await get(path, problem).expect(404).expect('Content-Type', problem);
        await get(path, 'image/png').expect(404).expect('Content-Type', json);
      }
    });

    it('vary by Accept, whatever the response', async () => {
      for (const path of [...resources, ...absent])
        for (const accept of [undefined, yaml, 'image/png']) {
          const { headers } = await get(path, accept);
          assert.match(headers['vary'] ?? '', /(?:^|, *)accept(?:,|$)/i, `${path} for ${accept}`);
        }
    });
  });

  describe('conditional requests', () => {
    const tagOf = async (path: string, accept = json) => String((await get(path, accept).expect(200)).headers['etag']);

    for (const path of [...resources, '/v1/accounts/demo', `${booking}?fields=status`]) {
      it(`get 304 for the tag of this representation, and 200 for any other: ${path}`, async () => {
        const tag = await tagOf(path);
        assert.match(tag, /^(?:W\/)?"[^"]+"$/);
        const { text, headers } = await get(path).set('If-None-Match', tag).expect(304);
        assert.deepEqual([text ?? '', headers['etag']], ['', tag]);
        await get(path).set('If-None-Match', '"other"').expect(200);
        await get(path)
          .set('If-Match', '"other"')
          .expect(412, /without If-Match/);
        await get(path).set('If-Match', tag).expect(200);
        await get(path, 'text/html').set('If-None-Match', tag).expect(200);
        const tags = await Promise.all([yaml, 'text/html'].map((type) => tagOf(path, type)));
        assert.equal(new Set([tag, ...tags]).size, 3);
      });
    }
  });
}
