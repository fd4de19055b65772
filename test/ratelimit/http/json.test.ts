/** Parsing requests from JSON, with error messages for invalid ones, and formatting decisions. */
import assert from 'node:assert/strict';
import { type Decision, InvalidRequest } from '#ratelimit';
import { formatJsonDecision, parseJsonRequest } from '../../../src/ratelimit/http/json.ts';

describe('a request as JSON', () => {
  function check(text: string, expected: object): void {
    it(`is parsed: ${text}`, () => {
      assert.deepEqual(JSON.parse(JSON.stringify(parseJsonRequest(text))), {
        descriptors: [],
        hitsAddend: 0,
        ...expected,
      });
    });
  }

  const entries = [{ key: 'k', value: 'v' }];

  check('{"domain":"d"}', { domain: 'd' });
  check('{}', { domain: '' });
  check('{"domain":null,"descriptors":null,"hitsAddend":null}', { domain: '' });
  check('{"domain":"d","hitsAddend":3}', { domain: 'd', hitsAddend: 3 });
  check('{"domain":"d","hits_addend":"3"}', { domain: 'd', hitsAddend: 3 });
  check('{"domain":"d","hitsAddend":3.0}', { domain: 'd', hitsAddend: 3 });
  check('{"descriptors":[{"entries":[{"key":"k","value":"v"}]},{}]}', {
    domain: '',
    descriptors: [{ entries }, { entries: [] }],
  });
  check('{"descriptors":[{"entries":[{"key":"k"}],"hitsAddend":"0"}]}', {
    domain: '',
    descriptors: [{ entries: [{ key: 'k', value: '' }], hitsAddend: 0 }],
  });
  check('{"descriptors":[{"hitsAddend":"18446744073709551615"}]}', {
    domain: '',
    descriptors: [{ entries: [], hitsAddend: 2 ** 64 }],
  });
  check('{"descriptors":[{"limit":{"requests_per_unit":"7","unit":"MONTH"},"hits_addend":2}]}', {
    domain: '',
    descriptors: [{ entries: [], limit: { requestsPerUnit: 7, unit: 'month' }, hitsAddend: 2 }],
  });
  check('{"descriptors":[{"limit":{"requestsPerUnit":7,"unit":7}}]}', {
    domain: '',
    descriptors: [{ entries: [], limit: { requestsPerUnit: 7, unit: 'week' } }],
  });

  check('{"descriptors":[{"isNegativeHits":true},{"is_negative_hits":false},{"isNegativeHits":null}]}', {
    domain: '',
    descriptors: [{ entries: [], isNegativeHits: true }, { entries: [], isNegativeHits: false }, { entries: [] }],
  });
  check('{"descriptors":[{"limit":{"requestsPerUnit":7,"unit":"MINUTE","unit_multiplier":5}}]}', {
    domain: '',
    descriptors: [{ entries: [], limit: { requestsPerUnit: 7, unit: 'minute', unitMultiplier: 5 } }],
  });

  function checkRejected(text: string, message: RegExp): void {
    it(`is rejected: ${text === '' ? 'an empty body' : text.slice(0, 100)}`, () => {
      assert.throws(
        () => parseJsonRequest(text),
        (error) => error instanceof InvalidRequest && message.test(error.message),
      );
    });
  }

  checkRejected('', /^the body is not JSON: /);
  checkRejected('{"domain":', /^the body is not JSON: /);
  checkRejected('[]', /^the body must be an object$/);
  checkRejected('null', /^the body must be an object$/);
  checkRejected('{"domain":1}', /^domain must be text$/);
  checkRejected('{"domian":"d"}', /^domian is not a known field; known: domain, descriptors, hitsAddend$/);
  checkRejected('{"__proto__":{}}', /^__proto__ is not a known field/);
  checkRejected('{"hitsAddend":1,"hits_addend":1}', /^hits_addend appears twice, under both of its names$/);
  checkRejected('{"descriptors":{}}', /^descriptors must be a list$/);
  checkRejected('{"descriptors":[null]}', /^descriptors\[0\] must be an object$/);
  checkRejected(
    '{"descriptors":[{},{"entries":[{"key":"k","val":"v"}]}]}',
    /^descriptors\[1\]\.entries\[0\]\.val is not a known field/,
  );
  checkRejected(
    '{"descriptors":[{"hitsAddend":"18446744073709551617000"}]}',
    /^descriptors\[0\]\.hitsAddend must be a whole/,
  );

  // Parsing all items of a body of 1 MiB would take seconds.
  const zeros = JSON.stringify(Array.from({ length: 100 }, () => 0));
  checkRejected(`{"descriptors":${zeros}}`, /^descriptors has 100 descriptors, more than the maximum of 64$/);
  checkRejected(
    `{"descriptors":[{"entries":${zeros}}]}`,
    /^descriptors\[0\]\.entries has 100 entries, more than the maximum of 32$/,
  );
  for (const hits of ['-1', '1.5', '4294967296', '"1e3"', '" 1"', 'true'])
    checkRejected(`{"hitsAddend":${hits}}`, /^hitsAddend must be a whole number from 0 to 4294967295$/);
  checkRejected('{"descriptors":[{"isNegativeHits":1}]}', /^descriptors\[0\]\.isNegativeHits must be true or false$/);
  for (const unit of ['"minute"', '"UNKNOWN"', '0', '8', '-1', 'null', '[]'])
    checkRejected(
      `{"descriptors":[{"limit":{"unit":${unit}}}]}`,
      /^descriptors\[0\]\.limit\.unit must be one of SECOND, MINUTE/,
    );
});

describe('a decision as JSON', () => {
  function check(name: string, decision: Decision, expected: object): void {
    it(name, () => assert.deepEqual(JSON.parse(formatJsonDecision(decision)), expected));
  }

  const currentLimit = { requestsPerUnit: 10, unit: 'week', windowSeconds: 604_800, name: undefined } as const;

  check('has only its code if there are no descriptors', { overallCode: 'OK', statuses: [] }, { overallCode: 'OK' });

  check(
    'omits defaults and formats durations as strings',
    {
      overallCode: 'OVER_LIMIT',
      statuses: [
        { code: 'OVER_LIMIT', currentLimit, limitRemaining: 0, resetSeconds: 30 },
        {
          code: 'OK',
          currentLimit: { ...currentLimit, unitMultiplier: 2, name: 'n' },
          limitRemaining: 4,
          resetSeconds: 1,
        },
        { code: 'OK', currentLimit: undefined, limitRemaining: 4_294_967_295, resetSeconds: undefined },
      ],
    },
    {
      overallCode: 'OVER_LIMIT',
      statuses: [
        { code: 'OVER_LIMIT', currentLimit: { requestsPerUnit: 10, unit: 'WEEK' }, durationUntilReset: '30s' },
        {
          code: 'OK',
          currentLimit: { requestsPerUnit: 10, unit: 'WEEK', unitMultiplier: 2, name: 'n' },
          limitRemaining: 4,
          durationUntilReset: '1s',
        },
        { code: 'OK', limitRemaining: 4_294_967_295 },
      ],
    },
  );

  check(
    'has the response headers under the names of the protocol',
    { overallCode: 'OK', statuses: [], responseHeaders: [{ name: 'RateLimit-Limit', value: '10' }] },
    { overallCode: 'OK', responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '10' }] },
  );
});
