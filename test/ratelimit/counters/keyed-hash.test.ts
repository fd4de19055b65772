/** The hash of counter keys: it agrees with its authors' program, depends on the seed, and spreads keys evenly. */
import assert from 'node:assert/strict';
import { createKeyedHash } from '../../../src/ratelimit/counters/keyed-hash.ts';

function hashWith(seed: string) {
  const hash = createKeyedHash(seed);
  return (kind: number, seconds: number, text: string): readonly [number, number] => {
    const result = { low: 0, high: 0 };
    hash(result, kind, seconds, text);
    return [result.low, result.high];
  };
}

describe('the hash of keys', () => {
  // Computed by halfsiphash.c of https://github.com/veorq/SipHash, compiled with cROUNDS=1 and dROUNDS=3.
  const expected: readonly (readonly [number, number, string, number, number])[] = [
    [0, 1, '', 993905135, -75760132],
    [1, 60, 'a', 232223729, 911191931],
    [2, 3_600, 'ab', 1371476010, 1402624441],
    [0, 60, 'abc', 1443439255, 1787306736],
    [1, 86_400, 'remote_address=203.0.113.7', -2073188625, 935894183],
    [0, 60, 'x'.repeat(1_024), 138378249, 782898067],
    [0, 60, 'y'.repeat(1_025), -2038311128, 1531008081],
    [1, 60, 'ü', -1733072078, 42548508],
    [1, 60, '\ud800', -110616067, -1686720041],
    [0, 4_294_967_295, '|'.repeat(300), -1221066331, 315264195],
  ];
  for (const [kind, seconds, text, low, high] of expected)
    it(`agrees with the authors' program for ${JSON.stringify(text.slice(0, 30))} of ${text.length} characters`, () => {
      assert.deepEqual(hashWith('seed')(kind, seconds, text), [low, high]);
    });

  it('differs for texts that UTF-8 merges, after longer texts, and with another seed', () => {
    const hash = hashWith('seed');
    const texts = ['\ud800', '\ud801', '\ufffd', 'long text', 'long', 'l', ''];
    const hashes = [...texts.map((text) => hash(0, 60, text)), hash(1, 60, 'l'), hash(0, 61, 'l')];
    assert.equal(new Set([...hashes, hashWith('other')(0, 60, 'l')].map(String)).size, 10);
    assert.deepEqual(hash(0, 60, 'l'), hashes[5]);
  });

  it('differs for texts that differ in their last character, whatever their length in bytes', () => {
    const hash = hashWith('seed');
    // With a character of two bytes, the first 1,023 of these 1,024 characters fill 1,024 bytes.
    const start = `ü${'x'.repeat(1_022)}`;
    assert.notDeepEqual(hash(0, 60, `${start}a`), hash(0, 60, `${start}b`));
  });

  it('spreads similar keys evenly', () => {
    const hash = hashWith('seed');
    const counts = new Map<number, number>();
    const keys = 64_000;
    for (let index = 0; index < keys; index += 1) {
      const set = (hash(0, 60, `60f|gateway|remote_address|198.51.${index >> 8}.${index & 255}`)[1] >>> 0) >>> 22;
      counts.set(set, (counts.get(set) ?? 0) + 1);
    }
    const mean = keys / 1_024;
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - mean) ** 2 / mean, 0);
    // Its mean is 1,023, and its standard deviation 45.
    assert.ok(chiSquare > 800 && chiSquare < 1_250, `${chiSquare}`);
  });
});
