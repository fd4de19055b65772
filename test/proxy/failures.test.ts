/** The table of failures: each error code maps to a problem. faults.test.ts provokes the failures over a socket. */
import assert from 'node:assert/strict';
import { errors } from 'undici';
import { Problem, type ProblemKind, problems } from '#http';
import { failures, upstreamProblem } from '../../src/proxy/failures.ts';

describe('the table of failures', () => {
  const connecting = (code: string) => Object.assign(new Error('connect 10.0.0.7:80'), { code });

  it('determines the problem, the Retry-After and the logged remedy, and hides the cause from the client', () => {
    for (const [code, { slug, retryAfterSeconds, remedy }] of Object.entries(failures)) {
      const cause = connecting(code);
      const found = upstreamProblem(cause);
      assert.deepEqual([found.slug, found.detail], [slug, undefined], code);
      const { retryAfterSeconds: ofProblem }: ProblemKind = problems[slug];
      assert.equal(found.headers?.['Retry-After'], (retryAfterSeconds ?? ofProblem)?.toString(), code);
      if (remedy === undefined) assert.equal(found.cause, cause);
      else assert.match(String(found.cause), /^Error: connect 10\.0\.0\.7:80: \w/);
    }
  });

  it('covers families of codes, and treats unknown codes as upstream-failed', () => {
    assert.equal(upstreamProblem(connecting('HPE_SOMETHING_NEW')).slug, failures['HPE_']?.slug);
    const tls = upstreamProblem(connecting('ERR_SSL_SOMETHING_NEW'));
    assert.ok(String(tls.cause).endsWith(failures['ERR_SSL_']?.remedy ?? 'no remedy'));
    assert.equal(upstreamProblem(connecting('SOMETHING_NEW')).slug, 'upstream-failed');
  });

  it('accepts any thrown value', () => {
    for (const thrown of [undefined, null, 'text', 7, {}, { code: 7 }, { code: 'toString' }, new Error('x')])
      assert.ok(upstreamProblem(thrown) instanceof Problem);
  });

  it('leads to a Retry-After for every 503 and for no other status', () => {
    for (const code of Object.keys(failures)) {
      const { status, headers } = upstreamProblem(connecting(code));
      assert.equal(headers?.['Retry-After'] !== undefined, status === 503, code);
    }
  });

  it('asks for a longer wait when a name or a network is not known than when a service refuses connections', () => {
    const waits = ['ECONNREFUSED', 'ENOTFOUND'].map(
      (code) => upstreamProblem(connecting(code)).headers?.['Retry-After'],
    );
    assert.deepEqual(waits, ['1', '5']);
  });

  it('lists exactly the errors that undici exports', () => {
    const codes = Object.values(errors).map((Kind) => {
      const one = new (Kind as unknown as new (...some: unknown[]) => Error & { code?: string })('', undefined, {});
      return one.code ?? (one.name === 'HTTPParserError' ? 'HPE_' : 'UND_ERR_SOCKS5');
    });
    const known = Object.keys(failures).filter(
      (code) => code.startsWith('UND_') || code.startsWith('ERR_WEB') || code === 'HPE_',
    );
    assert.deepEqual([...new Set(codes)].sort(), known.sort());
  });
});
