/** Texts of a document as markup: the little of CommonMark that they use, and nothing that could be more than text. */
import { escapeHtml } from '#http';

/** Paragraphs, lists of `- `, and code in backticks. */
export function prose(text: string): string {
  const blocks = text.split(/\n{2,}/).filter((block) => block !== '');
  return blocks.map(block).join('\n');
}

/** Code in backticks. */
export function phrase(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

export function code(text: string): string {
  return `<code>${escapeHtml(text)}</code>`;
}

/** Terms and what is said of them, both as markup; nothing at all where there are none. */
export function definitions(rows: readonly (readonly [term: string, meaning: string])[]): string {
  if (rows.length === 0) return '';
  return `<dl>${rows.map(([term, meaning]) => `<dt>${term}</dt><dd>${meaning}</dd>`).join('\n')}</dl>`;
}

function block(text: string): string {
  if (!text.startsWith('- ')) return `<p>${phrase(text)}</p>`;
  const items = text.slice(2).split('\n- ');
  return `<ul>${items.map((item) => `<li>${phrase(item)}</li>`).join('')}</ul>`;
}
