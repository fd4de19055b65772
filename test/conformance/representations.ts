/** Section 1.5 and the settled point on representations: one choice by `Accept`, for what is there and what is not. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { callAsDemo, hotelBooking, type OpenDesk } from './desk.ts';

const resources = ['/v1/messages/1', '/v2/messages/', '/v1/hotels', `/v1/hotels/bookings/${hotelBooking}`];

/** Answered by a version, by a service, and by the gateway itself. */
const absent = ['/v1/messages/999', '/v1/hotels/bookings/none', '/v9/messages/1'];

const html = 'text/html; charset=utf-8';

/** `Accept`, then the type of a normal response and of an error. */
const choices: readonly (readonly [string | undefined, string, string])[] = [
  [undefined, 'application/json', 'application/json'],
  ['*/*', 'application/json', 'application/json'],
  ['application/*', 'application/json', 'application/json'],
  ['application/json', 'application/json', 'application/json'],
  ['APPLICATION/JSON', 'application/json', 'application/json'],
  ['application/json; charset=utf-8', 'application/json', 'application/json'],
  ['nonsense', 'application/json', 'application/json'],
  ['application/yaml', 'application/yaml', 'application/yaml'],
  ['application/json;q=0.5, application/yaml', 'application/yaml', 'application/yaml'],
  ['application/json;q=0, */*', 'application/yaml', 'application/problem+json'],
  ['text/html', html, html],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', html, html],
  ['application/json, application/problem+json', 'application/json', 'application/problem+json'],
];

export function representationCases(desk: OpenDesk): void {
  const ask = (path: string, accept: string | undefined) => {
    const asked = callAsDemo(desk, path);
    return accept === undefined ? asked : asked.set('Accept', accept);
  };

  describe('representations', () => {
    for (const [accept, type, errorType] of choices) {
      it(`are ${type} (errors: ${errorType}) for Accept: ${accept ?? 'nothing'}`, async () => {
        for (const path of resources) await ask(path, accept).expect(200).expect('Content-Type', type);
        for (const path of absent) await ask(path, accept).expect(404).expect('Content-Type', errorType);
      });
    }

    it('say the same in YAML as in JSON', async () => {
      for (const path of resources) {
        const { body } = await ask(path, 'application/json');
        const { text } = await ask(path, 'application/yaml');
        assert.deepEqual(parse(text), body);
      }
    });

    it('are a page for people with a browser, without a script and with a policy against them', async () => {
      for (const path of [...resources, ...absent]) {
        const { text, headers } = await ask(path, 'text/html');
        assert.match(text, /^<!doctype html>/i);
        assert.doesNotMatch(text, /<script/i);
        assert.match(headers['content-security-policy'] ?? '', /default-src 'none'/);
      }
    });

    for (const accept of ['image/png', 'application/xml', 'text/plain, image/*']) {
      it(`cannot be made for Accept: ${accept}: 406 lists what there is, in JSON`, async () => {
        for (const path of resources) {
          const { body } = await ask(path, accept).expect(406).expect('Content-Type', 'application/json');
          assert.equal(body.code, 406);
          assert.equal(body.message, '406: Not Acceptable');
          for (const type of ['application/json', 'application/yaml', 'text/html'])
            assert.ok(body.detail.includes(type));
        }
      });
    }

    it('are told to depend on Accept, whatever comes of it', async () => {
      for (const path of [...resources, ...absent]) {
        for (const accept of [undefined, 'application/yaml', 'image/png']) {
          const { headers } = await ask(path, accept);
          assert.match(headers['vary'] ?? '', /(?:^|, *)accept(?:,|$)/i, `${path} for ${accept}`);
        }
      }
    });
  });
}
