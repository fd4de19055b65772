/** An explanation for a terminal: sections, aligned, without colour. */
import type { Explanation } from '#gateway';
import { explanationSections, type Section, verdictOf } from './explain-sections.ts';

/** Ends with a line break. What a client sent is shown without control characters. */
export function formatExplanation(explanation: Explanation): string {
  const { method, url, user } = explanation.request;
  const title = `${method} ${url}${user === undefined ? '' : ` by ${user}`}`;
  const sections = explanationSections(explanation);
  const labelWidth = Math.max(...sections.filter(({ rows }) => isPairs(rows)).map(({ rows }) => widthOf(rows, 0)));
  const blocks = sections.map(({ heading, rows }) => [heading, ...aligned(rows, labelWidth)].join('\n'));
  return `${printable([title, `  ${verdictOf(explanation)}`, '', blocks.join('\n\n')].join('\n'))}\n`;
}

type Rows = Section['rows'];

/** Labels and what they say: these stand below each other through all sections. */
function isPairs(rows: Rows): boolean {
  return rows.every((row) => row.length === 2);
}

function aligned(rows: Rows, labelWidth: number): string[] {
  const [first = []] = rows;
  const widths = isPairs(rows) ? [labelWidth] : first.map((_, column) => widthOf(rows, column));
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd());
}

function widthOf(rows: Rows, column: number): number {
  return Math.max(...rows.map((row) => row[column]?.length ?? 0));
}

/** An escape sequence would be the terminal's to obey. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '\ufffd');
}
