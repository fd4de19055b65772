/** Reads the CPU time and memory of another program's process from /proc. */
import { readFileSync } from 'node:fs';
import type { Usage } from './child.ts';

/** Reads fields 14, 15 and 24 of proc(5)'s stat. The name before them ends with the last bracket. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, pages] = [11, 12, 21].map((index) => Number(fields[index]));
  return { cpuMicros: ((user ?? 0) + (system ?? 0)) * microsPerTick, rssBytes: (pages ?? 0) * 4096 };
}

/** USER_HZ is 100 on all Linux systems. */
const microsPerTick = 10_000;
