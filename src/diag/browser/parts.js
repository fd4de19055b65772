/** Replaces the parts of the page whose rows have changed by freshly rendered ones from the server. */

/** The structures requested last. Avoids an endless loop of requests if the server renders a different structure. */
const requested = new Map();

/**
 * Resolves to whether the parts were replaced.
 * @param {Readonly<Record<string, string>>} structures the current structures, by part
 */
export async function replaceChangedParts(structures) {
  const changed = [...document.querySelectorAll('[data-part]')].filter((part) => isChanged(part, structures));
  if (changed.length === 0) return false;
  for (const [name, structure] of Object.entries(structures)) requested.set(name, structure);
  const page = await fetchPage();
  if (page === undefined) requested.clear();
  else for (const part of changed) replace(part, page.querySelector(`[data-part="${nameOf(part)}"]`));
  return page !== undefined;
}

/**
 * @param {Element} part
 * @param {Readonly<Record<string, string>>} structures
 */
function isChanged(part, structures) {
  const structure = structures[nameOf(part)];
  return part.getAttribute('data-structure') !== structure && requested.get(nameOf(part)) !== structure;
}

async function fetchPage() {
  try {
    const response = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    return response.ok ? new DOMParser().parseFromString(await response.text(), 'text/html') : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps the focus, and which details are open.
 * @param {Element} old
 * @param {Element | null} rendered
 */
function replace(old, rendered) {
  if (rendered === null) return;
  const open = [...old.querySelectorAll('details[open]')].map(({ id }) => id);
  const wasClosed = [...old.querySelectorAll('details:not([open])')].map(({ id }) => id);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const next = document.importNode(rendered, true);
  old.replaceWith(next);
  for (const details of next.querySelectorAll('details')) {
    if (open.includes(details.id)) details.open = true;
    if (wasClosed.includes(details.id)) details.open = false;
  }
  restoreFocus(next, focused);
}

/**
 * @param {Element} part
 * @param {Element | null} focused
 */
function restoreFocus(part, focused) {
  const details = focused?.closest('details');
  if (!details) return;
  const replacement = [...part.querySelectorAll('details')].find(({ id }) => id === details.id);
  replacement?.querySelector('summary')?.focus({ preventScroll: true });
}

/** @param {Element} part */
function nameOf(part) {
  return part.getAttribute('data-part') ?? '';
}
