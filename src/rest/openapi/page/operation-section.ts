/** Renders an operation: what it does, takes and returns, programs that call it, and a form to try it. */
import { blockMarkup, html, inlineMarkup, type Markup } from '#http';
import { deprecatedMark, fieldsOf, type NamedValue, partSummary, valueList } from './fields.ts';
import type { PageContext, PageOperation } from './page-document.ts';
import { jsonBlock, responseList, successExample } from './responses.ts';
import { bodyExample, snippetsOf } from './snippets.ts';
import { tryForm } from './try-form.ts';

export function operationSection(operation: PageOperation, context: PageContext): Markup {
  const { operationId, method, path, summary, description = '', deprecated } = operation;
  const example = successExample(operation, context);
  return html`<section class="operation" id="${operationId}" aria-labelledby="${operationId}-name">
<div>
<h3 id="${operationId}-name"><a href="#${operationId}">${inlineMarkup(summary)}</a>${deprecated === true && deprecatedMark}</h3>
<p class="endpoint"><b class="method" data-method="${method}">${method}</b> <code><span class="type">${context.server}</span>${path}</code></p>
${blockMarkup(description)}
${parameterParts(operation, context)}
${bodyPart(operation, context)}
${responseList(operation, context)}
</div>
<div class="programs">
${snippetsOf(operation, context).map(
  ({ language, text }, index) =>
    html`<details name="${operationId}-program" data-language="${language}"${index === 0 && html` open`}><summary>${language}</summary>
<pre tabindex="0" role="group" aria-label="${language}: ${summary}"><code>${text}</code></pre></details>
`,
)}${example !== undefined && html`<h4>${example.title}</h4>\n${jsonBlock(example.value, `Example of ${example.title}: ${summary}`)}`}
${tryForm(operation, context)}
</div>
</section>
`;
}

const places = { path: 'Path', query: 'Query', header: 'Headers' } as const;

/** Longer lists are collapsed. */
const openMax = 8;

function parameterParts({ parameters }: PageOperation, context: PageContext): Markup {
  return html`${Object.entries(places).map(([place, title]) => {
    const found = parameters.filter((parameter) => parameter.in === place);
    return found.length > 0 && part(title, found, context);
  })}`;
}

function part(title: string, values: readonly NamedValue[], context: PageContext): Markup {
  const isOpen = values.length <= openMax;
  return html`<details class="part"${isOpen && html` open`}>${partSummary(title, isOpen ? '' : `${values.length} arguments`)}
${valueList(values, context)}</details>
`;
}

function bodyPart(operation: PageOperation, context: PageContext): Markup | undefined {
  const { requestBody } = operation;
  const body = bodyExample(operation, context);
  if (requestBody === undefined || body === undefined) return undefined;
  const types = Object.keys(requestBody.content).join(', ');
  return html`<details class="part" open>${partSummary('Body', types)}
${valueList(fieldsOf(body.schema, context.schemas), context)}</details>
`;
}
