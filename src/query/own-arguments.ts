/** Arguments that a service adds to the language, such as the dates of a stay: read together, through one schema. */
import type { z } from 'zod';
import type { Fault } from '#http';
import { pointerTo } from './arguments.ts';

/**
 * A `z.object` whose fields take text and may be absent; it may hold them against each other with `refine` or
 * `superRefine`, whose `path` names the argument at fault. Without any arguments it must pass.
 */
export type OwnArguments<Own> = z.ZodObject & z.ZodType<Own>;

export interface OwnReader<Own> {
  readonly names: readonly string[];
  /** What the schema gives when nothing is asked. */
  readonly plain: Own;
  /** Undefined if there are faults, which are added. */
  readonly read: (texts: Readonly<Record<string, string>>, faults: Fault[]) => Own | undefined;
}

/** Throws a ZodError at once if the schema does not pass without arguments. */
export function createOwnReader<Own>(schema: OwnArguments<Own>): OwnReader<Own> {
  return Object.freeze({
    names: Object.freeze(Object.keys(schema.shape)),
    plain: schema.parse({}) as Own,
    read(texts: Readonly<Record<string, string>>, faults: Fault[]) {
      const result = schema.safeParse(texts);
      if (result.success) return result.data as Own;
      for (const { path, message } of result.error.issues) {
        faults.push({ pointer: pointerTo(path[0] === undefined ? undefined : String(path[0])), detail: message });
      }
      return undefined;
    },
  });
}
