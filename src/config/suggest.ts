/** Did you mean: the known name that a mistyped one is nearest to. */

/** The nearest of `known`, or undefined when none is near enough to be meant. A known name that only says more (`timeout_ms` for `timeout`) is near. */
export function suggestion(mistyped: string, known: Iterable<string>): string | undefined {
  const slack = slackOf(mistyped);
  const near: { readonly name: string; readonly distance: number }[] = [];
  for (const name of known) {
    const distance = editDistance(mistyped.toLowerCase(), name.toLowerCase());
    if (distance <= slack || saysMore(name, mistyped)) near.push({ name, distance });
  }
  return near.sort((a, b) => a.distance - b.distance)[0]?.name;
}

/** For the end of a sentence: `, did you mean "prefix"?`, or nothing. */
export function didYouMean(mistyped: string, known: Iterable<string>): string {
  const name = suggestion(mistyped, known);
  return name === undefined ? '' : `, did you mean "${name}"?`;
}

/** Letters put in, left out, replaced or swapped with their neighbour (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      current.push(cheapest(a, b, row, column, { before, last, current }));
    }
    before = last;
    last = current;
  }
  return at(last, b.length);
}

interface Rows {
  readonly before: readonly number[];
  readonly last: readonly number[];
  readonly current: readonly number[];
}

function cheapest(a: string, b: string, row: number, column: number, { before, last, current }: Rows): number {
  const replaced = at(last, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
  const swapped =
    row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      ? at(before, column - 2) + 1
      : Number.POSITIVE_INFINITY;
  return Math.min(replaced, swapped, at(last, column) + 1, at(current, column - 1) + 1);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

/** One slip in a short word, two in a longer one; below three letters everything would be near everything. */
function slackOf(name: string): number {
  if (name.length < 3) return 0;
  return name.length < 6 ? 1 : 2;
}

function saysMore(name: string, mistyped: string): boolean {
  return mistyped.length >= 4 && (name.startsWith(`${mistyped}_`) || name.endsWith(`_${mistyped}`));
}
