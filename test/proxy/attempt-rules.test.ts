/** The table of rules for further attempts: what holds for every request, after every sequence of failures. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { wholeBody } from '#proxy';
import {
  type AttemptRule,
  createRetryRules,
  type EndedAttempt,
  type Ending,
  type Repeat,
  rulesAllowing,
} from '../../src/proxy/attempt-rules.ts';

const endings: readonly Ending[] = ['unsent', 'keep-alive-race', 'sent', 'responding', 'timed-out', 'retriable-status'];
const retryOn = ['5xx', 'retriable-4xx'] as const;
const policy = createRetryRules({ retryOn, numRetries: 10, perTryTimeoutMs: 1, statusCodes: [] });
const whole = wholeBody('hello');
const unread = { ...whole, isWhole: () => false };
const read = { ...unread, isRepeatable: () => false };

const ended = fc.record({
  ending: fc.constantFrom(...endings),
  reason: fc
    .constantFrom('ECONNREFUSED', 'HTTP2_REFUSED', 'ECONNRESET', 'ETIMEDOUT', 'OVERFLOW')
    .map((code) => ({ code })),
});
const anyRepeat = fc.constantFrom<Repeat>('idempotent', 'failover', 'never');
const request = fc.record({
  method: fc.constantFrom('GET', 'PUT', 'POST', 'PATCH'),
  body: fc.constantFrom(undefined, whole, unread, read),
  policy: fc.constantFrom(undefined, policy),
});

/** Follows any of the rules that allow another attempt after each end, and reports each step. */
function walk(check: (step: { repeat: Repeat; attempt: EndedAttempt; rule: AttemptRule }) => void): void {
  const ends = fc.array(fc.tuple(ended, fc.nat()), { maxLength: 12 });
  fc.assert(
    fc.property(anyRepeat, request, ends, (repeat, asked, all) => {
      let followed: readonly AttemptRule['name'][] = [];
      for (const [end, choice] of all) {
        const attempt = { ...asked, ...end, followed };
        const rules = rulesAllowing(repeat, attempt);
        const rule = rules[choice % rules.length];
        if (rule === undefined) return;
        check({ repeat, attempt, rule });
        followed = [...followed, rule.name];
      }
    }),
    { numRuns: 2000 },
  );
}

describe('the rules for further attempts', () => {
  it('never repeat what is not idempotent once it was written, unless the gateway asks an auth service', () =>
    walk(({ repeat, attempt: { method, ending } }) => {
      if (['POST', 'PATCH'].includes(method)) assert.ok(repeat === 'failover' || ending === 'unsent');
    }));

  it('send a request again at most five times that was not processed, besides the retry policy', () =>
    walk(({ attempt: { followed }, rule }) => {
      if (rule.name === 'refused') assert.ok(followed.filter((name) => name === 'refused').length < 5);
    }));

  it('never send a body again that an attempt has read, or may still read after its time-out', () =>
    walk(({ attempt: { body, ending } }) => {
      assert.notEqual(body, read);
      if (ending === 'timed-out') assert.notEqual(body, unread);
    }));

  it('never repeat a copy for a shadow', () => walk(({ repeat }) => assert.notEqual(repeat, 'never')));

  it('repeat a time-out and a status only by the policy, after a pause', () =>
    walk(({ attempt, rule }) => {
      if (!['timed-out', 'retriable-status'].includes(attempt.ending)) return;
      assert.deepEqual([rule.name, rule.where, attempt.policy], ['policy', 'later', policy]);
    }));

  it('send a request again at most twice without a policy after it was written, on a new connection at last', () =>
    walk(({ repeat, attempt, rule }) => {
      const names = [...attempt.followed, rule.name].filter((name) => /new-connection|fail-over/.test(name));
      assert.equal(new Set(names).size, names.length);
      if (names.length === 2) assert.deepEqual([repeat, ...names], ['idempotent', 'fail-over', 'new-connection']);
    }));
});
