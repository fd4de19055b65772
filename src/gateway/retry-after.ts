/** How long a client must wait whose request was refused. */
import type { Decision, DescriptorStatus } from '#ratelimit';

/** The largest Integer of structured fields (RFC 9651 section 3.3.1). */
const secondsMax = 999_999_999_999_999;

/** Seconds until no limit stands in the way; 1 when the service says nothing of any. */
export function retryAfterSeconds({ statuses }: Decision): number {
  let seconds = 1;
  for (const status of statuses) {
    if (status.code === 'OVER_LIMIT') seconds = Math.max(seconds, waitSeconds(status));
  }
  return seconds;
}

/**
 * From 0 up, whatever a service far away may say. One of the older protocol does not say when the window ends: the whole
 * window is the safe answer.
 */
export function waitSeconds({ resetSeconds, currentLimit }: DescriptorStatus): number {
  return Math.min(secondsMax, Math.max(0, resetSeconds ?? currentLimit?.windowSeconds ?? 0));
}
