/** Adds to the API documentation what needs JavaScript: forms that send requests, buttons that copy, one language for all. */

for (const part of document.querySelectorAll('.try[hidden]')) part.removeAttribute('hidden');

/** Returns the URL of a path of the API, whose root is above this page. @param {string} path */
function apiUrl(path) {
  return new URL(`..${path}`, document.baseURI);
}

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Input */

/** The inputs that have a value, with where it goes. @param {HTMLFormElement} form */
function valuesOf(form) {
  const inputs = /** @type {Input[]} */ ([...form.querySelectorAll('[data-in]')]);
  return inputs
    .filter(({ value }) => value !== '')
    .map(({ name, value, dataset }) => ({ name, value, place: dataset['in'] ?? '' }));
}

/** Builds the request of a form. @param {HTMLFormElement} form @returns {Request} */
function requestOf(form) {
  const { method = 'GET', path = '/' } = form.dataset;
  const values = valuesOf(form);
  const valuesIn = (/** @type {string} */ place) => values.filter((one) => one.place === place);
  const filled = valuesIn('path').reduce(
    (text, { name, value }) => text.replace(`{${name}}`, () => encodeURIComponent(value)),
    path,
  );
  const url = apiUrl(filled);
  for (const { name, value } of valuesIn('query')) url.searchParams.append(name, value);
  const headers = new Headers(credentials());
  for (const { name, value } of valuesIn('header')) headers.set(name, value);
  const [body] = valuesIn('body');
  if (body !== undefined) headers.set('Content-Type', body.name);
  return new Request(url, { method, headers, ...(body !== undefined && { body: body.value }) });
}

/** The credentials that the user has entered, or none. The browser then adds those that it knows. */
function credentials() {
  const form = document.querySelector('#credentials');
  const { user = '', password = '' } = form instanceof HTMLFormElement ? Object.fromEntries(new FormData(form)) : {};
  if (user === '') return {};
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/** Creates an element with children. @param {string} name @param {...(Node | string)} children */
function element(name, ...children) {
  const created = document.createElement(name);
  created.append(...children);
  return created;
}

/** Formats JSON over several lines. @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** Sends the request of a form, and shows the response below it. @param {HTMLFormElement} form */
async function send(form) {
  const result = form.parentElement?.querySelector('.result');
  if (!result) return;
  result.replaceChildren(element('p', 'Sending …'));
  const beganMs = performance.now();
  try {
    const request = requestOf(form);
    const response = await fetch(request);
    const text = await response.text();
    const tookMs = Math.round(performance.now() - beganMs);
    const status = element('p', element('b', `${response.status} ${response.statusText}`), ` in ${tookMs} ms`);
    status.className = 'answer';
    status.dataset['state'] = response.ok || response.status === 304 ? 'ok' : 'error';
    const target = element('p', element('code', `${request.method} ${request.url}`));
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const parts = [status, target, collapsed('Headers', headers)];
    result.replaceChildren(...parts, ...(text === '' ? [] : [block(pretty(text), 'Body of the response')]));
  } catch (error) {
    result.replaceChildren(element('p', `The request could not be sent: ${error}`));
  }
}

/** @param {string} text @param {string} label */
function block(text, label) {
  const pre = element('pre', element('code', text));
  for (const [name, value] of Object.entries({ tabindex: '0', role: 'group', 'aria-label': label }))
    pre.setAttribute(name, value);
  return pre;
}

/** @param {string} title @param {string} text */
function collapsed(title, text) {
  return element('details', element('summary', title), block(text, title));
}

document.addEventListener('submit', (event) => {
  event.preventDefault();
  if (event.target instanceof HTMLFormElement && event.target.id !== 'credentials') void send(event.target);
});

/** Opens the programs in one language, for all operations. @param {string} language */
function showLanguage(language) {
  for (const part of document.querySelectorAll('[data-language]'))
    if (part instanceof HTMLDetailsElement) part.open = part.dataset['language'] === language;
}

for (const summary of document.querySelectorAll('[data-language] > summary'))
  summary.addEventListener('click', (event) => {
    const part = summary.parentElement;
    if (!(part instanceof HTMLDetailsElement) || part.open) return;
    event.preventDefault();
    // What is above may change its height, so the operation moves unless it is scrolled back.
    const before = summary.getBoundingClientRect().top;
    showLanguage(part.dataset['language'] ?? '');
    scrollBy({ top: summary.getBoundingClientRect().top - before, behavior: 'instant' });
  });

/** Lets the user copy a program. Browsers allow it only on secure pages. */
if (navigator.clipboard !== undefined)
  for (const pre of document.querySelectorAll('.programs details > pre')) {
    const button = element('button', 'Copy');
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(pre.textContent ?? '');
      button.textContent = 'Copied';
    });
    pre.before(button);
  }
