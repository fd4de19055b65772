/** Formats all figures as one table, each with its peer, the ratio to the peer, and the target. */

/** A row as a measurement returns it. */
export interface MeasuredRow {
  /** @default the name of the measurement */
  readonly name?: string;
  /** What is measured, followed by the server after a colon. */
  readonly title: string;
  /** Undefined if it was not measured. */
  readonly figure: number | undefined;
  /** The reason why it was not measured. */
  readonly missing?: string;
  readonly unit: string;
  /** The row that it is compared with: its name, or what differs in its title. */
  readonly peer?: string;
  /** The figure divided by the peer's. */
  readonly ratio?: number;
  readonly target?: Target;
}

export type TableRow = MeasuredRow & { readonly name: string };

/** All given conditions must hold. `extraMax` bounds the difference from the peer's figure. */
export interface Target {
  readonly ratioMax?: number;
  readonly ratioMin?: number;
  readonly figureMax?: number;
  readonly extraMax?: number;
}

/** One row for each kind of failure, or one row with zero failures. */
export function failureRows(failures: ReadonlyMap<string, number>): MeasuredRow[] {
  const rows = [...failures].map(([outcome, count]) => [`failed requests: ${outcome}`, count] as const);
  return (rows.length === 0 ? [['failed requests', 0] as const] : rows).map(([title, figure]) => ({
    title,
    figure,
    unit: '',
    target: { figureMax: 0 },
  }));
}

/** Whether the target is met. Undefined if there is no target, or the row was not measured. */
export function isMet({ figure, ratio, target }: TableRow): boolean | undefined {
  if (target === undefined || figure === undefined) return undefined;
  const { ratioMax, ratioMin, figureMax, extraMax } = target;
  // Compares the rounded ratio, as the table shows it.
  const shown = ratio === undefined ? Number.NaN : Number(ratio.toFixed(2));
  return (
    (ratioMax === undefined || shown <= ratioMax) &&
    (ratioMin === undefined || shown >= ratioMin) &&
    (figureMax === undefined || figure <= figureMax) &&
    (extraMax === undefined || figure - figure / (ratio ?? Number.NaN) <= extraMax)
  );
}

function formatTarget({ ratioMax, ratioMin, figureMax, extraMax }: Target): string {
  const conditions = [
    ...(ratioMax === undefined ? [] : [`ratio up to ${ratioMax}`]),
    ...(ratioMin === undefined ? [] : [`ratio from ${ratioMin}`]),
    ...(figureMax === undefined ? [] : [`up to ${figureMax}`]),
    ...(extraMax === undefined ? [] : [`up to ${extraMax} more than the peer`]),
  ];
  return conditions.join(', ');
}

export function formatTable(rows: readonly TableRow[]): string {
  const lines = [
    ['row', 'title', 'figure', 'unit', 'peer', 'ratio', 'target', 'met'],
    ...rows.map((row) => {
      const { name, title, figure, missing, unit, peer = '', ratio, target } = row;
      const met = isMet(row);
      return [
        name,
        title,
        figure?.toFixed(Number.isInteger(figure) ? 0 : 1) ?? '',
        missing ?? unit,
        peer,
        ratio?.toFixed(2) ?? '',
        target === undefined ? '' : formatTarget(target),
        met === undefined ? '' : met ? 'yes' : 'no',
      ];
    }),
  ];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const isNumber = (column: number) => column === 2 || column === 5;
  const pad = (cell: string, column: number) =>
    isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return lines.map((line) => `${line.map(pad).join('  ').trimEnd()}\n`).join('');
}

export function formatJson(rows: readonly TableRow[]): string {
  return `${JSON.stringify(
    rows.map((row) => ({ ...row, met: isMet(row) })),
    null,
    2,
  )}\n`;
}
