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
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
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

document.querySelector('.docs nav')?.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null) return;
  event.preventDefault();
  openOperation(link.hash.slice(1));
});
