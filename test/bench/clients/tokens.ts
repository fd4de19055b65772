/** The tokens of the benchmark, and the records with which a server accepts them. */
import { createKey, providerRecord, signToken } from '../../support/tokens.ts';

const issuer = 'https://accounts.example.com';
const key = createKey('RS256', 'bench');

export const tokenProvider = { ...providerRecord([key], { issuer, audiences: [] }), clock_skew: '10m' };

/** A token of the demo user that is remembered after the first request. */
export function rememberedToken(): string {
  return bearer(24 * 3600);
}

/** A token whose time is over, but which is accepted for another ten minutes: it is verified for each request. */
export function freshToken(): string {
  return bearer(0);
}

function bearer(seconds: number): string {
  const exp = Math.floor(Date.now() / 1000) + seconds;
  return `Bearer ${signToken(key, { iss: issuer, sub: 'demo', exp, scope: 'openid orders', email: 'demo@example.com' })}`;
}
