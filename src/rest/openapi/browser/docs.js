/** Shows the description of the API with Swagger UI, in the colours that the reader prefers. */

/** Set by swagger-ui-bundle.js. @type {(options: object) => object} */
const createSwaggerUi = Reflect.get(globalThis, 'SwaggerUIBundle');

const prefersDark = matchMedia('(prefers-color-scheme: dark)');

function followColours() {
  document.documentElement.classList.toggle('dark-mode', prefersDark.matches);
}

followColours();
prefersDark.addEventListener('change', followColours);

createSwaggerUi({
  url: '../openapi.json',
  dom_id: '#api',
  // Its own links are inside of buttons; those beside it name operations in the URL.
  deepLinking: false,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  syntaxHighlight: { theme: 'tomorrow-night' },
  onComplete: () => openOperation(location.hash.slice(1)),
});

/** The links beside it name operations. @param {string} operationId */
function openOperation(operationId) {
  const blocks = [...document.querySelectorAll('.opblock')];
  const block = blocks.find(({ id }) => operationId !== '' && id.endsWith(`-${operationId}`));
  const button = block?.querySelector('.opblock-summary-control');
  if (block?.classList.contains('is-open') === false && button instanceof HTMLElement) button.click();
  block?.scrollIntoView();
}

/** Also when the URL names the operation already. */
document.querySelector('.docs nav')?.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link !== null) openOperation(link.hash.slice(1));
});
addEventListener('hashchange', () => openOperation(location.hash.slice(1)));

/** What Swagger UI leaves out: names of its lists, and the keyboard for texts that scroll. */
function completeAccess() {
  for (const text of document.querySelectorAll('#api pre:not([tabindex])')) text.setAttribute('tabindex', '0');
  for (const list of document.querySelectorAll('#api select:not([aria-label])')) {
    const argument = list.closest('[data-param-name]')?.getAttribute('data-param-name');
    list.setAttribute('aria-label', argument ?? 'Server');
  }
}

const api = document.querySelector('#api');
if (api !== null) new MutationObserver(completeAccess).observe(api, { childList: true, subtree: true });
