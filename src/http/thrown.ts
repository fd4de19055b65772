/** What a handler has thrown, in a form that the error body, loggers and tracers can read without throwing again. */
import { inspect } from 'node:util';
import { Problem } from './problem.ts';

/** pino marks an error while it writes it, so a frozen one gets an heir that reads the same. */
export function readable(thrown: unknown): unknown {
  if (Object(thrown) !== thrown) return thrown;
  try {
    // Readable as it is, and in a flood of refusals its stack would cost the most.
    if (thrown instanceof Problem) return thrown;
    if (!(thrown instanceof Error)) return new Error(`what was thrown is no error: ${inspect(thrown)}`);
    readAll(thrown);
    return Object.isExtensible(thrown) ? thrown : Object.create(thrown);
  } catch {
    return new TypeError('what was thrown cannot be read: one of its properties throws');
  }
}

/** The properties that loggers and tracers read. */
function readAll(thrown: Error): void {
  String(thrown);
  void thrown.stack;
  void thrown.cause;
  for (const name in thrown) void thrown[name as keyof Error];
}
