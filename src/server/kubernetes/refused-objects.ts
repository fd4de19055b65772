/** What the log says about refused objects of a cluster: all that are new or have other errors, in one line. */
import { isDeepStrictEqual } from 'node:util';
import type { Refusal } from '#config';

/** Returns the refused objects that were not refused before, or because of other errors. */
export function newlyRefused(refused: readonly Refusal[], before: readonly Refusal[]): readonly Refusal[] {
  const known = new Map(before.map(({ object, errors }) => [object, errors]));
  return refused.filter(({ object, errors }) => object !== undefined && !isDeepStrictEqual(errors, known.get(object)));
}

/** Keeps the log readable. `frontdesk check --kubernetes` lists all errors. */
const objectsMax = 50;

/** `format` formats the errors of an object. */
export function formatObjects(refused: readonly Refusal[], format: (errors: Refusal['errors']) => string): string {
  const shown = refused.slice(0, objectsMax).map(({ errors, consequence }) => {
    return `${format(errors)}\n    Until then, ${consequence}.`;
  });
  const more = refused.length - objectsMax;
  const rest = more <= 0 ? [] : [`and ${more} more: frontdesk check --kubernetes lists all of them`];
  const subject = refused.length === 1 ? 'an object of the cluster is' : `${refused.length} objects of the cluster are`;
  return [`${subject} refused:`, ...shown, ...rest].join('\n');
}

const namesMax = 20;

/** Undefined if all that were refused are refused still. */
export function formatAccepted(refused: readonly Refusal[], before: readonly Refusal[]): string | undefined {
  const now = new Set(refused.map(({ object }) => object));
  const names = before.flatMap(({ object }) => (object === undefined || now.has(object) ? [] : [object]));
  if (names.length === 0) return undefined;
  const more = names.length - namesMax;
  return `no longer refused: ${names.slice(0, namesMax).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
