/** Tests which origins a rule may contain, and which requests each of them allows. */
import assert from 'node:assert/strict';
import { createAllowedOrigin } from '#config';
import { originFault } from '../../../src/config/fields/origins.ts';

describe('an origin with a star', () => {
  function check(rule: string, allowed: string, refused: string): void {
    it(`${rule} is valid`, () => assert.equal(originFault(rule), undefined));
    const valueFor = createAllowedOrigin([rule]);
    for (const origin of allowed.split(' '))
      it(`${rule} allows ${origin}`, () => assert.equal(valueFor(origin), origin));
    for (const origin of refused.split(' ')) it(`${rule} refuses ${origin}`, () => assert.equal(valueFor(origin), ''));
  }

  check(
    'https://*.example.com',
    'https://app.example.com https://a.b.example.com https://xn--bcher-kva.example.com',
    'https://example.com https://evil-example.com https://.example.com http://app.example.com https://app.example.com:8443 https://app.example.com.evil.com https://evil.com/.example.com https://evil.com:1.example.com https://a@b.example.com https://*.example.com null',
  );
  check(
    'http://*.localhost:3000',
    'http://app.localhost:3000',
    'http://localhost:3000 http://app.localhost http://app.localhost:30000',
  );

  it('stands beside exact origins', () => {
    const valueFor = createAllowedOrigin(['https://other.example', 'https://*.example.com']);
    assert.deepEqual(
      ['https://other.example', 'https://a.example.com', 'https://a.other.example', undefined].map(valueFor),
      ['https://other.example', 'https://a.example.com', '', ''],
    );
  });

  for (const rule of [
    'https://*example.com',
    'https://app*.example.com',
    'https://app.*.com',
    'https://*.*.example.com',
    'https://*.com',
    'https://*',
    '*.example.com',
    'https://*.example.com/',
    'https://*.example.com:*',
    'https://*.example.com:443',
    'https://*.EXAMPLE.com',
    'https://*.0.0.1',
    'ftp://*.example.com',
  ])
    it(`is rejected with a remedy if it could match strangers or nothing: ${rule}`, () =>
      assert.match(originFault(rule)?.remedy ?? '', /https:\/\/\*\.example\.com/));
});
