/** Markup in which everything is escaped that is not markup itself. */
import { escapeHtml } from '#http';

export interface Markup {
  readonly markup: string;
}

/** Undefined and false stand for nothing. */
type Content = Markup | string | number | undefined | false | readonly Content[];

/** A template whose literal parts are markup, and whose values are text unless they are markup. */
export function html(literals: TemplateStringsArray, ...values: readonly Content[]): Markup {
  const markup = literals.reduce((whole, literal, index) => whole + markupOf(values[index - 1]) + literal);
  return { markup };
}

function markupOf(content: Content): string {
  if (content === undefined || content === false) return '';
  if (typeof content === 'string') return escapeHtml(content);
  if (typeof content === 'number') return String(content);
  return 'markup' in content ? content.markup : content.map(markupOf).join('');
}
