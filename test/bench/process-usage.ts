/** What a process of another program has used, from /proc. */
import { readFileSync } from 'node:fs';
import type { Usage } from './child.ts';

/** Fields 14, 15 and 24 of proc(5)'s stat, after the name, which may hold anything but ends with the last bracket. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, pages] = [11, 12, 21].map((index) => Number(fields[index]));
  return { cpuMicros: ((user ?? 0) + (system ?? 0)) * microsPerTick, rssBytes: (pages ?? 0) * 4096 };
}

/** USER_HZ is 100 wherever Linux runs. */
const microsPerTick = 10_000;
