/** What only frontdesk's own auth service understands, wherever it runs, so that denials look the same. */
import type { ProblemSlug } from '#http';

/** Requests denials without a body, so that the gateway can write its own error body. */
export const withoutBody = ['prefer', 'return=minimal'];

/** What these statuses mean from frontdesk's own auth service, which honours `Prefer`. Any other means its own limits. */
const uncheckedSlugs: Readonly<Record<number, ProblemSlug>> = { 429: 'login-throttled', 503: 'auth-overloaded' };

/** The problem of a login that frontdesk's own auth service, in another process, did not check. */
export function uncheckedSlug(status: number, headers: Readonly<Record<string, unknown>>): ProblemSlug | undefined {
  return headers['preference-applied'] === 'return=minimal' ? uncheckedSlugs[status] : undefined;
}
