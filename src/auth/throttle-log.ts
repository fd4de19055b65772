/** One line a minute, at most, while logins are throttled: from where, and how many have been refused. */
import type { Logger } from '#http';
import type { Verdict } from './authenticator.ts';

const everyMs = 60_000;

/** Returns the verdict that it got. */
export function createThrottleLog(logger: Logger, clock = () => performance.now()): (verdict: Verdict) => Verdict {
  let refused = 0;
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  return (verdict) => {
    if (verdict.kind !== 'throttled') return verdict;
    refused += 1;
    if (clock() < silentUntilMs) return verdict;
    const { network, isShared } = verdict.sender;
    logger.warn({ network, isShared, refused }, `logins are refused after too many failures${isShared ? remedy : ''}`);
    refused = 0;
    silentUntilMs = clock() + everyMs;
    return verdict;
  };
}

const remedy = '; the address may be that of many clients: if a proxy is there, name it in TRUSTED_PROXIES';
