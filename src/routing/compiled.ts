/** A pattern of a record, compiled once, when the table is made. */
import { compilePattern, type Pattern } from '#config';

/** Records are checked when they are read; whoever makes up a rule in code hears of a fault here. */
export function compiled(text: string): Pattern {
  const result = compilePattern(text);
  if (!result.ok) throw new TypeError(`${result.fault.message}. ${result.fault.remedy}`);
  return result.pattern;
}
