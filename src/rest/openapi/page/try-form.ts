/** Renders the form that sends a request of an operation. The script of the page shows it and handles it. */
import { html, type Markup } from '#http';
import type { PageContext, PageOperation, Parameter } from './page-document.ts';
import { resolve, typeName } from './schema.ts';
import { bodyExample, parameterExample } from './snippets.ts';

export function tryForm(operation: PageOperation, context: PageContext): Markup {
  const { method, path, operationId, parameters, responses } = operation;
  const required = parameters.filter((parameter) => parameter.required === true);
  const optional = parameters.filter((parameter) => parameter.required !== true);
  const inputs = (some: readonly Parameter[]) => some.map((parameter) => inputOf(parameter, operationId, context));
  const [success] = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const types = Object.keys(success?.[1].content ?? {});
  const body = bodyExample(operation, context);
  return html`<details class="part try" hidden><summary>Try it</summary>
<form data-method="${method}" data-path="${path}">
${inputs(required)}
${body !== undefined && html`<label>Body, as ${body.type} <textarea name="${body.type}" data-in="body" rows="8" spellcheck="false">${JSON.stringify(body.example, undefined, 2)}</textarea></label>`}
${optional.length > 0 && html`<details><summary>${optional.length} optional arguments</summary>${inputs(optional)}</details>`}
${types.length > 1 && html`<label>Accept <select name="Accept" data-in="header">${types.map((type) => html`<option>${type}</option>`)}</select></label>`}
<button class="send">Send</button>
</form>
<div class="result" role="status"></div>
</details>`;
}

/** An empty input is not sent. */
function inputOf(parameter: Parameter, operationId: string, { schemas }: PageContext): Markup {
  const { name, in: place, required, schema } = parameter;
  const found = resolve(schema, schemas);
  const values = found.enum ?? (found.type === 'boolean' ? [true, false] : undefined);
  const value = required === true || place === 'path' ? (parameterExample(parameter) ?? '') : '';
  const id = `${operationId}-${place}-${name}`;
  const must = required === true && html` required`;
  const type = typeName(schema, schemas);
  return html`<label for="${id}"><span><code>${name}</code> ${type}</span>
${
  values === undefined
    ? html`<input id="${id}" name="${name}" data-in="${place}" value="${value}" autocomplete="off"${must}>`
    : html`<select id="${id}" name="${name}" data-in="${place}"${must}><option></option>${values.map((one) => html`<option>${String(one)}</option>`)}</select>`
}</label>
`;
}
