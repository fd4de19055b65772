/** One line a minute, at most, while logins are throttled: from where, and how many have been refused. */
import { createOncePerMinute, type Logger } from '#http';
import type { Verdict } from './authenticator.ts';

/** Returns the verdict that it got. */
export function createThrottleLog(logger: Logger, clock = () => performance.now()): (verdict: Verdict) => Verdict {
  let refused = 0;
  const mayLog = createOncePerMinute(clock);
  return (verdict) => {
    if (verdict.kind !== 'throttled') return verdict;
    refused += 1;
    if (!mayLog()) return verdict;
    const { network, isShared } = verdict.sender;
    logger.warn({ network, isShared, refused }, `logins are refused after too many failures${isShared ? remedy : ''}`);
    refused = 0;
    return verdict;
  };
}

const remedy = '; the address may be that of many clients: if a proxy is there, name it in TRUSTED_PROXIES';
