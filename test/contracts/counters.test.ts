/** The counters in this process keep the contract of all counters. */
import { createMemoryCounters } from '#ratelimit';
import { countersContract } from './counters.ts';

countersContract('in memory', async () => ({
  // The first day of a year's window, so that no border is near.
  counters: createMemoryCounters({ clock: () => 50 * 365 * 86_400_000 + 86_400_000 }),
  close: async () => {},
}));
