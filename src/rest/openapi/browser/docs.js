/** Shows the OpenAPI document in Swagger UI, in the light or dark mode that the reader prefers. */

/** Set by swagger-ui-bundle.js. @type {(options: object) => object} */
const createSwaggerUi = Reflect.get(globalThis, 'SwaggerUIBundle');

const prefersDark = matchMedia('(prefers-color-scheme: dark)');

function followColourScheme() {
  document.documentElement.classList.toggle('dark-mode', prefersDark.matches);
}

followColourScheme();
prefersDark.addEventListener('change', followColourScheme);

createSwaggerUi({
  url: '../openapi.json',
  dom_id: '#api',
  // Swagger UI nests its links in buttons. Our list of operations has links instead.
  deepLinking: false,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  syntaxHighlight: { theme: 'tomorrow-night' },
  onComplete: () => openOperation(location.hash.slice(1)),
});

/** Expands an operation and scrolls to it. @param {string} operationId */
function openOperation(operationId) {
  const blocks = [...document.querySelectorAll('.opblock')];
  const block = blocks.find(({ id }) => operationId !== '' && id.endsWith(`-${operationId}`));
  const button = block?.querySelector('.opblock-summary-control');
  if (block?.classList.contains('is-open') === false && button instanceof HTMLElement) button.click();
  block?.scrollIntoView();
}

/** Handles clicks as well as `hashchange`, which is not fired when the URL already has the fragment. */
document.querySelector('.docs nav')?.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link !== null) openOperation(link.hash.slice(1));
});
addEventListener('hashchange', () => openOperation(location.hash.slice(1)));

/** Fixes the accessibility of Swagger UI: labels drop-down lists, and lets the keyboard reach texts that scroll. */
function improveAccessibility() {
  for (const text of document.querySelectorAll('#api pre:not([tabindex])')) text.setAttribute('tabindex', '0');
  for (const list of document.querySelectorAll('#api select:not([aria-label])')) {
    const argument = list.closest('[data-param-name]')?.getAttribute('data-param-name');
    list.setAttribute('aria-label', argument ?? 'Server');
  }
}

const api = document.querySelector('#api');
if (api !== null) new MutationObserver(improveAccessibility).observe(api, { childList: true, subtree: true });
