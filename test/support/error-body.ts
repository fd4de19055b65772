/** Checks the body of a problem without details. */
import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { type ProblemSlug, problems } from '#http';

interface ReceivedResponse {
  readonly status: number;
  readonly body: { readonly info_url?: string };
}

/** Returns a check for supertest's `expect`: the status and body of the problem, without `detail` or `errors`. */
export function bareProblem(slug: ProblemSlug): (response: ReceivedResponse) => void {
  const { status: code } = problems[slug];
  return ({ status, body: { info_url: page, ...rest } }) => {
    assert.equal(status, code);
    assert.deepEqual(rest, { code, message: `${code}: ${STATUS_CODES[code]}` });
    assert.match(page ?? '', new RegExp(`^https?://[^/]+/(?:.+/)?gateway/v0/problems/${slug}$`));
  };
}
