/** Property test: the hostnames in common stand for exactly the hosts that both sides stand for. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { commonHostnames } from '../../../src/config/gateway-api/routes/hostnames.ts';

const labels = ['a', 'b'];
const short = labels.flatMap((one) => [one, ...labels.map((other) => `${other}.${one}`)]);
/** All names of up to four labels. */
const hosts = [...short, ...short.flatMap((end) => short.map((start) => `${start}.${end}`))];

const hostname = fc
  .tuple(fc.constantFrom('', '*.'), fc.array(fc.constantFrom(...labels), { minLength: 1, maxLength: 3 }))
  .map(([star, parts]) => star + parts.join('.'));

function standsFor(one: string | undefined, host: string): boolean {
  if (one === undefined || one === host) return true;
  const [, ...rest] = host.split('.');
  return one.startsWith('*.') && rest.some((_, index) => rest.slice(index).join('.') === one.slice(2));
}

describe('commonHostnames', () => {
  it('returns what stands for the hosts of both sides, and for no others', () => {
    const sides = [fc.option(hostname, { nil: undefined }), fc.array(hostname, { maxLength: 3 })] as const;
    fc.assert(
      fc.property(...sides, (ofListener, ofRoute) => {
        const common = commonHostnames(ofListener, ofRoute);
        const isIn = (all: readonly (string | undefined)[], host: string) => all.some((one) => standsFor(one, host));
        const wholeRoute = ofRoute.length === 0 ? [undefined] : ofRoute;
        for (const host of hosts)
          assert.equal(isIn(common, host), standsFor(ofListener, host) && isIn(wholeRoute, host), host);
      }),
    );
  });

  it('returns all hosts, not a hostname, for a listener with an empty one', () => {
    assert.deepEqual(commonHostnames('', []), [undefined]);
    assert.deepEqual(commonHostnames('', ['a.example']), ['a.example']);
  });
});
