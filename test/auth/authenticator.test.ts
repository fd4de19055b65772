/** The authenticator: Basic credentials, verdicts, their cost, caching, throttling and reloads. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { createAuthenticator, createLoginCounts } from '#auth';
import type { PasswordHash } from '#auth/password-hash';
import { formatBasic, parseBasic } from '../../src/auth/authenticator.ts';
import { anyCharacter } from '../support/any-character.ts';

const demo = formatBasic('demo', 'sesame');
const guest = formatBasic('guest', 'sesame');
const wrong = formatBasic('demo', 'guess');
const unknown = formatBasic('nobody', 'sesame');

type Options = Partial<Parameters<typeof createAuthenticator>[0]>;

const fakeHash = (): PasswordHash => ({
  cost: { ln: 1, r: 1, p: 1 },
  salt: new Uint8Array(8),
  hash: new Uint8Array(32),
});

/** Sets up users with the password `sesame`, and a fake scrypt that records calls and blocks while `hold` is set. */
function setUp(options: Options = {}, names: readonly string[] = ['demo', 'guest']) {
  const hashes = new Map(names.map((name) => [name, fakeHash()]));
  const dummy = fakeHash();
  const users = { find: (name: string) => hashes.get(name), isAdmin: () => false, dummyHash: () => dummy };
  const state = { nowMs: 0, hold: false, verified: [] as PasswordHash[], waiting: [] as (() => void)[] };
  const verify = async (password: string, hash: PasswordHash) => {
    state.verified.push(hash);
    if (state.hold) await new Promise<void>((resolve) => state.waiting.push(resolve));
    return password === 'sesame';
  };
  const { authenticate, verdictOf } = createAuthenticator({ users, clock: () => state.nowMs, verify, ...options });
  const release = () => {
    for (const resolve of state.waiting.splice(0)) resolve();
  };
  return { authenticate, verdictOf, dummy, hashes, state, release };
}

describe('authenticate', () => {
  it('resolves to the user of the credentials, and to nothing that is truthy for any failure', async () => {
    const { authenticate } = setUp();
    assert.deepEqual(await authenticate(demo), { kind: 'user', name: 'demo', isAdmin: false });
    for (const header of [undefined, '', 'Bearer abc', wrong, unknown])
      assert.equal(await authenticate(header), undefined, header);
  });

  it('resolves to undefined while too many logins fail or are being checked', async () => {
    const { authenticate, verdictOf, state, release } = setUp({ verificationsMax: 1, waitingMax: 0 });
    for (let guess = 0; guess < 11; guess += 1) await authenticate(wrong);
    assert.deepEqual([(await verdictOf(demo)).kind, await authenticate(demo)], ['throttled', undefined]);
    state.hold = true;
    const running = authenticate(unknown);
    assert.deepEqual([(await verdictOf(guest)).kind, await authenticate(guest)], ['busy', undefined]);
    release();
    assert.equal(await running, undefined);
  });
});

describe('createAuthenticator', () => {
  it('detects missing and malformed credentials without scrypt', () => {
    const { verdictOf, state } = setUp();
    assert.deepEqual(verdictOf(undefined), { kind: 'missing' });
    for (const header of ['', 'Basic', 'Bearer abc', 'Basic !!!', `Basic ${'A'.repeat(5000)}`])
      assert.deepEqual(verdictOf(header), { kind: 'invalid' }, header);
    assert.equal(state.verified.length, 0);
  });

  it('rejects a wrong password and an unknown user, even if the password matches the dummy hash', async () => {
    const { verdictOf } = setUp();
    for (const header of [wrong, unknown, formatBasic('', ''), formatBasic('__proto__', 'sesame')])
      assert.deepEqual(await verdictOf(header), { kind: 'invalid' }, header);
  });

  it('fails when scrypt fails, and tries again the next time', async () => {
    let failing = true;
    const { verdictOf } = setUp({
      verify: async () => {
        if (failing) throw new Error('out of memory');
        return true;
      },
    });
    await assert.rejects(async () => verdictOf(demo), /out of memory/);
    failing = false;
    assert.deepEqual(await verdictOf(demo), { kind: 'user', name: 'demo', isAdmin: false });
  });
});

describe('cached credentials', () => {
  it('get the same frozen verdict synchronously and without scrypt', async () => {
    const { verdictOf, state } = setUp();
    await verdictOf(demo);
    const verdict = verdictOf(demo);
    assert.deepEqual(verdict, { kind: 'user', name: 'demo', isAdmin: false });
    assert.ok(Object.isFrozen(verdict));
    for (let count = 0; count < 100; count++) assert.equal(verdictOf(demo), verdict);
    assert.equal(state.verified.length, 1);
  });

  it('are verified again after a minute by default, and rejected if the user is gone', async () => {
    for (const [options, ttlMs] of [
      [{}, 60_000],
      [{ cacheTtlMs: 1000 }, 1000],
    ] as const) {
      const { verdictOf, hashes, state } = setUp(options);
      await verdictOf(demo);
      state.nowMs = ttlMs - 1;
      assert.ok(!(verdictOf(demo) instanceof Promise));
      state.nowMs = ttlMs;
      assert.deepEqual(await verdictOf(demo), { kind: 'user', name: 'demo', isAdmin: false });
      assert.equal(state.verified.length, 2);
      hashes.delete('demo');
      state.nowMs = 2 * ttlMs;
      assert.deepEqual(await verdictOf(demo), { kind: 'invalid' });
    }
  });

  it('share one entry for all spellings of the scheme', async () => {
    const { verdictOf, state } = setUp({ cacheEntriesMax: 2 });
    await verdictOf(guest);
    await verdictOf(demo);
    for (const spelling of ['basic', 'BASIC', 'Basic ', 'basic  '])
      assert.deepEqual(
        verdictOf(demo.replace('Basic', spelling)),
        { kind: 'user', name: 'demo', isAdmin: false },
        spelling,
      );
    assert.ok(!(verdictOf(guest) instanceof Promise));
    assert.equal(state.verified.length, 2);
  });

  it('are bounded by evicting the oldest from a full cache', async () => {
    const { verdictOf, state } = setUp({ cacheEntriesMax: 2 }, ['a', 'b', 'c']);
    for (const name of ['a', 'b', 'c']) await verdictOf(formatBasic(name, 'sesame'));
    state.verified.length = 0;
    for (const name of ['b', 'c', 'a']) await verdictOf(formatBasic(name, 'sesame'));
    assert.equal(state.verified.length, 1);
  });

  it('are not evicted by wrong guesses', async () => {
    const { verdictOf } = setUp({ cacheEntriesMax: 1 });
    await verdictOf(demo);
    for (let guess = 0; guess < 20; guess++) await verdictOf(formatBasic('demo', `guess${guess}`));
    assert.ok(!(verdictOf(demo) instanceof Promise));
  });
});

describe('verification', () => {
  it('costs one scrypt computation for every wrong guess, using the dummy hash for an unknown user', async () => {
    const { verdictOf, dummy, hashes, state } = setUp();
    for (const header of [wrong, wrong, unknown, unknown]) await verdictOf(header);
    const known = hashes.get('demo');
    assert.deepEqual(
      state.verified.map((hash) => [hash === known, hash === dummy]),
      [
        [true, false],
        [true, false],
        [false, true],
        [false, true],
      ],
    );
  });

  it('happens once for concurrent requests with the same credentials, right or wrong', async () => {
    for (const header of [demo, wrong, unknown]) {
      const { verdictOf, state, release } = setUp();
      state.hold = true;
      const together = [header, header, header.replace('Basic', 'basic')].map((one) => verdictOf(one));
      assert.equal(state.verified.length, 1);
      release();
      assert.equal(new Set(await Promise.all(together)).size, 1);
    }
  });

  it('has a maximum of running and waiting checks, beyond which requests get `busy`', async () => {
    const { verdictOf, state, release } = setUp({ verificationsMax: 1, waitingMax: 1 });
    state.hold = true;
    const running = ['1', '2'].map((guess) => verdictOf(formatBasic('demo', guess)));
    assert.deepEqual(verdictOf(demo), { kind: 'busy' });
    assert.equal(state.verified.length, 1);
    state.hold = false;
    release();
    for (const verdict of await Promise.all(running)) assert.deepEqual(verdict, { kind: 'invalid' });
    assert.deepEqual(await verdictOf(demo), { kind: 'user', name: 'demo', isAdmin: false });
  });

  it('prefers credentials that were right before, so that a flood of guesses does not lock them out', async () => {
    const { verdictOf, hashes, state, release } = setUp({ verificationsMax: 1, waitingMax: 1, cacheTtlMs: 1000 });
    await verdictOf(demo);
    state.nowMs = 1000;
    state.hold = true;
    const guesses = ['1', '2'].map((guess) => verdictOf(formatBasic('guest', guess)));
    const again = verdictOf(demo);
    assert.deepEqual(await guesses[1], { kind: 'busy' });
    hashes.delete('demo');
    state.hold = false;
    release();
    assert.deepEqual(await again, { kind: 'invalid' }, 'the user was removed');
    for (let time = 0; time < 11; time += 1) await verdictOf(demo);
    assert.equal((await verdictOf(demo)).kind, 'throttled', 'and counts as a guess like any other');
  });

  const from = (network: string) => () => ({ network, isShared: false });

  it('is throttled after too many failures, but only for that network', async () => {
    const { verdictOf, state } = setUp();
    for (let guess = 0; guess < 11; guess += 1) await verdictOf(wrong, from('a'));
    assert.equal(state.verified.length, 11);
    const throttled = { kind: 'throttled', retryAfterS: 1, sender: from('a')() };
    for (const header of [wrong, demo]) assert.deepEqual(verdictOf(header, from('a')), throttled);
    assert.equal(state.verified.length, 11);
    assert.deepEqual(await verdictOf(demo, from('b')), { kind: 'user', name: 'demo', isAdmin: false });
    assert.ok(!(verdictOf(demo, from('a')) instanceof Promise), 'cached credentials pass');
    state.nowMs = 1000;
    assert.deepEqual(await verdictOf(guest, from('a')), { kind: 'user', name: 'guest', isAdmin: false });
  });

  it('forgets the failures of a user who then logs in', async () => {
    const { verdictOf } = setUp();
    for (const header of [...Array<string>(10).fill(wrong), demo, wrong, wrong])
      assert.notEqual((await verdictOf(header, from('a'))).kind, 'throttled');
  });

  it('is throttled equally for concurrent and for consecutive guesses', async () => {
    const { verdictOf, state, release } = setUp({ verificationsMax: 1 });
    state.hold = true;
    const guesses = Array.from({ length: 40 }, (_, guess) => verdictOf(formatBasic('demo', `${guess}`), from('a')));
    state.hold = false;
    release();
    const kinds = (await Promise.all(guesses)).map(({ kind }) => kind);
    assert.deepEqual([state.verified.length, kinds.filter((kind) => kind === 'throttled').length], [11, 29]);
  });

  it('counts a concurrent guess from two networks against both', async () => {
    const { verdictOf, state, release } = setUp();
    for (let guess = 0; guess < 11; guess += 1) {
      state.hold = true;
      const together = ['a', 'b'].map((network) => verdictOf(wrong, from(network)));
      state.hold = false;
      release();
      await Promise.all(together);
    }
    for (const network of ['a', 'b']) assert.equal((await verdictOf(demo, from(network))).kind, 'throttled', network);
  });

  it('is counted by outcome', async () => {
    const counts = createLoginCounts();
    const { verdictOf } = setUp({ counts });
    await verdictOf(demo);
    for (const header of [demo, undefined, 'Bearer abc']) void verdictOf(header);
    for (let guess = 0; guess < 13; guess += 1) await verdictOf(wrong);
    assert.deepEqual(counts, { right: 1, wrong: 11, throttled: 2, busy: 0 });
  });
});

describe('a reload of users', () => {
  const one = { find: fakeHash, isAdmin: () => false, dummyHash: fakeHash };
  const none = { find: () => undefined, isAdmin: () => false, dummyHash: fakeHash };

  it('applies to the next request, even with cached credentials', async () => {
    const { verdictOf, reload } = createAuthenticator({ users: one, verify: async () => true });
    assert.deepEqual(await verdictOf(demo), { kind: 'user', name: 'demo', isAdmin: false });
    reload(none);
    assert.deepEqual(await verdictOf(demo), { kind: 'invalid' });
    reload(one);
    assert.deepEqual(await verdictOf(demo), { kind: 'user', name: 'demo', isAdmin: false });
  });

  it('does not cache the verdict of a check that started before it', async () => {
    let finish = () => {};
    const verify = () =>
      new Promise<boolean>((resolve) => {
        finish = () => resolve(true);
      });
    const { verdictOf, reload } = createAuthenticator({ users: one, verify });
    const before = verdictOf(demo);
    reload(none);
    finish();
    assert.deepEqual(await before, { kind: 'user', name: 'demo', isAdmin: false });
    const after = verdictOf(demo);
    finish();
    assert.deepEqual(await after, { kind: 'invalid' });
  });
});

describe('the heap of an authenticator', () => {
  it('contains neither passwords nor headers, right or wrong', async () => {
    const script = fileURLToPath(new URL('./secret-searcher.ts', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=frontdesk-source', script]);
    const { found, retained, isCached } = JSON.parse(stdout);
    assert.deepEqual(found, [false, false, false, false, true], `only ${retained} is retained on purpose`);
    assert.ok(isCached);
  });
});

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
