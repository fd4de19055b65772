/** Renders an error as an HTML page: what happened, what to do, and the request id to report. */
import type { ErrorBody } from '../problem.ts';
import { dataMarkup, fields, rawJson } from './data.ts';
import { html, htmlDocument, inlineMarkup } from './html.ts';

/** Details for the HTML page of an error that are not part of the error body. */
export interface ProblemNotes {
  readonly title: string;
  /** Undefined, like the remedy, if another party chose the status: the text in the table would not fit. */
  readonly meaning: string | undefined;
  readonly remedy: string | undefined;
  readonly requestId: string;
}

export function problemPage(body: ErrorBody, { meaning, remedy, requestId }: ProblemNotes): string {
  const { code: _code, message, info_url: infoUrl, detail, errors = [], ...extension } = body;
  const further = Object.entries(extension);
  const main = html`<p class="lead">${meaning !== undefined && inlineMarkup(meaning)}</p>
${detail !== undefined && detail !== meaning && html`<p class="verdict">${detail}</p>`}
${errors.length > 0 && dataMarkup(errors)}
${further.length > 0 && fields(further)}
${remedy !== undefined && html`<h2>What to do</h2>\n<p>${inlineMarkup(remedy)}</p>`}
<p class="hint">Request <code>${requestId}</code>${infoUrl !== undefined && html` · <a href="${infoUrl}">About this problem</a>`}</p>
${rawJson(body)}`;
  return htmlDocument({ title: message, main });
}
