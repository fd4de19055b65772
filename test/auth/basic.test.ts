/** Parsing and formatting of HTTP Basic credentials. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatBasic, parseBasic } from '../../src/auth/authenticator.ts';
import { anyCharacter } from '../support/any-character.ts';

function base64(bytes: string | readonly number[]): string {
  return (typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes)).toString('base64');
}

describe('parseBasic', () => {
  const check = (header: string | undefined, expected: ReturnType<typeof parseBasic>) =>
    assert.deepEqual(parseBasic(header), expected, header);

  it('accepts the scheme in any case, followed by any number of spaces', () => {
    const expected = { user: 'demo', password: 'demo' };
    for (const scheme of ['Basic ', 'basic ', 'BASIC ', 'bAsIc    ']) check(scheme + base64('demo:demo'), expected);
  });

  it('splits at the first colon, allows either side to be empty, and keeps a byte order mark', () => {
    for (const [user, password] of [
      ['demo', 'a:b:'],
      ['', ''],
      ['demo', ''],
      ['', 'demo'],
      ['\ufeffdemo', 'demo'],
    ] as const)
      check(`Basic ${base64(`${user}:${password}`)}`, { user, password });
  });

  it('returns undefined for anything other than a Basic header', () => {
    const good = base64('demo:demo');
    for (const header of ['', 'Basic', 'Basic ', good, `Bearer ${good}`, `Basic${good}`, ` Basic ${good}`])
      check(header, undefined);
    for (const tail of [' ', ',', ' x', `, Basic ${good}`, '\n']) check(`Basic ${good}${tail}`, undefined);
    check(undefined, undefined);
  });

  it('returns undefined for non-canonical base64', () => {
    check('Basic YTpi', { user: 'a', password: 'b' });
    check('Basic YTo=', { user: 'a', password: '' });
    for (const encoded of ['YTo', 'YTp=', 'YTo==', 'YTo=YTo=', 'YTpi=', 'YTpi-_', '=', '===='])
      check(`Basic ${encoded}`, undefined);
  });

  it('returns undefined for a missing colon, control characters and invalid UTF-8', () => {
    check(`Basic ${base64('demo')}`, undefined);
    for (const control of ['\0', '\t', '\r', '\n', '\x1f', '\x7f', '\x85'])
      for (const text of [`de${control}mo:demo`, `demo:de${control}mo`]) check(`Basic ${base64(text)}`, undefined);
    check(`Basic ${base64([0x61, 0x3a, 0xa3])}`, undefined);
    check(`Basic ${base64([0xc0, 0xba, 0x3a, 0x61])}`, undefined);
  });

  it('accepts a header of up to 4 KiB', () => {
    const longest = formatBasic('demo', 'x'.repeat(3061));
    assert.equal(longest.length, 4094);
    assert.notEqual(parseBasic(longest), undefined);
    check(formatBasic('demo', 'x'.repeat(3062)), undefined);
  });

  it('never throws, whatever the header', () => {
    // Node decodes the bytes of headers as Latin-1.
    const header = fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1'));
    fc.assert(fc.property(header, (text) => void parseBasic(text)));
    fc.assert(fc.property(header, (text) => void parseBasic(`Basic ${text}`)));
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void parseBasic(`Basic ${base64([...bytes])}`)));
  });
});

describe('formatBasic', () => {
  const text = fc.string({ unit: anyCharacter }).filter((value) => !/\p{Cc}/u.test(value));
  const name = text.filter((value) => !value.includes(':'));

  it('round-trips with parseBasic', () => {
    fc.assert(
      fc.property(name, text, (user, password) => {
        assert.deepEqual(parseBasic(formatBasic(user, password)), { user, password });
      }),
    );
  });

  it('rejects credentials that Basic cannot transmit', () => {
    assert.throws(() => formatBasic('de:mo', 'demo'), /colon/);
    assert.throws(() => formatBasic('demo', 'de\nmo'), /control/);
    assert.throws(() => formatBasic('de\0mo', 'demo'), /control/);
  });
});
