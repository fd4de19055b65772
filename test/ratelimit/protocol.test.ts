/** Bytes on the wire: the field numbers of the public protocol, written out by hand. */
import assert from 'node:assert/strict';
import type { Decision, RateLimitRequest } from '#ratelimit';
import { createProtocol, type ProtocolName } from '../../src/ratelimit/protocol.ts';
import { descriptor } from '../support/limits.ts';

const request: RateLimitRequest = { domain: 'd', descriptors: [descriptor('k=v')], hitsAddend: 3 };
const decision: Decision = {
  overallCode: 'OVER_LIMIT',
  statuses: [
    {
      code: 'OVER_LIMIT',
      currentLimit: { requestsPerUnit: 5, unit: 'week', windowSeconds: 604_800, name: 'n' },
      limitRemaining: 4,
      resetSeconds: 9,
    },
  ],
};

function codecOf(name: ProtocolName) {
  const { path, requests, decisions } = createProtocol(name);
  return {
    path,
    encodeRequest: requests.format,
    decodeRequest: requests.parse,
    encodeDecision: decisions.format,
    decodeDecision: decisions.parse,
  };
}

describe('the protocol', () => {
  it('names its services and paths', () => {
    const check = (name: ProtocolName, service: string) =>
      assert.equal(codecOf(name).path, `/${service}/ShouldRateLimit`);
    check('v3', 'envoy.service.ratelimit.v3.RateLimitService');
    check('lyft', 'pb.lyft.ratelimit.RateLimitService');
  });

  it('writes a request alike in both packages', () => {
    const bytes = '0a0164' + '1208' + '0a06' + '0a016b' + '120176' + '1803';
    for (const name of ['v3', 'lyft'] as const)
      assert.equal(codecOf(name).encodeRequest(request).toString('hex'), bytes);
  });

  it('writes an answer with the fields that the package has', () => {
    const check = (name: ProtocolName, bytes: string) =>
      assert.equal(codecOf(name).encodeDecision(decision).toString('hex'), bytes);
    check('lyft', '0802' + '120a' + '0802' + '1204' + '08051007' + '1804');
    check('v3', '0802' + '1211' + '0802' + '1207' + '08051007' + '1a016e' + '1804' + '22020809');
  });

  it('carries the limit and the hits of a descriptor in v3, and leaves them out of the older package', () => {
    const own = { ...descriptor('k=v'), limit: { requestsPerUnit: 5, unit: 'week' as const }, hitsAddend: 0 };
    const asked: RateLimitRequest = { domain: 'd', descriptors: [own], hitsAddend: 1 };
    const v3 = codecOf('v3');
    const bytes = v3.encodeRequest(asked);
    assert.equal(
      bytes.toString('hex'),
      '0a0164' + '1212' + '0a060a016b120176' + '1204' + '08051007' + '1a020800' + '1801',
    );
    assert.deepEqual(v3.decodeRequest(bytes), asked);
    const lyft = codecOf('lyft');
    assert.deepEqual(lyft.decodeRequest(lyft.encodeRequest(asked)), {
      ...asked,
      descriptors: [descriptor('k=v')],
    });
  });

  it('reads a limit with a unit that nobody knows as one without', () => {
    const bytes = Buffer.from('0a0164' + '120e' + '0a060a016b120176' + '1204' + '08051063', 'hex');
    assert.deepEqual(codecOf('v3').decodeRequest(bytes), {
      domain: 'd',
      descriptors: [{ ...descriptor('k=v'), limit: { requestsPerUnit: 5, unit: undefined } }],
      hitsAddend: 0,
    });
  });

  it('refuses to send a limit whose window it could not say', () => {
    const limit = { requestsPerUnit: 5, unit: 'second' as const, unitMultiplier: 30 };
    assert.throws(
      () => codecOf('v3').encodeRequest({ domain: 'd', descriptors: [{ ...descriptor('k=v'), limit }] }),
      /unit_multiplier cannot be sent/,
    );
  });

  it('tells in v3 how many units a window is long', () => {
    const { encodeDecision, decodeDecision } = codecOf('v3');
    const currentLimit = {
      requestsPerUnit: 5,
      unit: 'second',
      unitMultiplier: 30,
      windowSeconds: 30,
      name: 'n',
    } as const;
    const status = { code: 'OK', currentLimit, limitRemaining: 4, resetSeconds: 9 } as const;
    const answer: Decision = { overallCode: 'OK', statuses: [status] };
    assert.deepEqual(decodeDecision(encodeDecision(answer)), answer);
    assert.ok(
      encodeDecision(answer)
        .toString('hex')
        .includes('1a016e' + '2202081e'),
    );
  });

  it('carries headers for the client in v3', () => {
    const { encodeDecision, decodeDecision } = codecOf('v3');
    const answer: Decision = {
      overallCode: 'OK',
      statuses: [],
      responseHeaders: [{ name: 'RateLimit-Limit', value: '5' }],
    };
    assert.deepEqual(decodeDecision(encodeDecision(answer)), answer);
  });

  it('reads back what it wrote', () => {
    const { encodeDecision, decodeDecision } = codecOf('v3');
    assert.deepEqual(decodeDecision(encodeDecision(decision)), decision);
  });

  it('reads a request of an older client with its defaults', () => {
    const { decodeRequest } = codecOf('lyft');
    assert.deepEqual(decodeRequest(Buffer.from('0a0164', 'hex')), {
      domain: 'd',
      descriptors: [],
      hitsAddend: 0,
    });
  });

  it('reads the answer of a service that says little or more than we know', () => {
    const { decodeDecision } = codecOf('v3');
    const check = (bytes: string, expected: object) => {
      const [status] = decodeDecision(Buffer.from(`0801${bytes}`, 'hex')).statuses;
      assert.deepEqual(status, {
        code: 'OK',
        currentLimit: undefined,
        limitRemaining: 0,
        resetSeconds: undefined,
        ...expected,
      });
    };
    check('1200', {});
    check('1202' + '0800', {});
    check('1206' + '1204' + '08051063', {});
    check('1206' + '2204' + '08091001', { resetSeconds: 10 });
    check('1202' + '2200', { resetSeconds: 0 });
  });

  it('takes no answer for an answer', () => {
    const { decodeDecision } = codecOf('v3');
    assert.throws(() => decodeDecision(Buffer.alloc(0)), /overall_code is UNKNOWN/);
    assert.throws(() => decodeDecision(Buffer.from('0a', 'hex')));
  });
});
